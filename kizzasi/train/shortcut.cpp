#include "kizzasi/train/shortcut.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "kizzasi/kernels/ridge.h"

namespace kizzasi {
namespace {

constexpr std::size_t kShards = 8;          // fixed, and summed in order, so that the bits do not depend on the threads
constexpr std::size_t kRowsAtOnce = 8;      // rows whose products are added to the moments together
constexpr std::size_t kOutputsAtOnce = 16;  // outputs solved together
constexpr std::size_t kWindowsAtOnce = 256;
constexpr std::size_t kResidualWindows = 4000;
constexpr std::size_t kMostWindows = 60'000;
constexpr double kMostMomentBytes = 8e9;  // of all shards together
constexpr std::array<double, 10> kLambdas{1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};

// Sums of products over windows. Every output (a step ahead of a target) shares the `common` features (recent past and the constant) and
// has `own` ones (its slots and its step's known-future values).
struct Moments {
  std::size_t common, own, outputs;
  std::vector<double> cc;  // (common, common), upper triangle
  std::vector<double> cy;  // (outputs, common)
  std::vector<double> co;  // (outputs, own, common)
  std::vector<double> oo;  // (outputs, own, own)
  std::vector<double> oy;  // (outputs, own)
  std::vector<double> yy;  // (outputs)
  double windows = 0;      // how many
  double weight = 0;       // sum of the squares of what an error counts in each

  Moments(std::size_t c, std::size_t o, std::size_t out)
      : common(c), own(o), outputs(out), cc(c * c), cy(out * c), co(out * o * c), oo(out * o * o), oy(out * o), yy(out) {}

