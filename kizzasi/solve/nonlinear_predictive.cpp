#include "kizzasi/solve/nonlinear_predictive.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"

namespace kizzasi::solve {

Result<NonlinearPredictive> NonlinearPredictive::prepare(PredictiveProblem problem, const NonlinearPlant& plant, int most_steps) {
  if (auto fits = check(problem, false); !fits) return fail(fits.error());
  if (problem.control_horizon != 0 && problem.control_horizon != problem.horizon) {
    return fail({Fault::kBadInput, "a control horizon is not known to plants of the caller's own", "predictive problem", "0", ""});
  }
  NonlinearPredictive c;
  c.problem_ = std::move(problem);
  c.plant_ = &plant;
  c.most_steps_ = most_steps;
  const PredictiveProblem& p = c.problem_;
  const std::size_t n = p.states, m = p.inputs, steps = p.horizon, variables = steps * m;
  c.rates_ = p.du_max.empty() ? 0 : variables;
  const bool bounded = !p.x_min.empty() || !p.x_max.empty() || !p.terminal.empty();
  c.state_rows_ = bounded ? steps * n : 0;
  const std::size_t rows = c.rates_ + c.state_rows_;
  const bool quadratic = std::isfinite(p.soft_l1) && p.soft_l2 > 0;
  c.qp_.prepare(variables, rows, quadratic ? c.state_rows_ : 0);
  QuadraticProgram definite;
  definite.prepare(m, 0);
  if (definite.set_hessian(p.r) != Curvature::kPositive) {
    return fail({Fault::kBadInput, "R is not positive definite", "predictive problem", "a price for every input", ""});
  }
  for (auto* v : {&c.x_, &c.trial_x_}) v->assign(steps * n, 0);
  for (auto* v : {&c.g_, &c.lower_, &c.upper_, &c.trial_}) v->assign(variables, 0);
  for (auto* v : {&c.lo_, &c.hi_, &c.l1_, &c.l2_}) v->assign(rows, 0);
  c.a_.assign(n * n, 0);
  c.b_.assign(n * m, 0);
  c.forced_.assign(steps * n * variables, 0);
  c.weighted_.assign(n * variables, 0);
  c.h_.assign(variables * variables, 0);
  c.rows_.assign(rows * variables, 0);
  c.active_.assign(rows + variables, 0);
  for (std::size_t r = 0; r < c.rates_; ++r) {
    c.rows_[r * variables + r] = 1;
    if (r >= m) c.rows_[r * variables + r - m] = -1;
  }
  return c;
}

bool NonlinearPredictive::roll_out(std::span<const double> x0, std::span<const double> plan, std::span<double> states) const noexcept {
  const std::size_t n = problem_.states, m = problem_.inputs;
  std::span<const double> before = x0;
  double sum = 0;
  for (std::size_t k = 0; k < problem_.horizon; ++k) {
    plant_->next(before, plan.subspan(k * m, m), states.subspan(k * n, n));
    before = states.subspan(k * n, n);
    for (const double v : before) sum += v * 0;
  }
  return sum == 0;
}

double NonlinearPredictive::cost_of(std::span<const double> plan, std::span<const double> states,
                                    std::span<const double> reference) const noexcept {
  const PredictiveProblem& p = problem_;
  const std::size_t n = p.states, m = p.inputs;
  double cost = 0;
  for (std::size_t k = 0; k < p.horizon; ++k) {
    const std::vector<double>& weight = k + 1 == p.horizon ? p.p : p.q;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        cost += (states[k * n + i] - reference[i]) * weight[i * n + j] * (states[k * n + j] - reference[j]);
      }
    }
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < m; ++j) cost += plan[k * m + i] * p.r[i * m + j] * plan[k * m + j];
    }
  }
  return cost;
}

