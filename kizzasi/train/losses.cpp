#include "kizzasi/train/losses.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <vector>

#include "kizzasi/autograd/rowwise.h"
#include "kizzasi/decode/standard_laws.h"
#include "kizzasi/train/gamma_function.h"

namespace kizzasi::losses {

namespace {

const double kHalfLogTwoPi = 0.5 * std::log(2 * std::numbers::pi);

double sign(double x) { return (x > 0) - (x < 0); }
double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// f(a, b, da, db): the value, and its derivatives by reference.
template <typename T, typename F>
Var<T> of_two(Var<T> a, Var<T> b, F f) {
  assert(a.dims() == b.dims());
  return rowwise<T, 2>(a.dims(), {a, b}, [f](const auto& in, const auto& out) {
    double da = 0, db = 0;
    const double y = f(static_cast<double>(*in[0]), static_cast<double>(*in[1]), da, db);
    *out[0] = static_cast<T>(da);
    *out[1] = static_cast<T>(db);
    return y;
  });
}

template <typename T, typename F>
Var<T> of_three(Var<T> a, Var<T> b, Var<T> c, F f) {
  assert(a.dims() == b.dims() && a.dims() == c.dims());
  return rowwise<T, 3>(a.dims(), {a, b, c}, [f](const auto& in, const auto& out) {
    double da = 0, db = 0, dc = 0;
    const double y = f(static_cast<double>(*in[0]), static_cast<double>(*in[1]), static_cast<double>(*in[2]), da, db, dc);
    *out[0] = static_cast<T>(da);
    *out[1] = static_cast<T>(db);
    *out[2] = static_cast<T>(dc);
    return y;
  });
}

// A function f(e, de) of the error input - target.
template <typename T, typename F>
Var<T> of_error(Var<T> input, Var<T> target, F f) {
  return of_two(input, target, [f](double x, double t, double& dx, double& dt) {
    const double y = f(x - t, dx);
    dt = -dx;
    return y;
  });
}

// The softmax of `count` logits into `out`; returns log(sum(exp(logits))).
template <typename T>
double softmax_of(const T* logits, std::size_t count, double* out) {
  const double highest = static_cast<double>(*std::max_element(logits, logits + count));
  double total = 0;
  for (std::size_t k = 0; k < count; ++k) total += out[k] = std::exp(static_cast<double>(logits[k]) - highest);
  for (std::size_t k = 0; k < count; ++k) out[k] /= total;
  return highest + std::log(total);
}

}  // namespace

template <typename T>
Var<T> squared_error(Var<T> input, Var<T> target) {
  return of_error(input, target, [](double e, double& de) {
    de = 2 * e;
    return e * e;
  });
}

template <typename T>
Var<T> absolute_error(Var<T> input, Var<T> target) {
  return of_error(input, target, [](double e, double& de) {
    de = sign(e);
    return std::abs(e);
  });
}

template <typename T>
Var<T> huber(Var<T> input, Var<T> target, double delta) {
  return of_error(input, target, [delta](double e, double& de) {
    de = std::clamp(e, -delta, delta);
    return std::abs(e) <= delta ? 0.5 * e * e : delta * (std::abs(e) - 0.5 * delta);
  });
}

template <typename T>
Var<T> smooth_l1(Var<T> input, Var<T> target, double beta) {
  return of_error(input, target, [beta](double e, double& de) {
    de = std::clamp(e / beta, -1.0, 1.0);
    return std::abs(e) <= beta ? 0.5 * e * e / beta : std::abs(e) - 0.5 * beta;
  });
}

template <typename T>
Var<T> pinball(Var<T> input, Var<T> target, double level) {
  return of_error(input, target, [level](double e, double& de) {
    de = e < 0 ? -level : e > 0 ? 1 - level : 0.5 - level;
    return std::max(-level * e, (1 - level) * e);
  });
}

template <typename T>
Var<T> gaussian_nll(Var<T> input, Var<T> target, Var<T> variance, bool full, double epsilon) {
  return of_three(input, target, variance, [full, epsilon](double x, double t, double variance_of, double& dx, double& dt, double& dv) {
    const double v = std::max(variance_of, epsilon), e = x - t;
    dx = e / v;
    dt = -dx;
    dv = 0.5 * (1 - e * e / v) / v;
    return 0.5 * (std::log(v) + e * e / v) + (full ? kHalfLogTwoPi : 0);
  });
}

template <typename T>
Var<T> normal_nll(Var<T> location, Var<T> scale, Var<T> target) {
  return of_three(location, scale, target, [](double m, double s, double t, double& dm, double& ds, double& dt) {
    const double z = (t - m) / s;
    dt = z / s;
    dm = -dt;
    ds = (1 - z * z) / s;
    return 0.5 * z * z + std::log(s) + kHalfLogTwoPi;
  });
}

template <typename T>
Var<T> laplace_nll(Var<T> location, Var<T> scale, Var<T> target) {
  return of_three(location, scale, target, [](double m, double s, double t, double& dm, double& ds, double& dt) {
    const double z = (t - m) / s;
    dt = sign(z) / s;
    dm = -dt;
    ds = (1 - std::abs(z)) / s;
    return std::abs(z) + std::log(2 * s);
  });
}

template <typename T>
Var<T> student_t_nll(Var<T> freedom, Var<T> location, Var<T> scale, Var<T> target) {
  assert(freedom.dims() == location.dims() && location.dims() == scale.dims() && scale.dims() == target.dims());
  return rowwise<T, 4>(freedom.dims(), {freedom, location, scale, target}, [](const auto& in, const auto& out) {
    const double v = static_cast<double>(*in[0]), s = static_cast<double>(*in[2]);
    const double z = (static_cast<double>(*in[3]) - static_cast<double>(*in[1])) / s;
    const double slope = (v + 1) * z / (v + z * z), log_term = std::log1p(z * z / v);
    *out[0] = static_cast<T>(0.5 / v - 0.5 * digamma_half_step(0.5 * v) + 0.5 * log_term - 0.5 * slope * z / v);
    *out[1] = static_cast<T>(-slope / s);
    *out[2] = static_cast<T>((1 - slope * z) / s);
    *out[3] = static_cast<T>(slope / s);
    return std::log(s) + 0.5 * std::log(v * std::numbers::pi) - log_gamma_half_step(0.5 * v) + 0.5 * (v + 1) * log_term;
  });
}

template <typename T>
Var<T> poisson_nll(Var<T> log_rate, Var<T> target) {
  return of_two(log_rate, target, [](double x, double t, double& dx, double& dt) {
    const double rate = std::exp(x);
    dx = rate - t;
    dt = -x;
    return rate - t * x;
  });
}

template <typename T>
Var<T> negative_binomial_nll(Var<T> total, Var<T> logits, Var<T> target) {
  return of_three(total, logits, target, [](double r, double x, double t, double& dr, double& dx, double& dt) {
    const double failure = softplus(x), success = softplus(-x);  // -log of both probabilities
    dr = failure - digamma(r + t) + digamma(r);
    dx = r * sigmoid(x) - t * sigmoid(-x);
    dt = success - digamma(r + t) + digamma(1 + t);
    return r * failure + t * success - log_gamma(r + t) + log_gamma(1 + t) + log_gamma(r);
  });
}

template <typename T>
Var<T> mixture_nll(Var<T> logits, Var<T> location, Var<T> scale, Var<T> target) {
  assert(logits.dims() == location.dims() && logits.dims() == scale.dims());
  const std::size_t count = logits.dims().back();
  assert(elements(target.dims()) * count == elements(logits.dims()));
  std::vector<double> prior(count), joint(count), posterior(count);
  return rowwise<T, 4>(target.dims(), {logits, location, scale, target}, [&](const auto& in, const auto& out) {
    const double normalizer = softmax_of(in[0], count, prior.data()), t = static_cast<double>(*in[3]);
    for (std::size_t k = 0; k < count; ++k) {
      const double s = static_cast<double>(in[2][k]), z = (t - static_cast<double>(in[1][k])) / s;
      joint[k] = static_cast<double>(in[0][k]) - normalizer - 0.5 * z * z - std::log(s) - kHalfLogTwoPi;
    }
    const double log_density = softmax_of(joint.data(), count, posterior.data());
    double dt = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const double s = static_cast<double>(in[2][k]), z = (t - static_cast<double>(in[1][k])) / s;
      out[0][k] = static_cast<T>(prior[k] - posterior[k]);
      out[1][k] = static_cast<T>(-posterior[k] * z / s);
      out[2][k] = static_cast<T>(posterior[k] * (1 - z * z) / s);
      dt += posterior[k] * z / s;
    }
    *out[3] = static_cast<T>(dt);
    return -log_density;
  });
}

