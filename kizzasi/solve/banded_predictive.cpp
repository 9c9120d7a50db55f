#include "kizzasi/solve/banded_predictive.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"

namespace kizzasi::solve {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::vector<double> even(const std::vector<double>& matrix, std::size_t n) {
  std::vector<double> out(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) out[i * n + j] = 0.5 * (matrix[i * n + j] + matrix[j * n + i]);
  }
  return out;
}

std::uint32_t index(std::size_t i) { return static_cast<std::uint32_t>(i); }

}  // namespace

Result<BandedPredictive> BandedPredictive::prepare(PredictiveProblem problem) {
  if (auto fits = check(problem); !fits) return fail(fits.error());
  const PredictiveProblem& p = problem;
  const std::size_t n = p.states, m = p.inputs, steps = p.horizon, moves = p.control_horizon == 0 ? steps : p.control_horizon;
  const bool bounded = !p.x_min.empty() || !p.x_max.empty(), soft = std::isfinite(p.soft_l1) && bounded;

  std::vector<std::size_t> input_at, state_at, slack_at;
  BandedProblem b;
  for (std::size_t k = 0; k < steps; ++k) {
    const bool end = k + 1 == steps && !p.terminal.empty();
    input_at.push_back(b.variables);
    state_at.push_back(b.variables + m);
    b.variables += m + n;
    slack_at.push_back(soft && !end ? b.variables : kNone);
    if (soft && !end) b.variables += n;
  }
  const std::vector<double> weight = even(p.q, n), end_weight = even(p.p, n), price = even(p.r, m);
  std::vector<double> lo, hi, g(b.variables, 0);
  const auto add = [&](SparseRow row, double low, double high, bool equality) {
    b.rows.push_back(std::move(row));
    b.equality.push_back(equality ? 1 : 0);
    lo.push_back(low);
    hi.push_back(high);
  };
  const auto block = [&](std::size_t at, const std::vector<double>& matrix, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j <= i; ++j) b.hessian.push_back({index(at + i), index(at + j), 2 * matrix[i * size + j]});
    }
  };
  const auto bound = [](const std::vector<double>& bounds, std::size_t i, double none) { return bounds.empty() ? none : bounds[i]; };

  const std::size_t rates = p.du_max.empty() ? 0 : m;
  for (std::size_t i = 0; i < rates; ++i) add({{index(input_at[0] + i)}, {1}}, 0, 0, false);
  for (std::size_t k = 0; k < steps; ++k) {
    const std::size_t u = input_at[k], x = state_at[k];
    block(u, price, m);
    block(x, k + 1 == steps ? end_weight : weight, n);
    for (std::size_t i = 0; i < n; ++i) {
      SparseRow row{{index(x + i)}, {1}};
      for (std::size_t j = 0; j < m; ++j) {
        row.index.push_back(index(u + j));
        row.value.push_back(-p.b[i * m + j]);
      }
      for (std::size_t j = 0; k > 0 && j < n; ++j) {
        row.index.push_back(index(state_at[k - 1] + j));
        row.value.push_back(-p.a[i * n + j]);
      }
      add(std::move(row), 0, 0, true);
    }
    for (std::size_t i = 0; i < m; ++i) {
      if (k >= moves) {
        add({{index(u + i), index(input_at[k - 1] + i)}, {1, -1}}, 0, 0, true);
        continue;
      }
      const double low = bound(p.u_min, i, -kNoBound), high = bound(p.u_max, i, kNoBound);
      if (std::isfinite(low) || std::isfinite(high)) add({{index(u + i)}, {1}}, low, high, low == high);
      if (k > 0 && rates > 0 && std::isfinite(p.du_max[i])) {
        add({{index(u + i), index(input_at[k - 1] + i)}, {1, -1}}, -p.du_max[i], p.du_max[i], p.du_max[i] == 0);
      }
    }
    if (k + 1 == steps && !p.terminal.empty()) {
      for (std::size_t i = 0; i < n; ++i) add({{index(x + i)}, {1}}, p.terminal[i], p.terminal[i], true);
      continue;
    }
    for (std::size_t i = 0; bounded && i < n; ++i) {
      const double low = bound(p.x_min, i, -kNoBound), high = bound(p.x_max, i, kNoBound);
      if (!soft) {
        if (std::isfinite(low) || std::isfinite(high)) add({{index(x + i)}, {1}}, low, high, low == high);
        continue;
      }
      const std::uint32_t s = index(slack_at[k] + i);
      b.hessian.push_back({s, s, 2 * p.soft_l2});
      g[s] = p.soft_l1;
      add({{s}, {1}}, 0, kNoBound, false);
      if (std::isfinite(low)) add({{index(x + i), s}, {1, 1}}, low, kNoBound, false);
      if (std::isfinite(high)) add({{index(x + i), s}, {1, -1}}, -kNoBound, high, false);
    }
  }
  // A first change of 0 is an equality, which is decided when preparing.
  for (std::size_t i = 0; i < rates; ++i) b.equality[i] = p.du_max[i] == 0 ? 1 : 0;
  const std::size_t variables = b.variables;
  auto program = BandedProgram::prepare(std::move(b));
  if (!program) return fail(program.error());
  BandedPredictive c(std::move(problem), std::move(*program));
  c.input_at_ = std::move(input_at);
  c.state_at_ = std::move(state_at);
  c.slack_at_ = std::move(slack_at);
  c.weight_ = weight;
  c.end_weight_ = end_weight;
  c.rate_rows_ = rates;
  c.plant_rows_ = rates;
  c.by_bound_.assign(lo.size(), 0);
  c.lo_ = std::move(lo);
  c.hi_ = std::move(hi);
  c.g_ = std::move(g);
  c.by_g_.assign(variables, 0);
  c.dx_.assign(variables, 0);
  c.u_.assign(steps * m, 0);
  c.x_.assign(steps * n, 0);
  c.slack_.assign(steps * n, 0);
  return c;
}

