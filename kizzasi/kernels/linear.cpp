#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/linear.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/fused.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/quantized_rows.h"

#ifndef KIZZASI_KERNELS_LINEAR_SIZES
#define KIZZASI_KERNELS_LINEAR_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kBlock = kOutputBlock;
constexpr std::size_t kRows = 6;     // most rows a tile: 6 x 2 sums, 2 weights and 1 input fill the 16 registers of AVX2
constexpr std::size_t kDepth = 512;  // inputs that many rows go through together, so that their 128 KiB of weights stay in the L2 cache

// Two inputs of a bf16 matrix: a half of it, filled up with zeros, is the float.
struct BrainPair {
  std::uint32_t bits;
};
template <typename W>
constexpr std::size_t kInputsOf = 1;
template <>
constexpr std::size_t kInputsOf<BrainPair> = 2;

// One block of up to 64 outputs: its weights from the first input on, and how the sums start.
template <typename W>
struct Block {
  const W* w;          // (inputs, 64), as kInputsOf<W> says
  const float* start;  // 64 values or null: where the sums start at the first input
  std::size_t outputs;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<float, 16>;

// The weights of input k in a vector of outputs; w: where input 0 stands. kOdd: whether k is.
template <bool kOdd>
HWY_INLINE hn::Vec<Lanes> weights_at(const float* w, std::size_t k) {
  return hn::LoadU(Lanes(), w + k * kBlock);
}
template <bool kOdd>
HWY_INLINE hn::Vec<Lanes> weights_at(const hwy::float16_t* w, std::size_t k) {
  return hn::PromoteTo(Lanes(), hn::LoadU(hn::Rebind<hwy::float16_t, Lanes>(), w + k * kBlock));
}
template <bool kOdd>
HWY_INLINE hn::Vec<Lanes> weights_at(const BrainPair* w, std::size_t k) {
  const hn::RebindToUnsigned<Lanes> du;
  const auto both = hn::LoadU(du, &w[k / 2 * kBlock].bits);
  if constexpr (kOdd) return hn::BitCast(Lanes(), hn::And(both, hn::Set(du, 0xFFFF0000u)));
  return hn::BitCast(Lanes(), hn::ShiftLeft<16>(both));
}

// R rows by V vectors of outputs over `depth` inputs. The sums start from `start`, or from y itself where the inputs go on (resume).
template <std::size_t R, std::size_t V, typename W>
HWY_INLINE void tile(const W* HWY_RESTRICT w, std::size_t depth, const float* HWY_RESTRICT x, std::size_t x_stride, const float* start,
                     bool resume, float* HWY_RESTRICT y, std::size_t y_stride) {
  const Lanes d;
  const std::size_t width = hn::Lanes(d);
  hn::Vec<Lanes> sum[R][V];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) {
      sum[r][v] = resume ? hn::LoadU(d, y + r * y_stride + v * width) : start != nullptr ? hn::LoadU(d, start + v * width) : hn::Zero(d);
    }
  }
  const auto add = [&](auto odd, std::size_t k) HWY_ATTR {
    constexpr bool kOdd = decltype(odd)::value;
    if constexpr (R <= V) {
      hn::Vec<Lanes> input[R];
      for (std::size_t r = 0; r < R; ++r) input[r] = hn::Set(d, x[r * x_stride + k]);
      for (std::size_t v = 0; v < V; ++v) {
        const auto weight = weights_at<kOdd>(w + v * width, k);
        for (std::size_t r = 0; r < R; ++r) sum[r][v] = hn::MulAdd(input[r], weight, sum[r][v]);
      }
    } else {
      hn::Vec<Lanes> weight[V];
      for (std::size_t v = 0; v < V; ++v) weight[v] = weights_at<kOdd>(w + v * width, k);
      for (std::size_t r = 0; r < R; ++r) {
        const auto input = hn::Set(d, x[r * x_stride + k]);
        for (std::size_t v = 0; v < V; ++v) sum[r][v] = hn::MulAdd(input, weight[v], sum[r][v]);
      }
    }
  };
  std::size_t k = 0;
  for (; k + 2 <= depth; k += 2) add(std::false_type(), k), add(std::true_type(), k + 1);
  if (k < depth) add(std::false_type(), k);
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(sum[r][v], d, y + r * y_stride + v * width);
  }
}

