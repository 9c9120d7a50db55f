#include <cassert>

#include "kizzasi/autograd/add_rows.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/gemm.h"

namespace kizzasi::autograd {

namespace {

using kernels::Transpose;

// c (m, n) = op(a) op(b), or += where `accumulate`; a and b as they lie in memory: rows x cols.
void product(Transpose ta, const float* a, std::size_t a_rows, std::size_t a_cols, Transpose tb, const float* b, std::size_t b_rows,
             std::size_t b_cols, float* c, bool accumulate) {
  const std::size_t m = ta == Transpose::kYes ? a_cols : a_rows, n = tb == Transpose::kYes ? b_rows : b_cols;
  kernels::gemm(ta, {a, a_rows, a_cols}, tb, {b, b_rows, b_cols}, {c, m, n}, accumulate);
}

void product(Transpose ta, const double* a, std::size_t a_rows, std::size_t a_cols, Transpose tb, const double* b, std::size_t b_rows,
             std::size_t b_cols, double* c, bool accumulate) {
  const bool at = ta == Transpose::kYes, bt = tb == Transpose::kYes;
  const std::size_t m = at ? a_cols : a_rows, depth = at ? a_rows : a_cols, n = bt ? b_rows : b_cols;
  for (std::size_t i = 0; i < m; ++i) {
    double* row = c + i * n;
    if (!accumulate) std::fill_n(row, n, 0.0);
    for (std::size_t k = 0; k < depth; ++k) {
      const double factor = at ? a[k * a_cols + i] : a[i * a_cols + k];
      for (std::size_t j = 0; j < n; ++j) row[j] += factor * (bt ? b[j * b_cols + k] : b[k * b_cols + j]);
    }
  }
}

}  // namespace

template <typename T>
Var<T> linear(Var<T> x, Var<T> w, Var<T> bias) {
  const std::size_t depth = w.dims()[1], outputs = w.dims()[0], rows = elements(leading(x.dims()));
  assert(x.dims().back() == depth);
  Dims dims = x.dims();
  dims.back() = outputs;
  const auto adjoint = [x = x.id, w = w.id, bias, rows, depth, outputs](Tape<T>& tape, std::size_t id) {
    const T* g = tape.grad(id).data();  // (rows, outputs)
    if (const auto to = tape.flow(x); !to.grad.empty()) {
      product(Transpose::kNo, g, rows, outputs, Transpose::kNo, tape.value(w).data(), outputs, depth, to.grad.data(), !to.first);
    }
    if (const auto to = tape.flow(w); !to.grad.empty()) {
      product(Transpose::kYes, g, rows, outputs, Transpose::kNo, tape.value(x).data(), rows, depth, to.grad.data(), !to.first);
    }
    if (bias.tape != nullptr && tape.wants_gradient(bias.id)) {
      add_rows(rows, tape.grad(bias.id), [=](std::size_t r, std::size_t o) { return g[r * outputs + o]; });
    }
  };
  const Var<T> y = x.tape->record(dims, {x, w, bias}, adjoint);
  T* out = x.tape->mutable_value(y.id).data();
  if (bias.tape != nullptr) {
    assert(bias.value().size() == outputs);
    for (std::size_t r = 0; r < rows; ++r) std::copy_n(bias.value().data(), outputs, out + r * outputs);
  }
  product(Transpose::kNo, x.value().data(), rows, depth, Transpose::kYes, w.value().data(), outputs, depth, out, bias.tape != nullptr);
  return y;
}

template Var<float> linear(Var<float>, Var<float>, Var<float>);
template Var<double> linear(Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
