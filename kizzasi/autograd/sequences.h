// Sequences of unequal length in one batch: padded to one length, or packed one after another without any padding.
#pragma once

#include <span>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/error.h"

namespace kizzasi::autograd {

// The rows of each sequence, in order.
using Lengths = std::vector<std::size_t>;

std::size_t longest(const Lengths& lengths);
std::size_t total(const Lengths& lengths);
// 1 where there is a row, 0 where there is padding: (sequences, time).
std::vector<std::uint8_t> mask(const Lengths& lengths, std::size_t time);
// 1 where a sequence begins, else 0: (total), for kernels that take packed sequences. A sequence of no rows leaves no trace.
std::vector<std::uint8_t> begins(const Lengths& lengths);

// Values of (rows, width) each -> (sequences, time, width), rows beyond a sequence's own filled with `fill`. time: 0 for that of the
// longest. An error where a sequence has no whole number of rows, or more than `time`: nothing is cut off.
template <typename T>
struct Padded {
  Dims dims;
  std::vector<T> values;
  Lengths lengths;
};
template <typename T>
Result<Padded<T>> pad(std::span<const std::vector<T>> sequences, std::size_t width, std::size_t time = 0, T fill = T{0});

// (sequences, time, ...) -> (total, ...): the rows that are none of the padding.
template <typename T>
Var<T> pack(Var<T> padded, const Lengths& lengths);
// And back, with zeros as padding.
template <typename T>
Var<T> unpack(Var<T> packed, const Lengths& lengths, std::size_t time);
// x with zeros for whatever stood in its padding, NaN even. What comes after must see no padding but this where it multiplies rows of a
// batch (the gradient of a linear map): zero times NaN is NaN.
template <typename T>
Var<T> without_padding(Var<T> x, const Lengths& lengths);

// Over the rows that are none of the padding, one element. Of no rows at all: 0, gradients 0. Padding has no influence, NaN even.
template <typename T>
Var<T> masked_sum(Var<T> x, const Lengths& lengths);
template <typename T>
Var<T> masked_mean(Var<T> x, const Lengths& lengths);

}  // namespace kizzasi::autograd
