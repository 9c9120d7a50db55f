// Losses of predictions, on the tape. Each gives one number a row; `autograd::mean` or `sum` makes them one. T: float or double (the
// arithmetic is in double either way).
#pragma once

#include <cstdint>
#include <span>

#include "kizzasi/autograd/ops.h"

namespace kizzasi::losses {

using autograd::Var;

// ---- of a value and its target, elementwise: dims of both -> the same dims.

template <typename T>
Var<T> squared_error(Var<T> input, Var<T> target);
template <typename T>
Var<T> absolute_error(Var<T> input, Var<T> target);
// e^2 / 2 up to |e| = delta, then delta (|e| - delta / 2) (Huber 1964).
template <typename T>
Var<T> huber(Var<T> input, Var<T> target, double delta);
// huber / beta: slope 1 far away.
template <typename T>
Var<T> smooth_l1(Var<T> input, Var<T> target, double beta);
// max(level (t - x), (level - 1) (t - x)) (Koenker and Bassett 1978); at x = t the derivative is the mean of both sides.
template <typename T>
Var<T> pinball(Var<T> input, Var<T> target, double level);

template <typename T>
Var<T> mse(Var<T> input, Var<T> target) {
  return autograd::mean(squared_error(input, target));
}
template <typename T>
Var<T> mae(Var<T> input, Var<T> target) {
  return autograd::mean(absolute_error(input, target));
}

// ---- negative log likelihoods, elementwise over equal dims.

// (log v + e^2 / v) / 2, v = max(variance, epsilon); the derivative by the variance is that at v, also where v is the floor.
// `full` adds log(2 pi) / 2.
template <typename T>
Var<T> gaussian_nll(Var<T> input, Var<T> target, Var<T> variance, bool full = false, double epsilon = 1e-6);
template <typename T>
Var<T> normal_nll(Var<T> location, Var<T> scale, Var<T> target);
template <typename T>
Var<T> laplace_nll(Var<T> location, Var<T> scale, Var<T> target);
template <typename T>
Var<T> student_t_nll(Var<T> freedom, Var<T> location, Var<T> scale, Var<T> target);
// exp(x) - t x: x the logarithm of the rate, without the part that depends on the target alone.
template <typename T>
Var<T> poisson_nll(Var<T> log_rate, Var<T> target);
// Number of successes before `total` failures, logit of a success.
template <typename T>
Var<T> negative_binomial_nll(Var<T> total, Var<T> logits, Var<T> target);
// A mixture of K Gaussians: logits, location, scale (..., K); target (...) -> (...).
template <typename T>
Var<T> mixture_nll(Var<T> logits, Var<T> location, Var<T> scale, Var<T> target);

// ---- continuous ranked probability score.

// Of a Gaussian in closed form (Gneiting et al. 2005), elementwise.
template <typename T>
Var<T> crps_gaussian(Var<T> location, Var<T> scale, Var<T> target);
// Of an ensemble (..., members), target (...): mean |x - t| - sum |x - x'| / 2m^2; `fair` divides by 2m(m - 1) (Ferro 2014).
template <typename T>
Var<T> crps_ensemble(Var<T> ensemble, Var<T> target, bool fair);

// ---- of classes.

struct CrossEntropyOptions {
  double smoothing = 0;               // share of the target that is spread evenly over all classes
  std::span<const double> weights{};  // of each class; empty: ones
  std::int64_t ignored = -100;        // target that counts for nothing
};
// logits (n, classes), targets in [0, classes) or ignored -> (n), 0 where ignored.
template <typename T>
Var<T> cross_entropy(Var<T> logits, std::span<const std::int64_t> targets, const CrossEntropyOptions& options = {});
// The sum over the rows divided by the weights of their targets; 0 where all are ignored.
template <typename T>
Var<T> cross_entropy_mean(Var<T> logits, std::span<const std::int64_t> targets, const CrossEntropyOptions& options = {});
// Elementwise; target: a probability.
template <typename T>
Var<T> bce_with_logits(Var<T> logits, Var<T> target);
// sum p log(p / softmax(logits)) over the last dimension; probabilities are constants.
template <typename T>
Var<T> kl_divergence(Var<T> logits, Var<T> probabilities);

// 1 - cosine of the angle, over the last dimension; norms below 1e-8 count as 1e-8.
template <typename T>
Var<T> cosine_distance(Var<T> a, Var<T> b);

// ---- of whole signals.

// Soft dynamic time warping (Cuturi and Blondel 2017) under the squared distance: x (batch, n, d), y (batch, m, d) -> (batch).
template <typename T>
Var<T> soft_dtw(Var<T> x, Var<T> y, double gamma);

// One resolution of a spectrogram. The window is a periodic Hann one of `window` samples in the middle of a frame of `size` (a power of
// two); frames are centred on every `hop`-th sample, the signal mirrored beyond its ends.
struct Spectrogram {
  std::size_t size = 1024, hop = 256, window = 1024;
};
// Spectral convergence plus the mean difference of log magnitudes (Yamamoto et al. 2020), as auraloss has them; the mean over resolutions.
// input, target: (..., time) of the same dims, longer than half of every size -> one element.
template <typename T>
Var<T> stft(Var<T> input, Var<T> target, std::span<const Spectrogram> resolutions);

}  // namespace kizzasi::losses