// All outputs of the block for R rows, in tiles as wide as the registers allow.
template <std::size_t R, typename W>
void rows_of(const Block<W>& block, std::size_t first, std::size_t depth, const float* x, std::size_t x_stride, float* y,
             std::size_t y_stride) {
  constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON;
  constexpr std::size_t kWidest = R == 1 ? 8 : R <= 3 || kManyRegisters ? 4 : 2;
  const std::size_t width = hn::Lanes(Lanes());
  for (std::size_t o = 0; o < block.outputs;) {
    const W* w = block.w + first / kInputsOf<W> * kBlock + o;
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

template <typename W>
void block_rows(const Block<W>& block, std::size_t rows, std::size_t first, std::size_t depth, const float* x, std::size_t x_stride,
                float* y, std::size_t y_stride) {
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

// All rows of `linear` where the weights are floats of some size; f, where given, of the finished outputs.
template <typename W>
void linear_of(const PackedWeight& w, MatrixView x, std::span<const float> bias, Elementwise f, MatrixSpan y) {
  const std::size_t inputs = w.inputs();
  for (std::size_t o = 0; o < w.outputs(); o += kBlock) {
    const W* weights = reinterpret_cast<const W*>(w.data()) + o * ((inputs + kInputsOf<W> - 1) / kInputsOf<W>);
    const std::size_t outputs = std::min(kBlock, w.outputs() - o);
    if (outputs == kBlock) {
      const Block<W> block{weights, bias.empty() ? nullptr : bias.data() + o, outputs};
      const std::size_t most = x.rows <= kRows ? inputs : kDepth;
      for (std::size_t first = 0; first < inputs; first += most) {
        const std::size_t depth = std::min(most, inputs - first);
        for (std::size_t r = 0; r < x.rows; r += kRows) {
          block_rows(block, std::min(kRows, x.rows - r), first, depth, x.data + r * x.stride + first, x.stride, y.data + r * y.stride + o,
                     y.stride);
          if (f == nullptr || first + depth < inputs) continue;
          for (std::size_t i = r; i < std::min(r + kRows, x.rows); ++i) {
            const std::span<float> done(y.data + i * y.stride + o, kBlock);
            f(done, done);
          }
        }
      }
    } else {  // the last outputs do not fill their vectors: through a buffer that does
      alignas(64) float start[kBlock] = {};
      alignas(64) float sums[kRows * kBlock];
      if (!bias.empty()) std::copy_n(bias.data() + o, outputs, start);
      const Block<W> block{weights, start, outputs};
      for (std::size_t r = 0; r < x.rows; r += kRows) {
        const std::size_t rows = std::min(kRows, x.rows - r);
        block_rows(block, rows, 0, inputs, x.data + r * x.stride, x.stride, sums, kBlock);
        for (std::size_t i = 0; i < rows; ++i) {
          const std::span<float> done(sums + i * kBlock, outputs);
          if (f != nullptr) f(done, done);
          std::copy_n(done.data(), outputs, y.data + (r + i) * y.stride + o);
        }
      }
    }
  }
}

void linear_f32(const PackedWeight& w, MatrixView x, std::span<const float> bias, Elementwise f, MatrixSpan y) {
  linear_of<float>(w, x, bias, f, y);
}
void linear_bf16(const PackedWeight& w, MatrixView x, std::span<const float> bias, Elementwise f, MatrixSpan y) {
  linear_of<BrainPair>(w, x, bias, f, y);
}
void linear_f16(const PackedWeight& w, MatrixView x, std::span<const float> bias, Elementwise f, MatrixSpan y) {
  linear_of<hwy::float16_t>(w, x, bias, f, y);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(linear_f32);
HWY_EXPORT(linear_bf16);
HWY_EXPORT(linear_f16);

namespace {

void each_row(Elementwise f, MatrixSpan y) noexcept {
  for (std::size_t r = 0; r < y.rows && f != nullptr; ++r) f(y.row(r), y.row(r));
}

void product(const PackedWeight& w, MatrixView x, std::span<const float> bias, Elementwise f, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kLinear)) {
    other->linear(w, x, bias, y);
    return each_row(f, y);
  }
  if (w.inputs() == 0) {  // there are no weights: the bias stands alone
    for (std::size_t r = 0; r < x.rows; ++r) {
      float* row = y.data + r * y.stride;
      if (bias.empty()) {
        std::fill_n(row, w.outputs(), 0.0f);
      } else {
        std::copy_n(bias.data(), w.outputs(), row);
      }
    }
    return each_row(f, y);
  }
  switch (w.precision()) {
    case Precision::kF32:
      return HWY_DYNAMIC_DISPATCH(linear_f32)(w, x, bias, f, y);
    case Precision::kBf16:
      return HWY_DYNAMIC_DISPATCH(linear_bf16)(w, x, bias, f, y);
    case Precision::kF16:
      return HWY_DYNAMIC_DISPATCH(linear_f16)(w, x, bias, f, y);
    case Precision::kI8:
    case Precision::kI4:
      linear_quantized(w, x, bias, y);
      return each_row(f, y);
  }
}

}  // namespace

void linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept { product(w, x, bias, nullptr, y); }
void linear_then(const PackedWeight& w, MatrixView x, std::span<const float> bias, Elementwise f, MatrixSpan y) noexcept {
  product(w, x, bias, f, y);
}

}  // namespace kizzasi::kernels
#endif
