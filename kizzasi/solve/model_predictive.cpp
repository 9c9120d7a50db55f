#include "kizzasi/solve/model_predictive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"

namespace kizzasi::solve {
namespace {

Error bad(std::string what, std::string expected) {
  return {Fault::kBadInput, std::move(what), "predictive problem", std::move(expected), ""};
}

// c += factor a' b: a (rows, p), b (rows, q).
void add_transposed_product(const double* a, std::size_t p, const double* b, std::size_t q, std::size_t rows, double factor, double* c) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < p; ++i) add_scaled(c + i * q, factor * a[r * p + i], b + r * q, q);
  }
}

// a b: (rows, inner) (inner, columns).
std::vector<double> product(const double* a, std::size_t rows, std::size_t inner, const double* b, std::size_t columns) {
  std::vector<double> c(rows * columns, 0);
  for (std::size_t i = 0; i < rows; ++i) add_combination(c.data() + i * columns, a + i * inner, b, inner, columns, columns);
  return c;
}

}  // namespace

Result<void> check(const PredictiveProblem& p, bool with_matrices) {
  if (p.states == 0 || p.inputs == 0 || p.horizon == 0) {
    return fail(bad("states, inputs or horizon is 0", "at least 1 of each"));
  }
  if (p.control_horizon > p.horizon)
    return fail(bad("the control horizon is longer than the horizon", fmt::format("at most {}", p.horizon)));
  const auto matrix = [&](const char* name, const std::vector<double>& v, std::size_t rows, std::size_t columns) -> Result<void> {
    if (v.size() != rows * columns) {
      return fail(bad(fmt::format("{} has {} numbers", name, v.size()),
                      rows == 0 ? std::string("none") : fmt::format("{} rows of {}", rows, columns)));
    }
    for (const double x : v) {
      if (!std::isfinite(x)) return fail(bad(fmt::format("{} has a number that is not finite", name), "finite numbers"));
    }
    return {};
  };
  const std::size_t n = p.states, m = p.inputs;
  for (const auto& result :
       {matrix("A", p.a, with_matrices ? n : 0, n), matrix("B", p.b, with_matrices ? n : 0, m), matrix("Q", p.q, n, n),
        matrix("R", p.r, m, m), matrix("P", p.p, n, n), p.terminal.empty() ? Result<void>{} : matrix("terminal", p.terminal, n, 1)}) {
    if (!result) return result;
  }
  const auto bounds = [&](const char* name, const std::vector<double>& v, std::size_t size) -> Result<void> {
    if (!v.empty() && v.size() != size) return fail(bad(fmt::format("{} has {} numbers", name, v.size()), fmt::format("{} or none", size)));
    for (const double x : v) {
      if (std::isnan(x)) return fail(bad(fmt::format("{} has a NaN", name), "numbers, infinite where there is no bound"));
    }
    return {};
  };
  for (const auto& result : {bounds("u_min", p.u_min, m), bounds("u_max", p.u_max, m), bounds("du_max", p.du_max, m),
                             bounds("x_min", p.x_min, n), bounds("x_max", p.x_max, n)}) {
    if (!result) return result;
  }
  if (!(p.soft_l1 >= 0) || !(p.soft_l2 >= 0) || (p.soft_l1 == 0 && p.soft_l2 == 0)) {
    return fail(bad("the price of slack is negative or nothing", "l1 >= 0 and l2 >= 0, one of them > 0"));
  }
  return {};
}