Status BandedPredictive::solve(std::span<const double> x0, std::span<const double> reference, std::span<const double> previous) noexcept {
  const PredictiveProblem& p = problem_;
  const std::size_t n = p.states, m = p.inputs, steps = p.horizon;
  if (x0.size() != n || reference.size() != n || (rate_rows_ > 0 && previous.size() != m)) return Status::kBadInput;
  for (const auto values : {x0, reference, previous}) {
    for (const double v : values) {
      if (!std::isfinite(v)) return Status::kBadInput;
    }
  }
  for (std::size_t i = 0; i < rate_rows_; ++i) {
    lo_[i] = previous[i] - p.du_max[i];
    hi_[i] = previous[i] + p.du_max[i];
  }
  for (std::size_t i = 0; i < n; ++i) lo_[plant_rows_ + i] = hi_[plant_rows_ + i] = dot(p.a.data() + i * n, x0.data(), n);
  for (std::size_t k = 0; k < steps; ++k) {
    const std::vector<double>& weight = k + 1 == steps ? end_weight_ : weight_;
    for (std::size_t i = 0; i < n; ++i) g_[state_at_[k] + i] = -2 * dot(weight.data() + i * n, reference.data(), n);
  }
  const Status status = program_.solve(g_, lo_, hi_);
  if (status != Status::kOptimal) return status;
  cost_ = 0;
  const double* before = x0.data();
  for (std::size_t k = 0; k < steps; ++k) {
    const std::vector<double>& weight = k + 1 == steps ? end_weight_ : weight_;
    double *u = u_.data() + k * m, *x = x_.data() + k * n;
    std::copy_n(program_.x().data() + input_at_[k], m, u);
    for (std::size_t i = 0; i < n; ++i) x[i] = dot(p.a.data() + i * n, before, n) + dot(p.b.data() + i * m, u, m);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) cost_ += (x[i] - reference[i]) * weight[i * n + j] * (x[j] - reference[j]);
      if (slack_at_[k] == kNone) continue;
      const double s = std::max(0.0, program_.x()[slack_at_[k] + i]);
      slack_[k * n + i] = s;
      cost_ += s * (p.soft_l1 + p.soft_l2 * s);
    }
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < m; ++j) cost_ += u[i] * p.r[i * m + j] * u[j];
    }
    before = x;
  }
  return Status::kOptimal;
}

void BandedPredictive::gradient(std::span<const double> by_first, std::span<double> by_x0, std::span<double> by_reference,
                                std::span<double> by_previous) noexcept {
  const PredictiveProblem& p = problem_;
  const std::size_t n = p.states;
  std::fill(dx_.begin(), dx_.end(), 0.0);
  std::copy(by_first.begin(), by_first.end(), dx_.begin() + static_cast<std::ptrdiff_t>(input_at_[0]));
  program_.gradient(dx_, by_g_, by_bound_);
  std::fill(by_x0.begin(), by_x0.end(), 0.0);
  std::fill(by_reference.begin(), by_reference.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) add_scaled(by_x0.data(), by_bound_[plant_rows_ + i], p.a.data() + i * n, n);
  for (std::size_t k = 0; k < p.horizon; ++k) {
    const std::vector<double>& weight = k + 1 == p.horizon ? end_weight_ : weight_;
    for (std::size_t i = 0; i < n; ++i) add_scaled(by_reference.data(), -2 * by_g_[state_at_[k] + i], weight.data() + i * n, n);
  }
  for (std::size_t i = 0; i < by_previous.size(); ++i) by_previous[i] = i < rate_rows_ ? by_bound_[i] : 0;
}

}  // namespace kizzasi::solve