// What broken bounds of states cost, at the present price.
double NonlinearPredictive::price_of(std::span<const double> states, double& worst) const noexcept {
  const PredictiveProblem& p = problem_;
  double sum = 0;
  worst = 0;
  for (std::size_t r = 0; r < state_rows_; ++r) {
    const std::size_t i = r % p.states;
    const bool end = r >= (p.horizon - 1) * p.states && !p.terminal.empty();
    const double low = end ? p.terminal[i] : (p.x_min.empty() ? -kNoBound : p.x_min[i]);
    const double high = end ? p.terminal[i] : (p.x_max.empty() ? kNoBound : p.x_max[i]);
    const double slack = std::max({0.0, low - states[r], states[r] - high});
    if (slack > 0) sum += slack * (l1_[rates_ + r] + l2_[rates_ + r] * slack);
    worst = std::max(worst, slack);
  }
  return sum;
}

// The quadratic program of a step from the plan whose states stand in x_.
void NonlinearPredictive::linearise(std::span<const double> x0, std::span<const double> plan, std::span<const double> reference) noexcept {
  const PredictiveProblem& p = problem_;
  const std::size_t n = p.states, m = p.inputs, variables = p.horizon * m;
  std::fill(h_.begin(), h_.end(), 0.0);
  std::fill(g_.begin(), g_.end(), 0.0);
  for (std::size_t k = 0; k < p.horizon; ++k) {
    const auto before = k == 0 ? x0 : std::span<const double>(x_).subspan((k - 1) * n, n);
    plant_->jacobians(before, plan.subspan(k * m, m), a_, b_);
    double* forced = forced_.data() + k * n * variables;
    std::fill_n(forced, n * variables, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      if (k > 0) add_combination(forced + i * variables, a_.data() + i * n, forced - n * variables, n, variables, variables);
      for (std::size_t j = 0; j < m; ++j) forced[i * variables + k * m + j] += b_[i * m + j];
    }
    const std::vector<double>& weight = k + 1 == p.horizon ? p.p : p.q;
    std::fill(weighted_.begin(), weighted_.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        add_scaled(weighted_.data() + i * variables, weight[i * n + j] + weight[j * n + i], forced + j * variables, variables);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      add_scaled(g_.data(), x_[k * n + i] - reference[i], weighted_.data() + i * variables, variables);
      for (std::size_t v = 0; v < (k + 1) * m; ++v) {
        add_scaled(h_.data() + v * variables, forced[i * variables + v], weighted_.data() + i * variables, (k + 1) * m);
      }
    }
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < m; ++j) {
        const double price = p.r[i * m + j] + p.r[j * m + i];
        h_[(k * m + i) * variables + k * m + j] += price;
        g_[k * m + i] += price * plan[k * m + j];
      }
    }
  }
  std::copy(forced_.begin(), forced_.begin() + static_cast<std::ptrdiff_t>(state_rows_ * variables),
            rows_.begin() + static_cast<std::ptrdiff_t>(rates_ * variables));
}

bool NonlinearPredictive::keeps_inputs(std::span<const double> plan, std::span<const double> previous) const noexcept {
  const PredictiveProblem& p = problem_;
  for (std::size_t v = 0; v < plan.size(); ++v) {
    const std::size_t i = v % p.inputs;
    if (!p.u_min.empty() && !(plan[v] >= p.u_min[i])) return false;
    if (!p.u_max.empty() && !(plan[v] <= p.u_max[i])) return false;
    if (rates_ > 0 && !(std::abs(plan[v] - (v < p.inputs ? previous[i] : plan[v - p.inputs])) <= p.du_max[i] + 1e-12)) return false;
  }
  return true;
}