Result<ModelPredictive> ModelPredictive::prepare(PredictiveProblem problem) {
  if (auto fits = check(problem); !fits) return fail(fits.error());
  ModelPredictive c;
  c.problem_ = std::move(problem);
  const PredictiveProblem& p = c.problem_;
  const std::size_t n = p.states, m = p.inputs, steps = p.horizon;
  c.moves_ = p.control_horizon == 0 ? steps : p.control_horizon;
  const std::size_t variables = c.moves_ * m;
  c.rates_ = p.du_max.empty() ? 0 : variables;
  const bool bounded = !p.x_min.empty() || !p.x_max.empty();
  c.state_rows_ = bounded ? steps * n : (p.terminal.empty() ? 0 : n);

  // x(k+1) = A^(k+1) x0 + sum_j A^(k-j) B u(j).
  c.free_.assign(steps * n * n, 0);
  c.forced_.assign(steps * n * variables, 0);
  for (std::size_t k = 0; k < steps; ++k) {
    double* forced = c.forced_.data() + k * n * variables;
    if (k == 0) {
      std::copy(p.a.begin(), p.a.end(), c.free_.begin());
    } else {
      const auto next = product(p.a.data(), n, n, c.free_.data() + (k - 1) * n * n, n);
      std::copy(next.begin(), next.end(), c.free_.begin() + static_cast<std::ptrdiff_t>(k * n * n));
      const auto carried = product(p.a.data(), n, n, forced - n * variables, variables);
      std::copy(carried.begin(), carried.end(), forced);
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < m; ++j) forced[i * variables + c.step_of(k) * m + j] += p.b[i * m + j];
    }
  }

  std::vector<double> h(variables * variables, 0), ones(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) ones[i * n + i] = 1;
  c.by_state_.assign(variables * n, 0);
  c.by_reference_.assign(variables * n, 0);
  for (std::size_t k = 0; k < steps; ++k) {
    const double* forced = c.forced_.data() + k * n * variables;
    const std::vector<double>& weight = k + 1 == steps ? p.p : p.q;
    std::vector<double> even(n * n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) even[i * n + j] = 0.5 * (weight[i * n + j] + weight[j * n + i]);
    }
    const auto weighted = product(even.data(), n, n, forced, variables);
    add_transposed_product(forced, variables, weighted.data(), variables, n, 2, h.data());
    add_transposed_product(weighted.data(), variables, c.free_.data() + k * n * n, n, n, 2, c.by_state_.data());
    add_transposed_product(weighted.data(), variables, ones.data(), n, n, 2, c.by_reference_.data());
    const std::size_t at = c.step_of(k) * m;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < m; ++j) h[(at + i) * variables + at + j] += p.r[i * m + j] + p.r[j * m + i];
    }
  }

  const std::size_t rows = c.rates_ + c.state_rows_;
  std::vector<double> a(rows * variables, 0);
  for (std::size_t r = 0; r < c.rates_; ++r) {
    a[r * variables + r] = 1;
    if (r >= m) a[r * variables + r - m] = -1;
  }
  const std::size_t first = steps * n - c.state_rows_;
  std::copy(c.forced_.begin() + static_cast<std::ptrdiff_t>(first * variables), c.forced_.end(),
            a.begin() + static_cast<std::ptrdiff_t>(c.rates_ * variables));
  const bool soft = std::isfinite(p.soft_l1) && bounded;
  c.qp_.prepare(variables, rows, soft && p.soft_l2 > 0 ? c.state_rows_ : 0);
  if (c.qp_.set_hessian(h) != Curvature::kPositive) {
    return fail(bad("the cost does not determine the inputs", "Q and P positive semidefinite and R positive definite"));
  }
  if (!c.qp_.set_rows(a, rows)) return fail(bad("the plant grows beyond what a double holds over the horizon", "a shorter horizon"));
  if (soft) {
    std::vector<double> l1(rows, kNoBound), l2(rows, 0);
    const std::size_t softened = p.terminal.empty() ? c.state_rows_ : c.state_rows_ - n;
    for (std::size_t r = c.rates_; r < c.rates_ + softened; ++r) {
      l1[r] = p.soft_l1;
      l2[r] = p.soft_l2;
    }
    if (!c.qp_.set_softness(l1, l2)) return fail(bad("the price of slack does not fit", "finite l1 and l2"));
  }

  for (auto* v : {&c.g_, &c.lower_, &c.upper_, &c.dx_, &c.dg_, &c.dbox_}) v->assign(variables, 0);
  for (auto* v : {&c.lo_, &c.hi_, &c.dbound_}) v->assign(rows, 0);
  for (auto* v : {&c.drift_, &c.x_, &c.slack_}) v->assign(steps * n, 0);
  c.u_.assign(steps * m, 0);
  for (std::size_t v = 0; v < variables; ++v) {
    c.lower_[v] = p.u_min.empty() ? -kNoBound : p.u_min[v % m];
    c.upper_[v] = p.u_max.empty() ? kNoBound : p.u_max[v % m];
  }
  return c;
}

Status ModelPredictive::solve(std::span<const double> x0, std::span<const double> reference, std::span<const double> previous,
                              std::span<std::uint8_t> active) noexcept {
  const PredictiveProblem& p = problem_;
  const std::size_t n = p.states, m = p.inputs, steps = p.horizon, variables = moves_ * m;
  if (x0.size() != n || reference.size() != n || (rates_ > 0 && previous.size() != m)) return Status::kBadInput;
  for (std::size_t v = 0; v < variables; ++v) {
    g_[v] = dot(by_state_.data() + v * n, x0.data(), n) - dot(by_reference_.data() + v * n, reference.data(), n);
  }
  for (std::size_t r = 0; r < steps * n; ++r) drift_[r] = dot(free_.data() + r * n, x0.data(), n);
  for (std::size_t r = 0; r < rates_; ++r) {
    const double from = r < m ? previous[r] : 0;
    lo_[r] = from - p.du_max[r % m];
    hi_[r] = from + p.du_max[r % m];
  }
  const std::size_t first = steps * n - state_rows_;
  for (std::size_t r = 0; r < state_rows_; ++r) {
    const std::size_t at = first + r, i = at % n;
    const bool end = at >= (steps - 1) * n && !p.terminal.empty();
    lo_[rates_ + r] = (end ? p.terminal[i] : (p.x_min.empty() ? -kNoBound : p.x_min[i])) - drift_[at];
    hi_[rates_ + r] = (end ? p.terminal[i] : (p.x_max.empty() ? kNoBound : p.x_max[i])) - drift_[at];
  }
  const Status status = qp_.solve({g_, {}, lo_, hi_, lower_, upper_}, active);
  if (status != Status::kOptimal) return status;

  cost_ = 0;
  const double* before = x0.data();
  for (std::size_t k = 0; k < steps; ++k) {
    const double* u = qp_.x().data() + step_of(k) * m;
    std::copy_n(u, m, u_.data() + k * m);
    double* x = x_.data() + k * n;
    const std::vector<double>& weight = k + 1 == steps ? p.p : p.q;
    for (std::size_t i = 0; i < n; ++i) x[i] = dot(p.a.data() + i * n, before, n) + dot(p.b.data() + i * m, u, m);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) cost_ += (x[i] - reference[i]) * weight[i * n + j] * (x[j] - reference[j]);
      if (state_rows_ != steps * n) continue;
      const double s = qp_.slack()[rates_ + k * n + i];
      slack_[k * n + i] = s;
      if (s > 0) cost_ += s * (p.soft_l1 + p.soft_l2 * s);
    }
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < m; ++j) cost_ += u[i] * p.r[i * m + j] * u[j];
    }
    before = x;
  }
  return Status::kOptimal;
}