template <typename T>
Var<T> crps_gaussian(Var<T> location, Var<T> scale, Var<T> target) {
  return of_three(location, scale, target, [](double m, double s, double t, double& dm, double& ds, double& dt) {
    const double z = (t - m) / s, density = std::exp(normal_log_density(z));
    dt = std::erf(z / std::numbers::sqrt2);  // 2 Phi(z) - 1
    dm = -dt;
    ds = 2 * density - std::numbers::inv_sqrtpi;
    return s * (z * dt + ds);
  });
}

template <typename T>
Var<T> crps_ensemble(Var<T> ensemble, Var<T> target, bool fair) {
  const std::size_t members = ensemble.dims().back();
  assert(elements(target.dims()) * members == elements(ensemble.dims()));
  const double m = static_cast<double>(members), pairs = fair ? m * (m - 1) : m * m;
  return rowwise<T, 2>(target.dims(), {ensemble, target}, [members, m, pairs](const auto& in, const auto& out) {
    const double t = static_cast<double>(*in[1]);
    double error = 0, spread = 0, dt = 0;
    for (std::size_t i = 0; i < members; ++i) {
      const double x = static_cast<double>(in[0][i]);
      double order = 0;  // members below less members above
      for (std::size_t k = 0; k < members; ++k) {
        const double apart = x - static_cast<double>(in[0][k]);
        order += sign(apart);
        spread += std::abs(apart);
      }
      error += std::abs(x - t);
      dt -= sign(x - t);
      out[0][i] = static_cast<T>(sign(x - t) / m - (order == 0 ? 0 : order / pairs));
    }
    *out[1] = static_cast<T>(dt / m);
    return error / m - (spread == 0 ? 0 : 0.5 * spread / pairs);
  });
}