  void add(const Moments& other) {
    const auto sum = [](std::vector<double>& a, const std::vector<double>& b) {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    };
    sum(cc, other.cc), sum(cy, other.cy), sum(co, other.co), sum(oo, other.oo), sum(oy, other.oy), sum(yy, other.yy);
    windows += other.windows;
    weight += other.weight;
  }
};

// Of the sums over training and validation, every shard with its own.
double moment_bytes(const SignalShape& s) {
  const auto common = static_cast<double>(s.recent * s.past() + 1), own = static_cast<double>(s.seasons + s.known);
  const auto outputs = static_cast<double>(s.horizon * s.targets);
  return 8.0 * (kShards + 1) * (common * common + outputs * (1 + own) * (common + own + 1));
}

// target[j] += sum over rows of factor(row) * x(row, j), j in [begin, end).
void accumulate(std::span<const double> x, std::size_t width, std::size_t rows, const double* factor, std::size_t factor_stride,
                double* target, std::size_t begin) {
  if (rows == kRowsAtOnce) {
    const double f0 = factor[0], f1 = factor[factor_stride], f2 = factor[2 * factor_stride], f3 = factor[3 * factor_stride];
    const double f4 = factor[4 * factor_stride], f5 = factor[5 * factor_stride], f6 = factor[6 * factor_stride],
                 f7 = factor[7 * factor_stride];
    const double* r = x.data();
    for (std::size_t j = begin; j < width; ++j) {
      target[j] += ((f0 * r[j] + f1 * r[width + j]) + (f2 * r[2 * width + j] + f3 * r[3 * width + j])) +
                   ((f4 * r[4 * width + j] + f5 * r[5 * width + j]) + (f6 * r[6 * width + j] + f7 * r[7 * width + j]));
    }
    return;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t j = begin; j < width; ++j) target[j] += factor[row * factor_stride] * x[row * width + j];
  }
}

// One output's own features: (seasons) of its target, then (known) of its step.
void own_features(const SignalShape& s, const SignalBatch& batch, std::size_t window, std::size_t output, std::span<double> out) {
  const std::size_t features = s.slots() + s.known;
  const float* ahead = batch.ahead.data() + (window * s.horizon + output / s.targets) * features;
  for (std::size_t k = 0; k < s.seasons; ++k) out[k] = ahead[k * s.past() + output % s.targets];
  std::copy_n(ahead + s.slots(), s.known, out.begin() + static_cast<std::ptrdiff_t>(s.seasons));
}

void common_features(const SignalShape& s, const SignalBatch& batch, std::size_t window, std::span<double> out) {
  const std::size_t recent = s.recent * s.past();
  std::copy_n(batch.recent.data() + window * recent, recent, out.begin());
  out[recent] = s.intercept ? 1 : 0;
}

bool complete(const SignalShape& s, const Answers& answers, std::size_t window) {
  const std::size_t n = s.horizon * s.targets;
  const float* weight = answers.weight.data() + window * n;
  return std::all_of(weight, weight + n, [](float w) { return w > 0; });
}

// What an error counts in a window: the mean over its targets, since all of them share the sums over the recent past.
double weight_of(const SignalShape& s, const Answers& answers, std::size_t window) {
  double sum = 0;
  for (std::size_t o = 0; o < s.targets; ++o) sum += static_cast<double>(answers.weight[window * s.horizon * s.targets + o]);
  return sum / static_cast<double>(s.targets);
}

void add_windows(const SignalShape& s, const SignalBatch& batch, const Answers& answers, Moments& m) {
  const std::size_t outputs = m.outputs;
  std::vector<std::size_t> usable;
  for (std::size_t w = 0; w < batch.windows; ++w) {
    if (complete(s, answers, w)) usable.push_back(w);
  }
  std::vector<double> x(kRowsAtOnce * m.common), own(kRowsAtOnce * m.own), y(kRowsAtOnce * outputs), weights(kRowsAtOnce);
  for (std::size_t begin = 0; begin < usable.size(); begin += kRowsAtOnce) {
    const std::size_t rows = std::min(kRowsAtOnce, usable.size() - begin);
    for (std::size_t r = 0; r < rows; ++r) {
      weights[r] = weight_of(s, answers, usable[begin + r]);
      common_features(s, batch, usable[begin + r], std::span(x).subspan(r * m.common, m.common));
      for (std::size_t o = 0; o < outputs; ++o) y[r * outputs + o] = weights[r] * answers.values[usable[begin + r] * outputs + o];
      for (double& value : std::span(x).subspan(r * m.common, m.common)) value *= weights[r];
      m.weight += weights[r] * weights[r];
    }
    for (std::size_t i = 0; i < m.common; ++i) accumulate(x, m.common, rows, x.data() + i, m.common, m.cc.data() + i * m.common, i);
    for (std::size_t o = 0; o < outputs; ++o) {
      accumulate(x, m.common, rows, y.data() + o, outputs, m.cy.data() + o * m.common, 0);
      for (std::size_t r = 0; r < rows; ++r) m.yy[o] += y[r * outputs + o] * y[r * outputs + o];
      if (m.own == 0) continue;
      for (std::size_t r = 0; r < rows; ++r) {
        own_features(s, batch, usable[begin + r], o, std::span(own).subspan(r * m.own, m.own));
        for (double& value : std::span(own).subspan(r * m.own, m.own)) value *= weights[r];
      }
      for (std::size_t k = 0; k < m.own; ++k) {
        accumulate(x, m.common, rows, own.data() + k, m.own, m.co.data() + (o * m.own + k) * m.common, 0);
        accumulate(own, m.own, rows, own.data() + k, m.own, m.oo.data() + (o * m.own + k) * m.own, 0);
        for (std::size_t r = 0; r < rows; ++r) m.oy[o * m.own + k] += own[r * m.own + k] * y[r * outputs + o];
      }
    }
    m.windows += static_cast<double>(rows);
  }
}

Moments moments(const Dataset& data, const std::vector<RowRange>& ranges, ThreadPool& pool) {
  const SignalShape& s = data.shape();
  const std::size_t common = s.recent * s.past() + 1, own = s.seasons + s.known, outputs = s.horizon * s.targets;
  std::vector<std::pair<RowRange, Origin>> all;
  for (const RowRange& range : ranges) {
    for (const Origin& origin : data.origins(range)) all.emplace_back(range, origin);
  }
  const std::size_t stride = all.size() / kMostWindows + 1;
  std::vector<std::pair<RowRange, Origin>> chosen;
  for (std::size_t i = 0; i < all.size(); i += stride) chosen.push_back(all[i]);

  std::vector<Moments> shards(kShards, Moments(common, own, outputs));
  const std::array<std::size_t, 1> here{0};
  pool.run(kShards, [&](std::size_t shard) {
    SignalBatch batch;
    Answers answers;
    const std::size_t begin = chosen.size() * shard / kShards, end = chosen.size() * (shard + 1) / kShards;
    for (std::size_t i = begin; i < end; i += kWindowsAtOnce) {
      std::vector<Origin> windows;
      std::vector<RowRange> bounds;
      for (std::size_t j = i; j < std::min(end, i + kWindowsAtOnce); ++j) {
        bounds.push_back(chosen[j].first);
        windows.push_back(chosen[j].second);
      }
      data.fill(windows, here, bounds, batch, answers);
      add_windows(s, batch, answers, shards[shard]);
    }
  });
  Moments total = std::move(shards[0]);
  for (std::size_t shard = 1; shard < kShards; ++shard) total.add(shards[shard]);
  return total;
}

double dot(const double* a, const double* b, std::size_t n) { return std::inner_product(a, a + n, b, 0.0); }

struct Solution {
  std::vector<double> common;  // (outputs, common)
  std::vector<double> own;     // (outputs, own)
};

// All outputs for one lambda: the common block C is factored once; each output then solves for its own features by the Schur complement
// O - B^T C^-1 B, where B holds the sums of products of common and own features.
bool solve(const Moments& m, double lambda, ThreadPool& pool, Solution& w) {
  const std::size_t c = m.common, k = m.own, columns = k + 1;
  double trace = 0;
  for (std::size_t i = 0; i + 1 < c; ++i) trace += m.cc[i * c + i];
  const double least = 1e-12 * m.weight;  // keeps the system regular where a feature never changes
  const double penalty = lambda * (c > 1 ? trace / static_cast<double>(c - 1) : m.weight) + least;
  std::vector<double> u = m.cc;
  for (std::size_t i = 0; i < c; ++i) u[i * c + i] += i + 1 < c ? penalty : least;
  if (!kernels::cholesky(u, c)) return false;
  w.common.assign(m.outputs * c, 0.0);
  w.own.assign(m.outputs * k, 0.0);
  std::vector<std::uint8_t> good(m.outputs, 1);
  const std::size_t groups = (m.outputs + kOutputsAtOnce - 1) / kOutputsAtOnce;
  pool.run(groups, [&](std::size_t group) {
    const std::size_t begin = group * kOutputsAtOnce, end = std::min(m.outputs, begin + kOutputsAtOnce), width = (end - begin) * columns;
    std::vector<double> z(c * width);  // (common, outputs of the group, 1 + own): C^-1 r, then C^-1 B
    for (std::size_t o = begin; o < end; ++o) {
      for (std::size_t i = 0; i < c; ++i) {
        double* at = z.data() + i * width + (o - begin) * columns;
        at[0] = m.cy[o * c + i];
        for (std::size_t q = 0; q < k; ++q) at[1 + q] = m.co[(o * k + q) * c + i];
      }
    }
    kernels::cholesky_solve(u, c, z, width);
    std::vector<double> schur(k * k);
    for (std::size_t o = begin; o < end; ++o) {
      const double* own_columns = z.data() + (o - begin) * columns;
      const auto product = [&](std::size_t q, std::size_t column) {  // of the q-th own feature's sums with a solved column
        double sum = 0;
        for (std::size_t i = 0; i < c; ++i) sum += m.co[(o * k + q) * c + i] * own_columns[i * width + column];
        return sum;
      };
      double* own = w.own.data() + o * k;
      for (std::size_t q = 0; q < k; ++q) {
        own[q] = m.oy[o * k + q] - product(q, 0);
        for (std::size_t r = q; r < k; ++r) schur[q * k + r] = m.oo[(o * k + q) * k + r] - product(q, 1 + r);
        schur[q * k + q] += penalty;
      }
      if (k > 0) {
        if (!kernels::cholesky(schur, k)) {
          good[o] = 0;
          continue;
        }
        kernels::cholesky_solve(schur, k, {own, k}, 1);
      }
      for (std::size_t i = 0; i < c; ++i) {
        double value = own_columns[i * width];
        for (std::size_t q = 0; q < k; ++q) value -= own_columns[i * width + 1 + q] * own[q];
        w.common[o * c + i] = value;
      }
    }
  });
  return std::all_of(good.begin(), good.end(), [](std::uint8_t g) { return g != 0; });
}

// Mean squared error of one output's solution on the windows of `m`.
double error(const Moments& m, const Solution& w, std::size_t o) {
  const std::size_t c = m.common, k = m.own;
  const double* wc = w.common.data() + o * c;
  const double* wo = w.own.data() + o * k;
  double sum = m.yy[o] - 2 * dot(wc, m.cy.data() + o * c, c) - 2 * dot(wo, m.oy.data() + o * k, k);
  for (std::size_t i = 0; i < c; ++i) {
    sum += wc[i] * wc[i] * m.cc[i * c + i] + 2 * wc[i] * dot(wc + i + 1, m.cc.data() + i * c + i + 1, c - i - 1);
  }
  for (std::size_t i = 0; i < k; ++i) {
    sum += wo[i] * dot(wo, m.oo.data() + (o * k + i) * k, k) + 2 * wo[i] * dot(wc, m.co.data() + (o * k + i) * c, c);
  }
  return sum / m.weight;
}

// Chooses among solutions with different penalties. One penalty for all outputs is the rule, since a choice among many is overfitted to
// the validation part; an output that is much better off with another has its own (the first steps of a smooth signal, say).
class Choice {
 public:
  explicit Choice(const Moments& judge) : judge_(judge), own_(judge.outputs, {Solution{}, 0, kInfinity}) {}

