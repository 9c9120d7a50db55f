#include "kizzasi/kernels/gemm.h"

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

void gemm(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate) {
  gemm_plain(ta, a, tb, b, c, accumulate);
}

}  // namespace kizzasi::kernels
