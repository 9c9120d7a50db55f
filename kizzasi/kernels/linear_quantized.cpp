#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/linear_quantized.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kizzasi/kernels/quantized_rows.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<float, 16>;
using Int = hn::RebindToSigned<Lanes>;
using Half = hn::Repartition<std::int16_t, Int>;

// The largest magnitude, as the bits of its float: ordered as the magnitudes are, and above all of them for what is not finite.
HWY_INLINE std::uint32_t largest_bits(const float* HWY_RESTRICT x, std::size_t count) {
  const Lanes d;
  const hn::RebindToUnsigned<Lanes> du;
  const std::size_t width = hn::Lanes(d);
  auto most = hn::Zero(du);
  std::size_t i = 0;
  for (; i + width <= count; i += width) most = hn::Max(most, hn::BitCast(du, hn::Abs(hn::LoadU(d, x + i))));
  std::uint32_t found = hn::GetLane(hn::MaxOfLanes(du, most));
  for (; i < count; ++i) found = std::max(found, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFu);
  return found;
}

// to[i] = round(x[i] * inverse)
HWY_INLINE void round_inputs(const float* HWY_RESTRICT x, std::size_t count, float inverse, std::int16_t* HWY_RESTRICT to) {
  const Lanes d;
  const std::size_t width = hn::Lanes(d);
  const hn::Rebind<std::int16_t, Lanes> narrow;
  const auto times = hn::Set(d, inverse);
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), times))), narrow, to + i);
  }
  if (i < count) {
    alignas(64) float rest[16] = {};
    alignas(64) std::int16_t rounded[16];
    std::memcpy(rest, x + i, (count - i) * sizeof(float));
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(hn::LoadU(d, rest), times))), narrow, rounded);
    std::memcpy(to + i, rounded, (count - i) * sizeof(std::int16_t));
  }
}

void quantize_rows(Precision precision, const float* x, std::size_t stride, std::size_t rows, std::size_t count, QuantizedRows& q) {
  const auto levels = static_cast<float>(input_levels(precision, count));
  const std::size_t padded = (count + kI4Block - 1) / kI4Block * kI4Block;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
    const auto most = std::bit_cast<float>(largest_bits(row, count));
    q.scale[r] = !(most < std::numeric_limits<float>::infinity()) ? std::numeric_limits<float>::quiet_NaN()
                 : most < 0x1p-100f                               ? 0.0f
                                                                  : most / levels;
    std::int16_t* to = q.values[r];
    if (q.scale[r] > 0) {
      round_inputs(row, count, levels / most, to);
      std::fill(to + count, to + padded, std::int16_t{0});
    } else {
      std::fill_n(to, padded, std::int16_t{0});
    }
    std::uint32_t all = 0;  // sums may pass through 32 bits on their way: what they come to fits
    for (std::size_t b = 0; b < padded; b += kI4Block) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < kI4Block; ++i) sum += to[b + i];
      q.block_offset[r][b / kI4Block] = -8 * sum;
      all += static_cast<std::uint32_t>(sum);
    }
    q.offset[r] = static_cast<std::int32_t>(0u - 128u * all);
  }
}

// Two inputs beside each other, in every lane.
HWY_INLINE hn::Vec<Half> pair_of(const std::int16_t* x) {
  std::int32_t both;
  std::memcpy(&both, x, sizeof(both));
  return hn::BitCast(Half(), hn::Set(Int(), both));
}

// sum[i] + a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1]
HWY_INLINE hn::Vec<Int> add_pairs(hn::Vec<Int> sum, hn::Vec<Half> a, hn::Vec<Half> b) {
  auto others = hn::Zero(Int());
  const auto some = hn::ReorderWidenMulAccumulate(Int(), a, b, hn::Zero(Int()), others);
  return hn::Add(sum, hn::RearrangeToOddPlusEven(some, others));
}

// y += what the sums stand for, in R rows by V vectors of outputs.
template <std::size_t R, std::size_t V>
HWY_INLINE void i8_tile(const std::uint32_t* HWY_RESTRICT w, const float* HWY_RESTRICT scales, std::size_t count, const QuantizedRows& x,
                        std::size_t row, float* HWY_RESTRICT y, std::size_t y_stride) {
  const Lanes d;
  const Int di;
  const Half dh;
  const hn::RebindToUnsigned<Int> du;
  const hn::RebindToUnsigned<Half> duh;
  const std::size_t width = hn::Lanes(d);
  const auto low = hn::Set(duh, 0x00FF);
  hn::Vec<Int> sum[R][V];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) sum[r][v] = hn::Set(di, x.offset[row + r]);
  }
  for (std::size_t k = 0; k < count; k += 4) {
    hn::Vec<Half> first[R], second[R];
    for (std::size_t r = 0; r < R; ++r) {
      first[r] = pair_of(x.values[row + r] + k);
      second[r] = pair_of(x.values[row + r] + k + 2);
    }
    for (std::size_t v = 0; v < V; ++v) {
      const auto four = hn::BitCast(duh, hn::LoadU(du, w + k / 4 * kOutputBlock + v * width));
      const auto even = hn::BitCast(dh, hn::And(four, low)), odd = hn::BitCast(dh, hn::ShiftRight<8>(four));
      for (std::size_t r = 0; r < R; ++r) sum[r][v] = add_pairs(add_pairs(sum[r][v], first[r], even), second[r], odd);
    }
  }
  for (std::size_t v = 0; v < V; ++v) {
    const auto scale = hn::LoadU(d, scales + v * width);
    for (std::size_t r = 0; r < R; ++r) {
      float* to = y + r * y_stride + v * width;
      const auto both = hn::Mul(hn::Set(d, x.scale[row + r]), scale);
      hn::StoreU(hn::MulAdd(hn::ConvertTo(d, sum[r][v]), both, hn::LoadU(d, to)), d, to);
    }
  }
}

