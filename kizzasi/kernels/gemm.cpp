#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/gemm.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/gemm.h"

// The blocking of Goto and van de Geijn (2008): panels of b stay in the L1 cache, blocks of a in L2, slices of b in L3.
#ifndef KIZZASI_KERNELS_GEMM_SIZES
#define KIZZASI_KERNELS_GEMM_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kDepth = 256;  // of k at a time
constexpr std::size_t kRowBlock = 96;
constexpr std::size_t kColumnBlock = 1024;
constexpr std::size_t kWidestPanel = 32;  // columns of c a tile: two vectors of the widest target

// Packed operands of one thread.
struct alignas(64) Packing {
  float a[kRowBlock * kDepth];
  float b[kColumnBlock * kDepth];
};

struct Operand {
  const float* data;
  std::size_t row, column;  // floats from one row, one column of op(.) to the next
  const float* at(std::size_t r, std::size_t c) const { return data + r * row + c * column; }
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<float, kWidestPanel / 2>;
// Rows of c a tile: 6 x 2 sums, 2 vectors of b and 1 value of a fill 16 registers; where there are 32, twice as many.
constexpr std::size_t kPanelRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
static_assert(kRowBlock % kPanelRows == 0);

// c (R, 2 vectors) = or += a (k, 6) b (k, 2 vectors), both packed.
template <std::size_t R>
HWY_INLINE void tile(std::size_t depth, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT c, std::size_t stride,
                     bool add) {
  const Lanes d;
  const std::size_t width = hn::Lanes(d);
  hn::Vec<Lanes> sum[R][2];
  for (std::size_t r = 0; r < R; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
  for (std::size_t k = 0; k < depth; ++k) {
    const auto left = hn::Load(d, b + k * 2 * width), right = hn::Load(d, b + k * 2 * width + width);
    for (std::size_t r = 0; r < R; ++r) {
      const auto value = hn::Set(d, a[k * kPanelRows + r]);
      sum[r][0] = hn::MulAdd(value, left, sum[r][0]);
      sum[r][1] = hn::MulAdd(value, right, sum[r][1]);
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    for (std::size_t v = 0; v < 2; ++v) {
      float* to = c + r * stride + v * width;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sum[r][v]) : sum[r][v], d, to);
    }
  }
}

template <std::size_t R = kPanelRows>
void tile_rows(std::size_t rows, std::size_t depth, const float* a, const float* b, float* c, std::size_t stride, bool add) {
  if constexpr (R > 1) {
    if (rows < R) return tile_rows<R - 1>(rows, depth, a, b, c, stride, add);
  }
  tile<R>(depth, a, b, c, stride, add);
}

// Four rows of four: what stood beside each other comes to stand below each other.
HWY_INLINE void turn(const float* from, std::size_t along, float* to, std::size_t width) {
  const hn::FixedTag<float, 4> q;
  const auto r0 = hn::LoadU(q, from), r1 = hn::LoadU(q, from + along), r2 = hn::LoadU(q, from + 2 * along),
             r3 = hn::LoadU(q, from + 3 * along);
  const auto t0 = hn::InterleaveLower(q, r0, r2), t1 = hn::InterleaveLower(q, r1, r3);
  const auto t2 = hn::InterleaveUpper(q, r0, r2), t3 = hn::InterleaveUpper(q, r1, r3);
  hn::StoreU(hn::InterleaveLower(q, t0, t1), q, to);
  hn::StoreU(hn::InterleaveUpper(q, t0, t1), q, to + width);
  hn::StoreU(hn::InterleaveLower(q, t2, t3), q, to + 2 * width);
  hn::StoreU(hn::InterleaveUpper(q, t2, t3), q, to + 3 * width);
}

// [count / width] panels of (depth, width); `along`: the step in the source from one of the `count` to the next, `down`: along k; one of
// the two is 1. kWidth: the width where it is known, or 0.
template <std::size_t kWidth>
void pack(const float* from, std::size_t along, std::size_t down, std::size_t count, std::size_t width, std::size_t depth, float* to) {
  if constexpr (kWidth > 0) width = kWidth;
  for (std::size_t begin = 0; begin < count; begin += width, to += depth * width, from += width * along) {
    const std::size_t here = std::min(width, count - begin);
    if (here < width) std::fill_n(to, depth * width, 0.0f);
    if (along == 1) {
      for (std::size_t k = 0; k < depth; ++k) {
        const float* line = from + k * down;
        if (here < width) {
          for (std::size_t i = 0; i < here; ++i) to[k * width + i] = line[i];
        } else if constexpr (kWidth > 0) {
          std::memcpy(to + k * kWidth, line, kWidth * sizeof(float));
        } else {
          const Lanes d;
          hn::StoreU(hn::LoadU(d, line), d, to + k * width);
          hn::StoreU(hn::LoadU(d, line + width / 2), d, to + k * width + width / 2);
        }
      }
      continue;
    }
    std::size_t i = 0;
    for (; i + 4 <= here; i += 4) {
      std::size_t k = 0;
      for (; k + 4 <= depth; k += 4) turn(from + i * along + k, along, to + k * width + i, width);
      for (; k < depth; ++k) {
        for (std::size_t r = i; r < i + 4; ++r) to[k * width + r] = from[r * along + k];
      }
    }
    for (; i < here; ++i) {
      for (std::size_t k = 0; k < depth; ++k) to[k * width + i] = from[i * along + k];
    }
  }
}

void multiply(Operand a, Operand b, std::size_t depth, MatrixSpan c, bool accumulate, Packing& packing) {
  const std::size_t width = 2 * hn::Lanes(Lanes());
  for (std::size_t j0 = 0; j0 < c.cols; j0 += kColumnBlock) {
    const std::size_t columns = std::min(kColumnBlock, c.cols - j0);
    for (std::size_t k0 = 0; k0 < depth; k0 += kDepth) {
      const std::size_t deep = std::min(kDepth, depth - k0);
      const bool add = accumulate || k0 > 0;
      pack<0>(b.at(k0, j0), b.column, b.row, columns, width, deep, packing.b);
      for (std::size_t i0 = 0; i0 < c.rows; i0 += kRowBlock) {
        const std::size_t rows = std::min(kRowBlock, c.rows - i0);
        pack<kPanelRows>(a.at(i0, k0), a.row, a.column, rows, kPanelRows, deep, packing.a);
        for (std::size_t j = 0; j < columns; j += width) {
          const std::size_t wide = std::min(width, columns - j);
          for (std::size_t i = 0; i < rows; i += kPanelRows) {
            const std::size_t high = std::min(kPanelRows, rows - i);
            float* to = c.data + (i0 + i) * c.stride + j0 + j;
            if (wide == width) {
              tile_rows(high, deep, packing.a + i * deep, packing.b + j * deep, to, c.stride, add);
              continue;
            }
            HWY_ALIGN float edge[kPanelRows * kWidestPanel];
            tile_rows(high, deep, packing.a + i * deep, packing.b + j * deep, edge, width, false);
            for (std::size_t r = 0; r < high; ++r) {
              for (std::size_t q = 0; q < wide; ++q) to[r * c.stride + q] = edge[r * width + q] + (add ? to[r * c.stride + q] : 0.0f);
            }
          }
        }
      }
    }
  }
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void gemm_plain(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate) {
  const std::size_t depth = ta == Transpose::kYes ? a.rows : a.cols;
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.cols; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < depth; ++k) {
        const float left = ta == Transpose::kYes ? a.row(k)[i] : a.row(i)[k];
        const float right = tb == Transpose::kYes ? b.row(j)[k] : b.row(k)[j];
        sum += double{left} * right;
      }
      c.row(i)[j] = static_cast<float>(sum + (accumulate ? c.row(i)[j] : 0.0f));
    }
  }
}

HWY_EXPORT(multiply);

void gemm(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate) {
  if (Backend* const other = backend_for(Kernel::kGemm)) return other->gemm(ta, a, tb, b, c, accumulate);
  thread_local std::vector<Packing> packing(1);
  const bool swap_a = ta == Transpose::kYes, swap_b = tb == Transpose::kYes;
  const std::size_t depth = swap_a ? a.rows : a.cols;
  if (depth == 0 && !accumulate) {
    for (std::size_t i = 0; i < c.rows; ++i) std::fill_n(c.data + i * c.stride, c.cols, 0.0f);
  }
  HWY_DYNAMIC_DISPATCH(multiply)
  ({a.data, swap_a ? 1 : a.stride, swap_a ? a.stride : 1}, {b.data, swap_b ? 1 : b.stride, swap_b ? b.stride : 1}, depth, c, accumulate,
   packing.front());
}

}  // namespace kizzasi::kernels
#endif