  void consider(const Solution& trial, double lambda) {
    std::vector<double> errors(judge_.outputs);
    for (std::size_t o = 0; o < judge_.outputs; ++o) {
      errors[o] = error(judge_, trial, o);
      if (errors[o] < own_[o].error) own_[o] = {part(trial, o), lambda, errors[o]};
    }
    const double mean = std::reduce(errors.begin(), errors.end()) / static_cast<double>(errors.size());
    if (!(mean < mean_)) return;
    mean_ = mean;
    lambda_ = lambda;
    shared_ = trial;
    errors_ = std::move(errors);
  }

  // False where no solution was finite.
  bool finish(ShortcutFit& fit, Solution& chosen) const {
    if (shared_.common.empty()) return false;
    chosen = shared_;
    fit.lambda = fit.least_lambda = fit.most_lambda = lambda_;
    for (std::size_t o = 0; o < judge_.outputs; ++o) {
      const bool apart = own_[o].error < kMuchBetter * errors_[o];
      fit.validation_mse += (apart ? own_[o].error : errors_[o]) / static_cast<double>(judge_.outputs);
      if (!apart) continue;
      std::copy(own_[o].part.common.begin(), own_[o].part.common.end(), chosen.common.begin() + at(o, judge_.common));
      std::copy(own_[o].part.own.begin(), own_[o].part.own.end(), chosen.own.begin() + at(o, judge_.own));
      fit.least_lambda = std::min(fit.least_lambda, own_[o].lambda);
      fit.most_lambda = std::max(fit.most_lambda, own_[o].lambda);
    }
    return true;
  }

