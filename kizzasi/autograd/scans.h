// Fused operations of the sequence layers: forward through the kernels, adjoint by hand, checked against a composed f64 form and by finite
// differences.
#pragma once

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// Causal depthwise convolution from zero history: x (batch, time, channels), w (channels, 1, K) as published, bias (channels) or {}; taps
// stand `dilation` >= 1 frames apart.
template <typename T>
Var<T> conv1d(Var<T> x, Var<T> w, Var<T> bias, std::size_t dilation = 1);

// The same over all channels: x (batch, time, channels), w (outputs, channels, K) as published -> (batch, time, outputs).
template <typename T>
Var<T> causal_conv(Var<T> x, Var<T> w, Var<T> bias, std::size_t dilation = 1);

// What each frame of such a convolution takes in: x (batch, time, channels) -> (batch, time, taps channels), oldest first, zeros before the
// start.
template <typename T>
Var<T> dilated_rows(Var<T> x, std::size_t taps, std::size_t dilation);

// Mamba's scan from h = 0: x, delta (batch, time, E); a (E, N) negative, as published after -exp; b, c (batch, time, N); d (E). -> (batch,
// time, E)
template <typename T>
Var<T> selective_scan(Var<T> x, Var<T> delta, Var<T> a, Var<T> b, Var<T> c, Var<T> d);

// Mamba-2's from S = 0: x (batch, time, heads, P); delta (batch, time, heads); a, d (heads); b, c (batch, time, groups, N). -> dims of x.
// `chunk` rows at a time as small matrix products. d may also be (heads, P).
template <typename T>
Var<T> ssd(Var<T> x, Var<T> delta, Var<T> a, Var<T> b, Var<T> c, Var<T> d, std::size_t chunk);

// Diagonal complex recurrence from h = 0: x (batch, time, E); a, c (2, N, E) as in kernels/diagonal_scan.h; d (E). -> (batch, time, E)
template <typename T>
Var<T> diagonal_scan(Var<T> x, Var<T> a, Var<T> c, Var<T> d);

// h[t] = a h[t - 1] + b x[t] from h = 0, complex: x (batch, time, 2 N), a, b (2, N), real parts, then imaginary parts. -> every h.
template <typename T>
Var<T> complex_scan(Var<T> x, Var<T> a, Var<T> b);

// Diagonal-plus-low-rank recurrence from h = 0: x (batch, time, E); a, b, c, p, r (2, N, E) and d (E) as in kernels/dplr_scan.h. -> (batch,
// time, E)
template <typename T>
struct DplrCoefficients {
  Var<T> a, b, c, p, r, d;
};
template <typename T>
Var<T> dplr_scan(Var<T> x, const DplrCoefficients<T>& k);

// y[t] = a[t] y[t - 1] + x[t] elementwise from y = 0; a, x: (batch, time, E).
template <typename T>
Var<T> gated_scan(Var<T> a, Var<T> x);

}  // namespace kizzasi::autograd