template <typename T>
Var<T> cross_entropy(Var<T> logits, std::span<const std::int64_t> targets, const CrossEntropyOptions& options) {
  const std::size_t classes = logits.dims().back();
  assert(targets.size() * classes == elements(logits.dims()));
  const auto weight_of = [&](std::size_t c) { return options.weights.empty() ? 1.0 : options.weights[c]; };
  double all_weights = 0;
  for (std::size_t c = 0; c < classes; ++c) all_weights += weight_of(c);
  const double even = options.smoothing / static_cast<double>(classes);
  std::vector<double> p(classes);
  std::size_t row = 0;
  return rowwise<T, 1>(leading(logits.dims()), {logits}, [&](const auto& in, const auto& out) {
    const std::int64_t target = targets[row++];
    if (target == options.ignored) {
      std::fill_n(out[0], classes, T{0});
      return 0.0;
    }
    const auto chosen = static_cast<std::size_t>(target);
    const double normalizer = softmax_of(in[0], classes, p.data()), own = (1 - options.smoothing) * weight_of(chosen);
    double loss = own * (normalizer - static_cast<double>(in[0][chosen]));
    for (std::size_t c = 0; c < classes; ++c) {
      if (even > 0) loss += even * weight_of(c) * (normalizer - static_cast<double>(in[0][c]));
      out[0][c] = static_cast<T>(own * (p[c] - (c == chosen ? 1 : 0)) + even * (p[c] * all_weights - weight_of(c)));
    }
    return loss;
  });
}

template <typename T>
Var<T> cross_entropy_mean(Var<T> logits, std::span<const std::int64_t> targets, const CrossEntropyOptions& options) {
  double weight = 0;
  for (const std::int64_t target : targets) {
    if (target != options.ignored) weight += options.weights.empty() ? 1.0 : options.weights[static_cast<std::size_t>(target)];
  }
  return autograd::scale(autograd::sum(cross_entropy(logits, targets, options)), static_cast<T>(weight > 0 ? 1 / weight : 0));
}

template <typename T>
Var<T> bce_with_logits(Var<T> logits, Var<T> target) {
  return of_two(logits, target, [](double x, double t, double& dx, double& dt) {
    dx = sigmoid(x) - t;
    dt = -x;
    return softplus(x) - t * x;
  });
}

template <typename T>
Var<T> kl_divergence(Var<T> logits, Var<T> probabilities) {
  assert(logits.dims() == probabilities.dims());
  const std::size_t classes = logits.dims().back();
  std::vector<double> q(classes);
  return rowwise<T, 2>(leading(logits.dims()), {logits, probabilities}, [&](const auto& in, const auto& out) {
    const double normalizer = softmax_of(in[0], classes, q.data());
    double loss = 0, total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += static_cast<double>(in[1][c]);
    for (std::size_t c = 0; c < classes; ++c) {
      const double p = static_cast<double>(in[1][c]);
      if (p > 0) loss += p * (std::log(p) - static_cast<double>(in[0][c]) + normalizer);
      out[0][c] = static_cast<T>(q[c] * total - p);
      out[1][c] = T{0};
    }
    return loss;
  });
}