 private:
  static constexpr double kMuchBetter = 0.8;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Own {
    Solution part;  // of this output alone
    double lambda, error;
  };
  static std::ptrdiff_t at(std::size_t o, std::size_t n) { return static_cast<std::ptrdiff_t>(o * n); }
  Solution part(const Solution& all, std::size_t o) const {
    const auto cut = [&](const std::vector<double>& from, std::size_t n) {
      return std::vector<double>(from.begin() + at(o, n), from.begin() + at(o + 1, n));
    };
    return {cut(all.common, judge_.common), cut(all.own, judge_.own)};
  }

  const Moments& judge_;
  std::vector<Own> own_;        // the best of each output
  Solution shared_;             // the best for all together,
  std::vector<double> errors_;  // its errors by output
  double lambda_ = 0, mean_ = kInfinity;
};

float inverse_softplus(double y) { return static_cast<float>(y > 20 ? y : std::log(std::expm1(std::max(y, 1e-4)))); }

// The training residuals of one output as the scale of its head and the start of the parameters in that unit.
float set_head(const HeadConfig& head, bool intercept, std::vector<double>& residuals, std::span<float> parameters) {
  double square = 0;
  for (const double r : residuals) square += r * r;
  const double scale = std::max(std::sqrt(square / static_cast<double>(residuals.size())), 1e-6);
  for (double& r : residuals) r /= scale;
  std::sort(residuals.begin(), residuals.end());
  const auto at = [&](double p) {
    const double place = p * static_cast<double>(residuals.size() - 1);
    const auto i = static_cast<std::size_t>(place);
    const double next = residuals[std::min(i + 1, residuals.size() - 1)];
    return residuals[i] + (place - static_cast<double>(i)) * (next - residuals[i]);
  };
  switch (head.which()) {
    case HeadKind::kPoint:
      parameters[0] = intercept ? static_cast<float>(at(0.5)) : 0.0f;
      break;
    case HeadKind::kGaussian:
      parameters[1] = inverse_softplus(1);
      break;
    case HeadKind::kStudentT:
      parameters[1] = inverse_softplus(0.7);
      break;
    case HeadKind::kMixture: {
      const std::size_t k = parameters.size() / 3;
      for (std::size_t i = 0; i < k; ++i) {
        parameters[k + i] = static_cast<float>(static_cast<double>(i) - 0.5 * static_cast<double>(k - 1));
        parameters[2 * k + i] = inverse_softplus(0.7);
      }
      break;
    }
    case HeadKind::kQuantiles: {
      const auto middle = static_cast<std::size_t>(std::find(head.levels.begin(), head.levels.end(), 0.5) - head.levels.begin());
      std::size_t next = 0;
      parameters[next++] = intercept ? static_cast<float>(at(0.5)) : 0.0f;
      for (std::size_t q = middle + 1; q < head.levels.size(); ++q)
        parameters[next++] = inverse_softplus(at(head.levels[q]) - at(head.levels[q - 1]));
      for (std::size_t q = middle; q-- > 0;) parameters[next++] = inverse_softplus(at(head.levels[q + 1]) - at(head.levels[q]));
      break;
    }
  }
  return static_cast<float>(scale);
}

// What is left of the answers of some thousand training windows, output by output.
std::vector<std::vector<double>> residuals_of(const Dataset& data, const std::vector<RowRange>& train, const Moments& m,
                                              const Solution& w) {
  const SignalShape& s = data.shape();
  std::vector<std::vector<double>> residuals(m.outputs);
  std::vector<double> x(m.common), own(m.own);
  SignalBatch batch;
  Answers answers;
  const std::array<std::size_t, 1> here{0};
  for (const RowRange& range : train) {
    const std::vector<Origin> all = data.origins(range);
    const std::size_t stride = all.size() * train.size() / kResidualWindows + 1;
    std::vector<Origin> chosen;
    for (std::size_t i = 0; i < all.size(); i += stride) chosen.push_back(all[i]);
    for (std::size_t begin = 0; begin < chosen.size(); begin += kWindowsAtOnce) {
      const auto windows = std::span(chosen).subspan(begin, std::min(kWindowsAtOnce, chosen.size() - begin));
      const std::vector<RowRange> bounds(windows.size(), range);
      data.fill(windows, here, bounds, batch, answers);
      for (std::size_t i = 0; i < batch.windows; ++i) {
        if (!complete(s, answers, i)) continue;
        common_features(s, batch, i, x);
        for (std::size_t o = 0; o < m.outputs; ++o) {
          double value = 0;
          if (s.has_shortcut) {
            own_features(s, batch, i, o, own);
            value = dot(w.common.data() + o * m.common, x.data(), m.common) + dot(w.own.data() + o * m.own, own.data(), m.own);
          }
          residuals[o].push_back(answers.values[i * m.outputs + o] - value);
        }
      }
    }
  }
  return residuals;
}

}  // namespace

