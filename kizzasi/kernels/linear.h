// y = x W^T + b with weights packed once: the one door through which every projection of step and run goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

enum class Precision : std::uint8_t { kF32 };  // bf16, f16, i8 and i4 will stand here; state and sums stay f32

// A weight matrix (outputs, inputs) laid out as [outputs / 64][inputs][64]: outputs in lanes, inputs in sequence.
// So every output is one chain of fused multiply-adds over k = 0, 1, ..., whatever the number of rows and the width of the vectors:
// a row gives the same bits alone and in any batch, and on every instruction set that fuses multiply and add.
// Thread: any. Immutable after packing.
class PackedWeight {
 public:
  PackedWeight() = default;
  // w: (outputs, inputs) row-major. Allocates.
  static PackedWeight pack(std::span<const float> w, std::size_t outputs, std::size_t inputs, Precision precision = Precision::kF32);

  std::size_t outputs() const noexcept { return outputs_; }
  std::size_t inputs() const noexcept { return inputs_; }
  Precision precision() const noexcept { return precision_; }
  std::size_t bytes() const noexcept { return lines_.size() * sizeof(Line); }
  const std::byte* data() const noexcept { return lines_.empty() ? nullptr : lines_.front().bytes; }  // on a 64-byte boundary

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::size_t outputs_ = 0, inputs_ = 0;
  Precision precision_ = Precision::kF32;
};

// y[r][o] = bias[o] + sum_k x[r][k] w[o][k], summed over k in order by fused multiply-add, starting from the bias (or 0 where bias is
// empty). x: (rows, inputs), y: (rows, outputs); they must not overlap. Real-time: yes. Thread: any.
void linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept;

// The same in plain C++: the specification that every target is tested against, bit for bit where the target fuses.
void linear_plain(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept;

}  // namespace kizzasi::kernels