template <std::size_t R, std::size_t V>
HWY_INLINE void i4_tile(const std::uint32_t* HWY_RESTRICT w, const std::uint16_t* HWY_RESTRICT scales, std::size_t blocks,
                        const QuantizedRows& x, std::size_t row, float* HWY_RESTRICT y, std::size_t y_stride) {
  const Lanes d;
  const Int di;
  const Half dh;
  const hn::RebindToUnsigned<Int> du;
  const hn::RebindToUnsigned<Half> duh;
  const hn::Rebind<std::uint16_t, Lanes> ds;
  const std::size_t width = hn::Lanes(d);
  const auto low = hn::Set(duh, 0x000F);
  hn::Vec<Lanes> total[R][V];
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) total[r][v] = hn::Zero(d);
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    hn::Vec<Int> sum[R][V];
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t v = 0; v < V; ++v) sum[r][v] = hn::Set(di, x.block_offset[row + r][b]);
    }
    for (std::size_t word = 0; word < 4; ++word) {
      hn::Vec<decltype(duh)> eight[V];
      for (std::size_t v = 0; v < V; ++v) eight[v] = hn::BitCast(duh, hn::LoadU(du, w + (b * 4 + word) * kOutputBlock + v * width));
      const std::size_t k = b * kI4Block + word * 8;
      const auto pairs = [&](std::size_t j) HWY_ATTR {
        hn::Vec<Half> input[R];
        for (std::size_t r = 0; r < R; ++r) input[r] = pair_of(x.values[row + r] + k + 2 * j);
        for (std::size_t v = 0; v < V; ++v) {
          const auto weight = hn::BitCast(dh, j == 3 ? eight[v] : hn::And(eight[v], low));
          if (j < 3) eight[v] = hn::ShiftRight<4>(eight[v]);
          for (std::size_t r = 0; r < R; ++r) sum[r][v] = add_pairs(sum[r][v], input[r], weight);
        }
      };
      pairs(0), pairs(1), pairs(2), pairs(3);
    }
    for (std::size_t v = 0; v < V; ++v) {
      const auto half = hn::PromoteTo(du, hn::LoadU(ds, scales + b * kOutputBlock + v * width));
      const auto scale = hn::BitCast(d, hn::ShiftLeft<16>(half));
      for (std::size_t r = 0; r < R; ++r) total[r][v] = hn::MulAdd(hn::ConvertTo(d, sum[r][v]), scale, total[r][v]);
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < V; ++v) {
      float* to = y + r * y_stride + v * width;
      hn::StoreU(hn::MulAdd(total[r][v], hn::Set(d, x.scale[row + r]), hn::LoadU(d, to)), d, to);
    }
  }
}

// One block of outputs for R rows from `row` on, in tiles as wide as the registers allow. `outputs` is rounded up to whole vectors: y must
// have room for them.
template <std::size_t R>
void i8_rows(const std::uint32_t* w, const float* scales, std::size_t outputs, std::size_t count, const QuantizedRows& x, std::size_t row,
             float* y, std::size_t y_stride) {
  constexpr std::size_t kWidest = R == 1 ? 8 : R == 2 ? 4 : 2;
  const std::size_t width = hn::Lanes(Lanes());
  for (std::size_t o = 0; o < outputs;) {
    const std::size_t left = outputs - o;
    if (kWidest >= 8 && left > 4 * width) {
      i8_tile<R, kWidest >= 8 ? 8 : 1>(w + o, scales + o, count, x, row, y + o, y_stride);
      o += 8 * width;
    } else if (kWidest >= 4 && left > 2 * width) {
      i8_tile<R, kWidest >= 4 ? 4 : 1>(w + o, scales + o, count, x, row, y + o, y_stride);
      o += 4 * width;
    } else if (left > width) {
      i8_tile<R, 2>(w + o, scales + o, count, x, row, y + o, y_stride);
      o += 2 * width;
    } else {
      i8_tile<R, 1>(w + o, scales + o, count, x, row, y + o, y_stride);
      o += width;
    }
  }
}