Result<ShortcutFit> fit_shortcut(const ModelConfig& config, const Dataset& data, const std::vector<RowRange>& train,
                                 const std::vector<RowRange>& validation, NamedTensors& weights, ThreadPool& pool) {
  const SignalShape& s = data.shape();
  if (const double bytes = moment_bytes(s); bytes > kMostMomentBytes) {
    return fail({Fault::kBadUse,
                 fmt::format("the short-cut's equations, {} rows of {} channels for {} answers, would take {:.0f} GB of memory", s.recent,
                             s.past(), s.horizon * s.targets, bytes * 1e-9),
                 "model", fmt::format("at most {:.0f} GB", kMostMomentBytes * 1e-9),
                 "Take --channel-mode independent, a smaller --recent or --horizon, or fewer channels."});
  }
  const Moments seen = moments(data, train, pool);
  if (seen.windows < 1) {
    return fail({Fault::kBadInput, "no training window has all its answers", "training data",
                 "at least one stretch of context + horizon rows without gaps",
                 "Fill gaps with --missing interpolate, or shorten the horizon."});
  }
  const Moments held = moments(data, validation, pool);
  const Moments& judge = held.windows > 0 ? held : seen;

  ShortcutFit fit;
  fit.windows = static_cast<std::size_t>(seen.windows);
  Solution best;
  if (s.has_shortcut) {
    Choice choice(judge);
    Solution trial;
    for (const double lambda : kLambdas) {
      if (solve(seen, lambda, pool, trial)) choice.consider(trial, lambda);
    }
    if (!choice.finish(fit, best))
      return fail({Fault::kBadInput, "the short-cut's equations have no finite solution", "training data", "finite values", ""});
    const std::size_t recent = s.recent * s.past();
    for (std::size_t o = 0; o < seen.outputs; ++o) {
      const double* common = best.common.data() + o * seen.common;
      const double* own = best.own.data() + o * seen.own;
      for (std::size_t i = 0; i < recent; ++i) weights["shortcut.recent.weight"].values[o * recent + i] = static_cast<float>(common[i]);
      weights["shortcut.bias"].values[o] = static_cast<float>(common[recent]);
      for (std::size_t i = 0; i < s.seasons; ++i) weights["shortcut.slots.weight"].values[o * s.seasons + i] = static_cast<float>(own[i]);
      for (std::size_t i = 0; i < s.known; ++i)
        weights["shortcut.known.weight"].values[o * s.known + i] = static_cast<float>(own[s.seasons + i]);
    }
  }
  std::vector<std::vector<double>> residuals = residuals_of(data, train, seen, best);
  for (std::size_t o = 0; o < seen.outputs; ++o) {
    if (residuals[o].empty()) continue;
    const auto parameters = std::span(weights["head.bias"].values).subspan(o * s.parameters, s.parameters);
    weights["head.scale"].values[o] = set_head(config.head, s.intercept, residuals[o], parameters);
  }
  return fit;
}

}  // namespace kizzasi
