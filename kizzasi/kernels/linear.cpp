#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/linear.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kizzasi/kernels/linear.h"

#ifndef KIZZASI_KERNELS_LINEAR_SIZES
#define KIZZASI_KERNELS_LINEAR_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kBlock = 64;   // outputs a block of packed weights
constexpr std::size_t kRows = 6;     // most rows a tile: 6 x 2 sums, 2 weights and 1 input fill the 16 registers of AVX2
constexpr std::size_t kDepth = 512;  // inputs that many rows go through together, so that their 128 KiB of weights stay in the L2 cache

// One block of up to 64 outputs: its weights from the first input on, and how the sums start.
struct Block {
  const float* w;      // (inputs, 64)
  const float* start;  // 64 values or null: where the sums start at the first input
  std::size_t outputs;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<float, 16>;

// R rows by V vectors of outputs over `depth` inputs. The sums start from `start`, or from y itself where the inputs go on (resume).
template <std::size_t R, std::size_t V>
HWY_INLINE void tile(const float* HWY_RESTRICT w, std::size_t depth, const float* HWY_RESTRICT x, std::size_t x_stride, const float* start,
                     bool resume, float* HWY_RESTRICT y, std::size_t y_stride) {
  const Lanes d;
  const std::size_t width = hn::Lanes(d);
  hn::Vec<Lanes> sum[R][V];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) {
      sum[r][v] = resume ? hn::LoadU(d, y + r * y_stride + v * width) : start != nullptr ? hn::LoadU(d, start + v * width) : hn::Zero(d);
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    if constexpr (R <= V) {
      hn::Vec<Lanes> input[R];
      for (std::size_t r = 0; r < R; ++r) input[r] = hn::Set(d, x[r * x_stride + k]);
      for (std::size_t v = 0; v < V; ++v) {
        const auto weight = hn::LoadU(d, w + k * kBlock + v * width);
        for (std::size_t r = 0; r < R; ++r) sum[r][v] = hn::MulAdd(input[r], weight, sum[r][v]);
      }
    } else {
      hn::Vec<Lanes> weight[V];
      for (std::size_t v = 0; v < V; ++v) weight[v] = hn::LoadU(d, w + k * kBlock + v * width);
      for (std::size_t r = 0; r < R; ++r) {
        const auto input = hn::Set(d, x[r * x_stride + k]);
        for (std::size_t v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(input, weight[v], sum[r][v]);
      }
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(sum[r][v], d, y + r * y_stride + v * width);
  }
}

// All outputs of the block for R rows, in tiles as wide as the registers allow.
template <std::size_t R>
void rows_of(const Block& block, std::size_t first, std::size_t depth, const float* x, std::size_t x_stride, float* y,
             std::size_t y_stride) {
  constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON;
  constexpr std::size_t kWidest = R == 1 ? 8 : R <= 3 || kManyRegisters ? 4 : 2;
  const std::size_t width = hn::Lanes(Lanes());
  for (std::size_t o = 0; o < block.outputs;) {
    const float* w = block.w + first * kBlock + o;
    const float* start = block.start == nullptr ? nullptr : block.start + o;
    const std::size_t left = block.outputs - o;
    if (kWidest >= 8 && left > 4 * width) {
      tile<R, kWidest >= 8 ? 8 : 1>(w, depth, x, x_stride, start, first > 0, y + o, y_stride);
      o += 8 * width;
    } else if (kWidest >= 4 && left > 2 * width) {
      tile<R, kWidest >= 4 ? 4 : 1>(w, depth, x, x_stride, start, first > 0, y + o, y_stride);
      o += 4 * width;
    } else if (left > width) {
      tile<R, 2>(w, depth, x, x_stride, start, first > 0, y + o, y_stride);
      o += 2 * width;
    } else {
      tile<R, 1>(w, depth, x, x_stride, start, first > 0, y + o, y_stride);
      o += width;
    }
  }
}

void block_rows(const Block& block, std::size_t rows, std::size_t first, std::size_t depth, const float* x, std::size_t x_stride, float* y,
                std::size_t y_stride) {
  switch (rows) {
    case 1:
      return rows_of<1>(block, first, depth, x, x_stride, y, y_stride);
    case 2:
      return rows_of<2>(block, first, depth, x, x_stride, y, y_stride);
    case 3:
      return rows_of<3>(block, first, depth, x, x_stride, y, y_stride);
    case 4:
      return rows_of<4>(block, first, depth, x, x_stride, y, y_stride);
    case 5:
      return rows_of<5>(block, first, depth, x, x_stride, y, y_stride);
    default:
      return rows_of<6>(block, first, depth, x, x_stride, y, y_stride);
  }
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

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

HWY_EXPORT(block_rows);

void linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept {
  const auto run = HWY_DYNAMIC_DISPATCH(block_rows);
  const std::size_t inputs = w.inputs();
  if (inputs == 0) {  // there are no weights: the bias stands alone
    for (std::size_t r = 0; r < x.rows; ++r) {
      float* row = y.data + r * y.stride;
      if (bias.empty()) {
        std::fill_n(row, w.outputs(), 0.0f);
      } else {
        std::copy_n(bias.data(), w.outputs(), row);
      }
    }
    return;
  }
  for (std::size_t o = 0; o < w.outputs(); o += kBlock) {
    const auto* weights = reinterpret_cast<const float*>(w.data()) + o * inputs;
    const std::size_t outputs = std::min(kBlock, w.outputs() - o);
    if (outputs == kBlock) {
      const Block block{weights, bias.empty() ? nullptr : bias.data() + o, outputs};
      const std::size_t most = x.rows <= kRows ? inputs : kDepth;
      for (std::size_t first = 0; first < inputs; first += most) {
        const std::size_t depth = std::min(most, inputs - first);
        for (std::size_t r = 0; r < x.rows; r += kRows) {
          run(block, std::min(kRows, x.rows - r), first, depth, x.data + r * x.stride + first, x.stride, y.data + r * y.stride + o,
              y.stride);
        }
      }
    } else {  // the last outputs do not fill their vectors: through a buffer that does
      alignas(64) float start[kBlock] = {};
      alignas(64) float sums[kRows * kBlock];
      if (!bias.empty()) std::copy_n(bias.data() + o, outputs, start);
      const Block block{weights, start, outputs};
      for (std::size_t r = 0; r < x.rows; r += kRows) {
        const std::size_t rows = std::min(kRows, x.rows - r);
        run(block, rows, 0, inputs, x.data + r * x.stride, x.stride, sums, kBlock);
        for (std::size_t i = 0; i < rows; ++i) std::copy_n(sums + i * kBlock, outputs, y.data + (r + i) * y.stride + o);
      }
    }
  }
}

}  // namespace kizzasi::kernels
#endif