template <typename T>
Var<T> cosine_distance(Var<T> a, Var<T> b) {
  assert(a.dims() == b.dims());
  const std::size_t width = a.dims().back();
  return rowwise<T, 2>(leading(a.dims()), {a, b}, [width](const auto& in, const auto& out) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double x = static_cast<double>(in[0][i]), y = static_cast<double>(in[1][i]);
      ab += x * y;
      aa += x * x;
      bb += y * y;
    }
    constexpr double floor = 1e-8;
    const double a_norm = std::max(std::sqrt(aa), floor), b_norm = std::max(std::sqrt(bb), floor), cosine = ab / (a_norm * b_norm);
    const double a_back = a_norm > floor ? cosine / (a_norm * a_norm) : 0, b_back = b_norm > floor ? cosine / (b_norm * b_norm) : 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double x = static_cast<double>(in[0][i]), y = static_cast<double>(in[1][i]);
      out[0][i] = static_cast<T>(a_back * x - y / (a_norm * b_norm));
      out[1][i] = static_cast<T>(b_back * y - x / (a_norm * b_norm));
    }
    return 1 - cosine;
  });
}

template Var<float> squared_error(Var<float>, Var<float>);
template Var<double> squared_error(Var<double>, Var<double>);
template Var<float> absolute_error(Var<float>, Var<float>);
template Var<double> absolute_error(Var<double>, Var<double>);
template Var<float> huber(Var<float>, Var<float>, double);
template Var<double> huber(Var<double>, Var<double>, double);
template Var<float> smooth_l1(Var<float>, Var<float>, double);
template Var<double> smooth_l1(Var<double>, Var<double>, double);
template Var<float> pinball(Var<float>, Var<float>, double);
template Var<double> pinball(Var<double>, Var<double>, double);
template Var<float> gaussian_nll(Var<float>, Var<float>, Var<float>, bool, double);
template Var<double> gaussian_nll(Var<double>, Var<double>, Var<double>, bool, double);
template Var<float> normal_nll(Var<float>, Var<float>, Var<float>);
template Var<double> normal_nll(Var<double>, Var<double>, Var<double>);
template Var<float> laplace_nll(Var<float>, Var<float>, Var<float>);
template Var<double> laplace_nll(Var<double>, Var<double>, Var<double>);
template Var<float> student_t_nll(Var<float>, Var<float>, Var<float>, Var<float>);
template Var<double> student_t_nll(Var<double>, Var<double>, Var<double>, Var<double>);
template Var<float> poisson_nll(Var<float>, Var<float>);
template Var<double> poisson_nll(Var<double>, Var<double>);
template Var<float> negative_binomial_nll(Var<float>, Var<float>, Var<float>);
template Var<double> negative_binomial_nll(Var<double>, Var<double>, Var<double>);
template Var<float> mixture_nll(Var<float>, Var<float>, Var<float>, Var<float>);
template Var<double> mixture_nll(Var<double>, Var<double>, Var<double>, Var<double>);
template Var<float> crps_gaussian(Var<float>, Var<float>, Var<float>);
template Var<double> crps_gaussian(Var<double>, Var<double>, Var<double>);
template Var<float> crps_ensemble(Var<float>, Var<float>, bool);
template Var<double> crps_ensemble(Var<double>, Var<double>, bool);
template Var<float> cross_entropy(Var<float>, std::span<const std::int64_t>, const CrossEntropyOptions&);
template Var<double> cross_entropy(Var<double>, std::span<const std::int64_t>, const CrossEntropyOptions&);
template Var<float> cross_entropy_mean(Var<float>, std::span<const std::int64_t>, const CrossEntropyOptions&);
template Var<double> cross_entropy_mean(Var<double>, std::span<const std::int64_t>, const CrossEntropyOptions&);
template Var<float> bce_with_logits(Var<float>, Var<float>);
template Var<double> bce_with_logits(Var<double>, Var<double>);
template Var<float> kl_divergence(Var<float>, Var<float>);
template Var<double> kl_divergence(Var<double>, Var<double>);
template Var<float> cosine_distance(Var<float>, Var<float>);
template Var<double> cosine_distance(Var<double>, Var<double>);

}  // namespace kizzasi::losses
