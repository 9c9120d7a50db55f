// y = x W^T + b with weights packed once: the one door through which every projection of step and run goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/kernels/matrix.h"
#include "kizzasi/kernels/precision.h"

namespace kizzasi::kernels {

// A weight matrix (outputs, inputs) packed once, with outputs in lanes and inputs in sequence:
//   f32, f16         [outputs / 64][inputs][64]
//   bf16             [outputs / 64][inputs / 2][64][2]
//   int8             [outputs / 64][inputs / 4][64][4], then a scale (f32) an output
//   int4             [outputs / 64][inputs / 32][4][64] words of 8 numbers each, then a scale (bf16) for 32 inputs of an output
// Every output is one chain of sums over the inputs in order, whatever the number of rows and the width of the vectors: a row gives the
// same bits alone and in any batch, and on every instruction set that fuses multiply and add. Thread: any. Immutable after packing.
class PackedWeight {
 public:
  PackedWeight() = default;
  // w: (outputs, inputs) row-major, rounded to what the precision holds (round_to). Allocates.
  static PackedWeight pack(std::span<const float> w, std::size_t outputs, std::size_t inputs, Precision precision = Precision::kF32);

  std::size_t outputs() const noexcept { return outputs_; }
  std::size_t inputs() const noexcept { return inputs_; }
  Precision precision() const noexcept { return precision_; }
  std::size_t bytes() const noexcept { return lines_.size() * sizeof(Line); }
  const std::byte* data() const noexcept { return lines_.empty() ? nullptr : lines_.front().bytes; }  // on a 64-byte boundary
  const std::byte* scales() const noexcept { return data() + scales_at_; }                            // of int8 and int4; on one, too

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::size_t outputs_ = 0, inputs_ = 0, scales_at_ = 0;
  Precision precision_ = Precision::kF32;
};

inline constexpr std::size_t kQuantizedChunk = 4096;  // inputs that are rounded together where the weights are integers

// y[r][o] = bias[o] + sum_k x[r][k] w[o][k], from the bias (or 0 where bias is empty) on. x: (rows, inputs), y: (rows, outputs); they must
// not overlap.
//   f32, bf16, f16   summed over k in order by fused multiply-add.
//   int8, int4       each row's inputs, kQuantizedChunk at a time, are rounded to at least 13 bits of their largest magnitude (a scale of
//   the row
//                    and the moment: nothing to calibrate, nothing clipped); products and their sums are then exact in integers, and scales
//                    are put on by fused multiply-add. A row with an input that is not finite gives NaN in every output.
// Real-time: yes. Thread: any.
void linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept;

// The same in plain C++: the specification that every target is tested against, bit for bit where the target fuses.
void linear_plain(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept;

}  // namespace kizzasi::kernels