void ModelPredictive::shift(std::span<std::uint8_t> active) const noexcept {
  const std::size_t n = problem_.states, m = problem_.inputs;
  const auto move = [&](std::size_t from, std::size_t size, std::size_t step) {
    if (size <= step) return;
    std::copy(active.begin() + static_cast<std::ptrdiff_t>(from + step), active.begin() + static_cast<std::ptrdiff_t>(from + size),
              active.begin() + static_cast<std::ptrdiff_t>(from));
  };
  const std::size_t states = problem_.terminal.empty() ? state_rows_ : (state_rows_ > n ? state_rows_ - n : 0);
  move(0, rates_, m);
  move(rates_, states, n);
  move(rates_ + state_rows_, moves_ * m, m);
}

std::vector<std::string> ModelPredictive::active_names() const {
  const std::size_t n = problem_.states, m = problem_.inputs, steps = problem_.horizon;
  const std::size_t rows = rates_ + state_rows_;
  const auto activity = qp_.activity();
  const bool soft = std::isfinite(problem_.soft_l1);
  std::vector<std::string> names;
  const auto side = [](std::uint8_t code) { return (code & kEquality) == kAtLow ? "lo" : "hi"; };
  for (std::size_t k = 0; k < steps; ++k) {
    for (std::size_t i = 0; i < m && k < moves_; ++i) {
      if (const auto code = activity[rows + k * m + i]; code != 0) names.push_back(fmt::format("u{}.{} {}", k, i, side(code)));
      if (rates_ == 0) continue;
      if (const auto code = activity[rate_row(k, i)]; code != 0) names.push_back(fmt::format("du{}.{} {}", k, i, side(code)));
    }
    const bool end = k + 1 == steps && !problem_.terminal.empty();
    if (state_rows_ != steps * n && !end) continue;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t row = state_rows_ == steps * n ? state_row(k, i) : rates_ + i;
      const auto code = activity[row];
      if (end) {
        names.push_back(fmt::format("end.{}=", i));
        continue;
      }
      if (code != 0) {
        const char* form = !soft ? "" : ((code & kEquality) == kAtLow ? ">" : "<");
        names.push_back(fmt::format("x{}.{}{} {}", k + 1, i, form, soft ? ((code & kEquality) == kAtLow ? "lo" : "hi") : side(code)));
      }
      if (soft && !(qp_.slack()[row] > 0)) names.push_back(fmt::format("s{}.{} lo", k + 1, i));
    }
  }
  return names;
}

void ModelPredictive::gradient(std::span<const double> by_first, std::span<double> by_x0, std::span<double> by_reference,
                               std::span<double> by_previous) noexcept {
  const std::size_t n = problem_.states, m = problem_.inputs, steps = problem_.horizon;
  std::fill(dx_.begin(), dx_.end(), 0.0);
  std::copy(by_first.begin(), by_first.end(), dx_.begin());
  qp_.gradient(dx_, dg_, dbound_, dbox_);
  std::fill(by_x0.begin(), by_x0.end(), 0.0);
  std::fill(by_reference.begin(), by_reference.end(), 0.0);
  for (std::size_t v = 0; v < dg_.size(); ++v) {
    add_scaled(by_x0.data(), dg_[v], by_state_.data() + v * n, n);
    add_scaled(by_reference.data(), -dg_[v], by_reference_.data() + v * n, n);
  }
  const std::size_t first = steps * n - state_rows_;
  for (std::size_t r = 0; r < state_rows_; ++r) add_scaled(by_x0.data(), -dbound_[rates_ + r], free_.data() + (first + r) * n, n);
  for (std::size_t i = 0; i < by_previous.size(); ++i) by_previous[i] = rates_ > 0 && i < m ? dbound_[i] : 0;
}

}  // namespace kizzasi::solve
