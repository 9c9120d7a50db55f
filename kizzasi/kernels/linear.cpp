#include "kizzasi/kernels/linear.h"

#include <cmath>
#include <cstring>

namespace kizzasi::kernels {
namespace {

constexpr std::size_t kBlock = 64;  // outputs a block

}  // namespace

PackedWeight PackedWeight::pack(std::span<const float> w, std::size_t outputs, std::size_t inputs, Precision precision) {
  PackedWeight packed;
  packed.outputs_ = outputs;
  packed.inputs_ = inputs;
  packed.precision_ = precision;
  const std::size_t blocks = (outputs + kBlock - 1) / kBlock;
  packed.lines_.assign(blocks * inputs * (kBlock * sizeof(float) / sizeof(Line)), Line{});
  auto* to = packed.lines_.empty() ? nullptr : packed.lines_.front().bytes;
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t k = 0; k < inputs; ++k) {
      const std::size_t place = (o / kBlock * inputs + k) * kBlock + o % kBlock;
      std::memcpy(to + place * sizeof(float), &w[o * inputs + k], sizeof(float));
    }
  }
  return packed;
}

void linear_plain(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept {
  const auto* weights = reinterpret_cast<const float*>(w.data());
  for (std::size_t r = 0; r < x.rows; ++r) {
    for (std::size_t o = 0; o < w.outputs(); ++o) {
      const float* column = weights + o / kBlock * w.inputs() * kBlock + o % kBlock;
      float sum = bias.empty() ? 0.0f : bias[o];
      for (std::size_t k = 0; k < w.inputs(); ++k) sum = std::fma(x.row(r)[k], column[k * kBlock], sum);
      y.row(r)[o] = sum;
    }
  }
}

void linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept { linear_plain(w, x, bias, y); }

}  // namespace kizzasi::kernels