template <std::size_t R>
void i4_rows(const std::uint32_t* w, const std::uint16_t* scales, std::size_t outputs, std::size_t blocks, const QuantizedRows& x,
             std::size_t row, float* y, std::size_t y_stride) {
  constexpr std::size_t kWidest = R == 1 ? 4 : R == 2 ? 2 : 1;
  const std::size_t width = hn::Lanes(Lanes());
  for (std::size_t o = 0; o < outputs;) {
    const std::size_t left = outputs - o;
    if (kWidest >= 4 && left > 2 * width) {
      i4_tile<R, kWidest >= 4 ? 4 : 1>(w + o, scales + o, blocks, x, row, y + o, y_stride);
      o += 4 * width;
    } else if (kWidest >= 2 && left > width) {
      i4_tile<R, kWidest >= 2 ? 2 : 1>(w + o, scales + o, blocks, x, row, y + o, y_stride);
      o += 2 * width;
    } else {
      i4_tile<R, 1>(w + o, scales + o, blocks, x, row, y + o, y_stride);
      o += width;
    }
  }
}

void i8_block(const std::uint32_t* w, const float* scales, std::size_t outputs, std::size_t count, const QuantizedRows& x, std::size_t rows,
              float* y, std::size_t y_stride) {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) i8_rows<4>(w, scales, outputs, count, x, r, y + r * y_stride, y_stride);
  if (r + 2 <= rows) i8_rows<2>(w, scales, outputs, count, x, r, y + r * y_stride, y_stride), r += 2;
  if (r < rows) i8_rows<1>(w, scales, outputs, count, x, r, y + r * y_stride, y_stride);
}

void i4_block(const std::uint32_t* w, const std::uint16_t* scales, std::size_t outputs, std::size_t blocks, const QuantizedRows& x,
              std::size_t rows, float* y, std::size_t y_stride) {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4) i4_rows<4>(w, scales, outputs, blocks, x, r, y + r * y_stride, y_stride);
  if (r + 2 <= rows) i4_rows<2>(w, scales, outputs, blocks, x, r, y + r * y_stride, y_stride), r += 2;
  if (r < rows) i4_rows<1>(w, scales, outputs, blocks, x, r, y + r * y_stride, y_stride);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(quantize_rows);
HWY_EXPORT(i8_block);
HWY_EXPORT(i4_block);

void linear_quantized(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept {
  const auto quantize = HWY_DYNAMIC_DISPATCH(quantize_rows);
  const auto i8 = HWY_DYNAMIC_DISPATCH(i8_block);
  const auto i4 = HWY_DYNAMIC_DISPATCH(i4_block);
  const bool eight_bits = w.precision() == Precision::kI8;
  const std::size_t outputs = w.outputs(), inputs = w.inputs();
  const std::size_t fours = (inputs + 3) / 4, blocks = (inputs + kI4Block - 1) / kI4Block;
  QuantizedRows q;
  for (std::size_t r = 0; r < x.rows; r += kQuantizedRows) {
    const std::size_t rows = std::min(kQuantizedRows, x.rows - r);
    for (std::size_t i = r; i < r + rows; ++i) {
      float* row = y.data + i * y.stride;
      if (bias.empty()) {
        std::fill_n(row, outputs, 0.0f);
      } else {
        std::copy_n(bias.data(), outputs, row);
      }
    }
    for (std::size_t first = 0; first < inputs; first += kQuantizedChunk) {
      const std::size_t count = std::min(kQuantizedChunk, inputs - first);
      quantize(w.precision(), x.data + r * x.stride + first, x.stride, rows, count, q);
      for (std::size_t o = 0; o < outputs; o += kOutputBlock) {
        const std::size_t block = o / kOutputBlock, here = std::min(kOutputBlock, outputs - o);
        // The last outputs may not fill their vectors: through a buffer that does.
        alignas(64) float buffer[kQuantizedRows * kOutputBlock] = {};
        const bool whole = here == kOutputBlock;
        float* to = whole ? y.data + r * y.stride + o : buffer;
        const std::size_t stride = whole ? y.stride : kOutputBlock;
        if (!whole) {
          for (std::size_t i = 0; i < rows; ++i) std::copy_n(y.data + (r + i) * y.stride + o, here, buffer + i * kOutputBlock);
        }
        if (eight_bits) {
          const auto* weights = reinterpret_cast<const std::uint32_t*>(w.data()) + (block * fours + first / 4) * kOutputBlock;
          i8(weights, reinterpret_cast<const float*>(w.scales()) + o, here, count, q, rows, to, stride);
        } else {
          const std::size_t at = block * blocks + first / kI4Block;
          const auto* weights = reinterpret_cast<const std::uint32_t*>(w.data()) + at * 4 * kOutputBlock;
          const auto* scales = reinterpret_cast<const std::uint16_t*>(w.scales()) + at * kOutputBlock;
          i4(weights, scales, here, (count + kI4Block - 1) / kI4Block, q, rows, to, stride);
        }
        if (!whole) {
          for (std::size_t i = 0; i < rows; ++i) std::copy_n(buffer + i * kOutputBlock, here, y.data + (r + i) * y.stride + o);
        }
      }
    }
  }
}

}  // namespace kizzasi::kernels
#endif
