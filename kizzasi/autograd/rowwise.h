// Functions of rows of several arrays whose partial derivatives are cheapest found together with the value: losses.
#pragma once

#include <array>
#include <cstddef>

#include "kizzasi/autograd/tape.h"

namespace kizzasi {

// y[r] = f(rows, partials): rows[k] points at row r of inputs[k] (its elements divided by those of `dims`), partials[k] at as many numbers
// that f sets to dy[r]/d(row). f computes in double and returns double. Every input has a whole number of elements for each row.
template <typename T, std::size_t N, typename F>
autograd::Var<T> rowwise(autograd::Dims dims, const std::array<autograd::Var<T>, N>& inputs, F f) {
  using autograd::Tape;
  Tape<T>& tape = *inputs[0].tape;
  const std::size_t rows = elements(dims);
  std::array<std::size_t, N> ids, widths, kept, strides;
  for (std::size_t k = 0; k < N; ++k) {
    ids[k] = inputs[k].id;
    widths[k] = rows == 0 ? 0 : inputs[k].value().size() / rows;
    const bool wanted = tape.wants_gradient(ids[k]);
    kept[k] = tape.keep(wanted ? rows * widths[k] : widths[k]);  // unwanted partials of all rows go to one place
    strides[k] = wanted ? widths[k] : 0;
  }
  const auto y = tape.record(dims, inputs, [ids, widths, kept, rows](Tape<T>& t, std::size_t id) {
    const T* g = t.grad(id).data();
    for (std::size_t k = 0; k < N; ++k) {
      const auto to = t.flow(ids[k]);
      if (to.grad.empty()) continue;
      const T* partial = t.value(kept[k]).data();
      for (std::size_t r = 0, i = 0; r < rows; ++r) {
        for (std::size_t end = i + widths[k]; i < end; ++i) to.grad[i] = (to.first ? T{0} : to.grad[i]) + g[r] * partial[i];
      }
    }
  });
  T* out = tape.mutable_value(y.id).data();
  std::array<const T*, N> row;
  std::array<T*, N> partial;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < N; ++k) {
      row[k] = inputs[k].value().data() + r * widths[k];
      partial[k] = tape.mutable_value(kept[k]).data() + r * strides[k];
    }
    out[r] = static_cast<T>(f(row, partial));
  }
  return y;
}

}  // namespace kizzasi