Status NonlinearPredictive::solve(std::span<const double> x0, std::span<const double> reference, std::span<const double> previous,
                                  std::span<double> plan) noexcept {
  const PredictiveProblem& p = problem_;
  const std::size_t n = p.states, m = p.inputs, variables = p.horizon * m;
  steps_ = 0;
  if (x0.size() != n || reference.size() != n || plan.size() != variables || (rates_ > 0 && previous.size() != m)) return Status::kBadInput;
  const bool soft = std::isfinite(p.soft_l1);
  price_ = 100;
  std::fill(active_.begin(), active_.end(), std::uint8_t{kInactive});
  if (!roll_out(x0, plan, x_)) return Status::kBadInput;
  cost_ = cost_of(plan, x_, reference);
  double steepest = 0;
  constexpr double kStill = 1e-10, kKept = 1e-7, kHighestPrice = 1e9;
  for (steps_ = 0; steps_ < most_steps_; ++steps_) {
    for (std::size_t r = 0; r < rates_ + state_rows_; ++r) {
      const bool state = r >= rates_, end = state && !p.terminal.empty() && r - rates_ >= (p.horizon - 1) * n;
      l1_[r] = !state ? kNoBound : (soft && !end ? p.soft_l1 : price_);
      l2_[r] = state && soft && !end ? p.soft_l2 : 0;
    }
    linearise(x0, plan, reference);
    for (std::size_t v = 0; v < variables; ++v) {
      lower_[v] = p.u_min.empty() ? -kNoBound : p.u_min[v % m] - plan[v];
      upper_[v] = p.u_max.empty() ? kNoBound : p.u_max[v % m] - plan[v];
    }
    for (std::size_t r = 0; r < rates_; ++r) {
      const double now = plan[r] - (r < m ? previous[r] : plan[r - m]);
      lo_[r] = -p.du_max[r % m] - now;
      hi_[r] = p.du_max[r % m] - now;
    }
    for (std::size_t r = 0; r < state_rows_; ++r) {
      const std::size_t i = r % n;
      const bool end = r >= (p.horizon - 1) * n && !p.terminal.empty();
      lo_[rates_ + r] = (end ? p.terminal[i] : (p.x_min.empty() ? -kNoBound : p.x_min[i])) - x_[r];
      hi_[rates_ + r] = (end ? p.terminal[i] : (p.x_max.empty() ? kNoBound : p.x_max[i])) - x_[r];
    }
    if (qp_.set_hessian(h_) != Curvature::kPositive || !qp_.set_rows(rows_, rates_ + state_rows_)) return Status::kBadInput;
    if (state_rows_ > 0 && !qp_.set_softness(l1_, l2_)) return Status::kBadInput;
    const Status status = qp_.solve({g_, {}, lo_, hi_, lower_, upper_}, active_);
    if (status != Status::kOptimal) return status;

    const auto step = qp_.x();
    const double length = largest(step.data(), variables), far = largest(plan.data(), variables);
    double worst = 0, bend = 0;
    for (std::size_t v = 0; v < variables; ++v) bend = std::max(bend, std::abs(dot(h_.data() + v * variables, step.data(), variables)));
    steepest = std::max(steepest, largest(g_.data(), variables));
    residual_ = steepest > 0 ? bend / steepest : 0;
    const double price = price_of(x_, worst), expected = price - qp_.objective();
    const bool inside = keeps_inputs(plan, previous);
    const auto settled = [&] {
      broken_ = worst;
      return (soft && p.terminal.empty()) || worst <= kKept;
    };
    bool moved = false;
    if (length > kStill * (1 + far) && (expected > 0 || !inside)) {
      double shortened = 1;
      for (int halving = 0; halving < 40 && !moved; ++halving, shortened *= 0.5) {
        for (std::size_t v = 0; v < variables; ++v) trial_[v] = plan[v] + shortened * step[v];
        if (!roll_out(x0, trial_, trial_x_)) continue;
        double trial_worst = 0;
        const double cost = cost_of(trial_, trial_x_, reference), then = cost + price_of(trial_x_, trial_worst);
        const double now = cost_ + price;
        if (inside && !(then <= now - 1e-4 * shortened * expected + 1e-14 * std::abs(now))) continue;
        moved = true;
        cost_ = cost;
        std::copy(trial_.begin(), trial_.end(), plan.begin());
        std::copy(trial_x_.begin(), trial_x_.end(), x_.begin());
      }
    }
    if (moved) continue;
    if (settled()) return Status::kOptimal;
    if (price_ >= kHighestPrice) return Status::kInfeasible;
    price_ *= 100;  // broken bounds were worth it
  }
  price_of(x_, broken_);
  return Status::kIterationLimit;
}

}  // namespace kizzasi::solve
