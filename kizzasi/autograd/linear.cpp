#include <algorithm>
#include <cassert>

#include "kizzasi/autograd/add_rows.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/product.h"

namespace kizzasi::autograd {

using kernels::BasicMatrix;
using kernels::Transpose;

template <typename T>
Var<T> linear(Var<T> x, Var<T> w, Var<T> bias) {
  const std::size_t depth = w.dims()[1], outputs = w.dims()[0], rows = elements(leading(x.dims()));
  assert(x.dims().back() == depth);
  Dims dims = x.dims();
  dims.back() = outputs;
  const auto adjoint = [x = x.id, w = w.id, bias, rows, depth, outputs](Tape<T>& tape, std::size_t id) {
    const T* g = tape.grad(id).data();  // (rows, outputs)
    if (const auto to = tape.flow(x); !to.grad.empty()) {
      product(Transpose::kNo, BasicMatrix<const T>(g, rows, outputs), Transpose::kNo,
              BasicMatrix<const T>(tape.value(w).data(), outputs, depth), BasicMatrix<T>(to.grad.data(), rows, depth), !to.first);
    }
    if (const auto to = tape.flow(w); !to.grad.empty()) {
      product(Transpose::kYes, BasicMatrix<const T>(g, rows, outputs), Transpose::kNo,
              BasicMatrix<const T>(tape.value(x).data(), rows, depth), BasicMatrix<T>(to.grad.data(), outputs, depth), !to.first);
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
  product(Transpose::kNo, BasicMatrix<const T>(x.value().data(), rows, depth), Transpose::kYes,
          BasicMatrix<const T>(w.value().data(), outputs, depth), BasicMatrix<T>(out, rows, outputs), bias.tape != nullptr);
  return y;
}

template Var<float> linear(Var<float>, Var<float>, Var<float>);
template Var<double> linear(Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
