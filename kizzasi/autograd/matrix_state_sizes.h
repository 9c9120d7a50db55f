// What linear_attention.cpp and delta_rule.cpp share: sizes, where the rows of each input stand, and decays that are the same at every
// step.
#pragma once

#include <algorithm>
#include <cassert>
#include <span>
#include <vector>

#include "kizzasi/autograd/add_rows.h"
#include "kizzasi/autograd/tape.h"
#include "kizzasi/kernels/matrix.h"

namespace kizzasi::autograd {

struct MatrixStateSizes {
  std::size_t batch, time, heads, keys, values;
  std::size_t decays = 0;  // numbers a row: heads * keys or heads; 0: no decay
  bool steady = false;     // the same decays at every step

  std::size_t key_width() const { return heads * keys; }
  std::size_t value_width() const { return heads * values; }
  std::size_t decay_at(std::size_t head, std::size_t key) const { return decays == heads ? head : head * keys + key; }

  // Sequence i of an input with rows of `width` numbers; of one that is not there, rows of none.
  template <typename T>
  kernels::BasicMatrix<T> rows(T* values_of, std::size_t i, std::size_t width) const {
    if (values_of == nullptr) return {values_of, time, 0};
    return {values_of + i * time * width, time, width};
  }
  template <typename T>
  kernels::BasicMatrix<T> decay_rows(T* values_of, std::size_t i) const {
    return steady ? kernels::BasicMatrix<T>{values_of, 1, decays} : rows(values_of, i, decays);
  }
};

template <typename T>
MatrixStateSizes matrix_state_sizes(Var<T> q, Var<T> v, Var<T> decay) {
  const Dims dims = v.dims();
  MatrixStateSizes s{dims[0], dims[1], dims[2], q.dims()[3], dims[3]};
  if (decay.tape == nullptr) return s;
  const std::size_t rank = decay.dims().size();
  s.steady = rank <= 2;
  s.decays = rank % 2 == 0 ? s.key_width() : s.heads;
  assert(decay.value().size() == s.decays * (s.steady ? 1 : s.batch * s.time));
  return s;
}

// The gradient of an input of `width` numbers a row, row by row: into the input's own gradient, or, where one row of it stands for all
// rows, gathered first and added up with all their digits.
template <typename T>
class RowGradient {
 public:
  RowGradient(Tape<T>& tape, Var<T> input, std::size_t rows, std::size_t width, bool steady) : width_(width) {
    if (input.tape == nullptr) return;
    const bool wanted = tape.wants_gradient(input.id);
    if (wanted) to_ = tape.grad(input.id);
    if (!wanted || steady) rows_.assign(rows * width, T{0});
  }
  T* data() { return rows_.empty() ? to_.data() : rows_.data(); }
  void finish() {
    if (rows_.empty() || to_.empty()) return;
    add_rows(rows_.size() / width_, to_, [this](std::size_t row, std::size_t j) { return rows_[row * width_ + j]; });
  }

 private:
  std::size_t width_;
  std::span<T> to_;
  std::vector<T> rows_;
};

}  // namespace kizzasi::autograd
