// Matrix products for training, where both operands change at every step.
#pragma once

#include <cstddef>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

enum class Transpose : bool { kNo, kYes };

// c = op(a) op(b), or c += op(a) op(b) where `accumulate`. op(a): (m, k), op(b): (k, n), c: (m, n); c overlaps neither.
// The order of summation depends on the sizes alone, so equal calls give equal bits. Single-threaded: callers split rows.
// Allocates nothing after the first call of its size on a thread (packing buffers are per thread). Thread: any. Real-time: no.
void gemm(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate);

void gemm_plain(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate);

}  // namespace kizzasi::kernels
