#include "kizzasi/autograd/sequences.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>

#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {
namespace {

// (sequences, time, ...) as rows: (sequences time, ...).
Dims as_rows(const Dims& dims) {
  Dims rows{dims[0] * dims[1]};
  for (std::size_t axis = 2; axis < dims.size(); ++axis) rows.push_back(dims[axis]);
  return rows;
}

}  // namespace

std::size_t longest(const Lengths& lengths) { return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()); }

std::size_t total(const Lengths& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}); }

std::vector<std::uint8_t> mask(const Lengths& lengths, std::size_t time) {
  std::vector<std::uint8_t> all;
  for (const std::size_t length : lengths) {
    for (std::size_t t = 0; t < time; ++t) all.push_back(t < length ? 1 : 0);
  }
  return all;
}

std::vector<std::uint8_t> begins(const Lengths& lengths) {
  std::vector<std::uint8_t> all(total(lengths));
  std::size_t at = 0;
  for (const std::size_t length : lengths) {
    if (length > 0) all[at] = 1;
    at += length;
  }
  return all;
}

template <typename T>
Result<Padded<T>> pad(std::span<const std::vector<T>> sequences, std::size_t width, std::size_t time, T fill) {
  Padded<T> out;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::size_t values = sequences[i].size();
    const std::string where = "sequence " + std::to_string(i);
    if (width == 0 || values % width != 0) {
      return fail({Fault::kBadInput, "it has " + std::to_string(values) + " values", where,
                   "a multiple of the " + std::to_string(width) + " values of a row", "Give whole rows, one after another."});
    }
    out.lengths.push_back(values / width);
    if (time > 0 && values / width > time) {
      return fail({Fault::kBadInput, "it has " + std::to_string(values / width) + " rows", where,
                   "at most the " + std::to_string(time) + " of the batch", "Cut it into windows, or pad to the longest (time 0)."});
    }
  }
  const std::size_t rows = time > 0 ? time : longest(out.lengths);
  out.dims = {sequences.size(), rows, width};
  out.values.assign(sequences.size() * rows * width, fill);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i].begin(), sequences[i].end(), out.values.begin() + static_cast<std::ptrdiff_t>(i * rows * width));
  }
  return out;
}

template <typename T>
Var<T> pack(Var<T> padded, const Lengths& lengths) {
  const std::size_t time = padded.dims()[1];
  assert(lengths.size() == padded.dims()[0] && longest(lengths) <= time);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::size_t t = 0; t < lengths[i]; ++t) rows.push_back(i * time + t);
  }
  return gather(reshape(padded, as_rows(padded.dims())), std::move(rows));
}

template <typename T>
Var<T> unpack(Var<T> packed, const Lengths& lengths, std::size_t time) {
  assert(total(lengths) == packed.dims()[0] && longest(lengths) <= time);
  Dims one = packed.dims();
  const std::size_t zero = one[0];
  one[0] = 1;
  const std::vector<T> zeros(elements(one), T{0});
  const Var<T> parts[] = {packed, packed.tape->constant(one, std::span<const T>(zeros))};  // the row of all padding
  std::vector<std::size_t> rows;
  std::size_t next = 0;
  for (const std::size_t length : lengths) {
    for (std::size_t t = 0; t < time; ++t) rows.push_back(t < length ? next++ : zero);
  }
  Dims dims{lengths.size(), time};
  for (std::size_t axis = 1; axis < one.size(); ++axis) dims.push_back(one[axis]);
  return reshape(gather(concat(std::span<const Var<T>>(parts), 0), std::move(rows)), dims);
}

template <typename T>
Var<T> without_padding(Var<T> x, const Lengths& lengths) {
  return unpack(pack(x, lengths), lengths, x.dims()[1]);
}

template <typename T>
Var<T> masked_sum(Var<T> x, const Lengths& lengths) {
  return sum(pack(x, lengths));
}

template <typename T>
Var<T> masked_mean(Var<T> x, const Lengths& lengths) {
  const Var<T> rows = pack(x, lengths);
  return scale(sum(rows), rows.value().empty() ? T{0} : static_cast<T>(1 / static_cast<double>(rows.value().size())));
}

template Result<Padded<float>> pad(std::span<const std::vector<float>>, std::size_t, std::size_t, float);
template Result<Padded<double>> pad(std::span<const std::vector<double>>, std::size_t, std::size_t, double);
template Var<float> pack(Var<float>, const Lengths&);
template Var<double> pack(Var<double>, const Lengths&);
template Var<float> unpack(Var<float>, const Lengths&, std::size_t);
template Var<double> unpack(Var<double>, const Lengths&, std::size_t);
template Var<float> without_padding(Var<float>, const Lengths&);
template Var<double> without_padding(Var<double>, const Lengths&);
template Var<float> masked_sum(Var<float>, const Lengths&);
template Var<double> masked_sum(Var<double>, const Lengths&);
template Var<float> masked_mean(Var<float>, const Lengths&);
template Var<double> masked_mean(Var<double>, const Lengths&);

}  // namespace kizzasi::autograd
