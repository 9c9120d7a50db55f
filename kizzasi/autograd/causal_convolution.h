// Linear, time-invariant layers as one long convolution, for training on long windows: the kernel is what the layer's own recurrence
// answers to a single impulse, and the convolution goes through Fourier transforms (Gu et al. 2022).
#pragma once

#include "kizzasi/autograd/scans.h"

namespace kizzasi::autograd {

// y[b, t, e] = sum over s <= t of k[s, e] x[b, t - s, e]: x (batch, time, E), k (time, E). O(log time) an element, whatever the kernel.
template <typename T>
Var<T> causal_convolution(Var<T> x, Var<T> k);

// The same outputs and gradients as the scans of these names, but for rounding; the kernel by one scan of the length of the window, the
// batch by transforms.
template <typename T>
Var<T> diagonal_convolution(Var<T> x, Var<T> a, Var<T> c, Var<T> d);
template <typename T>
Var<T> dplr_convolution(Var<T> x, const DplrCoefficients<T>& k);

// Is the convolution the faster form for so many sequences, frames and complex states of a channel? cost_of_state: of one state in the
// scan, that of the diagonal one being 1.
bool convolution_pays(std::size_t batch, std::size_t time, std::size_t states, double cost_of_state);
inline constexpr double kDiagonalState = 1, kDplrState = 2.7;

// Whichever of the two forms is the faster.
template <typename T>
Var<T> diagonal_system(Var<T> x, Var<T> a, Var<T> c, Var<T> d);
template <typename T>
Var<T> dplr_system(Var<T> x, const DplrCoefficients<T>& k);

}  // namespace kizzasi::autograd
