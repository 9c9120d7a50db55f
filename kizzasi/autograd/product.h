// Matrix products on a tape: through the kernels in f32, in plain loops in f64.
#pragma once

#include "kizzasi/kernels/gemm.h"

namespace kizzasi::autograd {

// c = op(a) op(b), or += where `accumulate`; a, b and c as they lie in memory.
inline void product(kernels::Transpose ta, kernels::BasicMatrix<const float> a, kernels::Transpose tb, kernels::BasicMatrix<const float> b,
                    kernels::BasicMatrix<float> c, bool accumulate) {
  kernels::gemm(ta, a, tb, b, c, accumulate);
}

inline void product(kernels::Transpose ta, kernels::BasicMatrix<const double> a, kernels::Transpose tb,
                    kernels::BasicMatrix<const double> b, kernels::BasicMatrix<double> c, bool accumulate) {
  const bool at = ta == kernels::Transpose::kYes, bt = tb == kernels::Transpose::kYes;
  const std::size_t depth = at ? a.rows : a.cols;
  for (std::size_t i = 0; i < c.rows; ++i) {
    double* row = c.row(i).data();
    if (!accumulate) {
      for (std::size_t j = 0; j < c.cols; ++j) row[j] = 0;
    }
    for (std::size_t k = 0; k < depth; ++k) {
      const double factor = at ? a.row(k)[i] : a.row(i)[k];
      for (std::size_t j = 0; j < c.cols; ++j) row[j] += factor * (bt ? b.row(j)[k] : b.row(k)[j]);
    }
  }
}

}  // namespace kizzasi::autograd
