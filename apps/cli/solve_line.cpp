#include "apps/cli/solve_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "apps/cli/problem_fields.h"
#include "apps/cli/solve_answer.h"
#include "apps/cli/solve_predictive.h"
#include "kizzasi/solve/barrier.h"
#include "kizzasi/solve/polytope_projection.h"
#include "kizzasi/solve/projection.h"
#include "kizzasi/solve/quadratic_program.h"
#include "kizzasi/solve/quadric_projection.h"

namespace kizzasi::cli {
namespace {

using namespace solve;

struct Rows {
  std::vector<double> a, lo, hi, lower, upper;
  std::size_t n = 0, m = 0;
  Polytope set() const { return {a, lo, hi, lower, upper}; }
};

Rows read_rows(ProblemFields& fields, std::size_t n, bool with_bounds = true) {
  Rows rows;
  rows.n = n;
  rows.a = fields.matrix("A", n, false);
  rows.m = rows.a.size() / n;
  rows.lo = fields.list("lo", rows.m, with_bounds && rows.m > 0);
  rows.hi = fields.list("hi", rows.m, with_bounds && rows.m > 0);
  rows.lower = fields.list("lower", n, false);
  rows.upper = fields.list("upper", n, false);
  if (rows.lower.empty() != rows.upper.empty()) {
    if (rows.lower.empty()) rows.lower.assign(n, -kNoBound);
    if (rows.upper.empty()) rows.upper.assign(n, kNoBound);
  }
  return rows;
}

double value_at(const Rows& rows, std::size_t i, std::span<const double> x, double& size) {
  double sum = 0;
  size = 0;
  for (std::size_t j = 0; j < rows.n; ++j) {
    sum += rows.a[i * rows.n + j] * x[j];
    size += std::abs(rows.a[i * rows.n + j] * x[j]);
  }
  return sum;
}

// Every row that is tight at x, whether its multiplier is 0 or not, and the same for the bounds.
struct Tight {
  Json rows = Json::array(), box = Json::array();
  std::vector<std::vector<double>> normals;
};

Tight tight_at(const Rows& rows, std::span<const double> x) {
  constexpr double kNear = 2e-13;
  Tight tight;
  const auto judge = [&](Json& list, std::size_t index, double value, double lo, double hi, double size) {
    const auto meets = [&](double bound) { return std::isfinite(bound) && std::abs(value - bound) <= kNear * (size + std::abs(bound)); };
    const bool low = meets(lo), high = meets(hi);
    if (!low && !high) return false;
    list.push_back(Json::Array{Json(index), Json(lo == hi ? "eq" : (low ? "lo" : "hi"))});
    return true;
  };
  for (std::size_t i = 0; i < rows.m; ++i) {
    double size = 0;
    const double value = value_at(rows, i, x, size);
    if (judge(tight.rows, i, value, rows.lo[i], rows.hi[i], size)) {
      const auto* row = rows.a.data() + i * rows.n;
      tight.normals.emplace_back(row, row + rows.n);
    }
  }
  for (std::size_t j = 0; j < rows.n && !rows.lower.empty(); ++j) {
    if (judge(tight.box, j, x[j], rows.lower[j], rows.upper[j], 0)) {
      tight.normals.emplace_back(rows.n, 0.0);
      tight.normals.back()[j] = 1;
    }
  }
  return tight;
}

// Whether the tight rows are independent, so that only one set of multipliers is right (modified Gram-Schmidt).
bool independent(std::vector<std::vector<double>> normals) {
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
    return sum;
  };
  for (std::size_t k = 0; k < normals.size(); ++k) {
    const double before = dot(normals[k], normals[k]);
    for (std::size_t i = 0; i < k; ++i) {
      const double along = dot(normals[k], normals[i]);
      for (std::size_t j = 0; j < normals[k].size(); ++j) normals[k][j] -= along * normals[i][j];
    }
    const double length = std::sqrt(dot(normals[k], normals[k]));
    if (!(length > 1e-10 * std::sqrt(before))) return false;
    for (double& v : normals[k]) v /= length;
  }
  return true;
}

// --- quadratic programs

struct Prices {
  std::vector<double> l1, l2;
  std::size_t quadratic() const {
    return static_cast<std::size_t>(std::count_if(l2.begin(), l2.end(), [](double p) { return p > 0; }));
  }
};

Result<QuadraticProgram> prepared(ProblemFields& fields, const Rows& rows, const std::vector<double>& h, const Prices& prices) {
  QuadraticProgram qp;
  qp.prepare(rows.n, rows.m, prices.quadratic());
  const Curvature curvature = qp.set_hessian(h);
  if (curvature == Curvature::kNotConvex) fields.complain("H", "this has a negative curvature", "a positive semidefinite matrix");
  if (curvature == Curvature::kNotFinite) fields.complain("H", "this has a number that is not finite", "finite numbers");
  if (!qp.set_rows(rows.a, rows.m)) fields.complain("A", "this has a number that is not finite", "finite numbers");
  if (!prices.l1.empty() && !qp.set_softness(prices.l1, prices.l2)) {
    fields.complain("l1", "a price of slack is negative, or both are 0", "l1 >= 0 and l2 >= 0, one of them > 0");
  }
  if (fields.error()) return fail(*fields.error());
  return qp;
}

Json program_answer(const QuadraticProgram& qp, Status status, const Rows& rows, bool soft, Json answer) {
  answer["status"] = name(status);
  if (status == Status::kInfeasible) explain(qp, answer);
  if (status != Status::kOptimal) return answer;
  answer["x"] = Json::list(qp.x());
  answer["multipliers"] = multipliers(qp.row_multipliers(), qp.box_multipliers());
  const Tight tight = tight_at(rows, qp.x());
  answer["active"] = tight.rows;
  if (!rows.lower.empty()) answer["active_box"] = tight.box;
  if (soft) {
    answer["slack"] = Json::list(qp.slack());
  } else {
    answer["unique_multipliers"] = independent(tight.normals);
  }
  answer["objective"] = qp.objective();
  answer["residual"] = qp.residual();
  answer["iterations"] = qp.iterations();
  return answer;
}

// The least time of a call, in microseconds, over a twentieth of a second: what others on the machine do only adds.
template <typename Call>
double least_microseconds(Call call) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLong = std::chrono::milliseconds(50);
  constexpr int kCalls = 16;
  double least = std::numeric_limits<double>::infinity();
  for (const auto begin = Clock::now(); Clock::now() - begin < kLong;) {
    const auto from = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    least = std::min(least, std::chrono::duration<double, std::micro>(Clock::now() - from).count() / kCalls);
  }
  return least;
}

Result<Json> solve_program(const Json& problem, bool timed) {
  ProblemFields fields(problem);
  const Json* h_field = problem.find("H");
  const std::size_t n = h_field->is_array() ? h_field->items().size() : 0;
  if (n == 0) fields.complain("H", "this is empty or no list", "a square matrix");
  const std::vector<double> h = fields.matrix("H", n, n);
  const bool sequence = fields.has("steps");
  Rows rows = read_rows(fields, std::max<std::size_t>(n, 1), !sequence);
  Prices prices{fields.list("l1", rows.m, false), fields.list("l2", rows.m, false)};
  if (prices.l1.empty() != prices.l2.empty()) (prices.l1.empty() ? prices.l1 : prices.l2).assign(rows.m, 0);
  if (fields.error()) return fail(*fields.error());
  if (!sequence) {
    const std::vector<double> g = fields.list("g", n);
    auto qp = prepared(fields, rows, h, prices);
    if (!qp) return fail(qp.error());
    const Status status = qp->solve({g, {}, rows.lo, rows.hi, rows.lower, rows.upper});
    if (status == Status::kBadInput) return fail(unsolved(status));
    Json answer = program_answer(*qp, status, rows, !prices.l1.empty(), begun(problem));
    if (!timed) return answer;
    const LinearTerms terms{g, {}, rows.lo, rows.hi, rows.lower, rows.upper};
    answer["cold_us"] = least_microseconds([&] {
      qp->set_hessian(h);
      qp->set_rows(rows.a, rows.m);
      if (!prices.l1.empty()) qp->set_softness(prices.l1, prices.l2);
      qp->solve(terms);
    });
    std::vector<std::uint8_t> active(rows.n + rows.m);
    qp->solve(terms, active);
    answer["warm_us"] = least_microseconds([&] { qp->solve(terms, active); });
    return answer;
  }
  auto qp = prepared(fields, rows, h, prices);
  if (!qp) return fail(qp.error());
  if (!problem.find("steps")->is_array()) {
    fields.complain("steps", "this is no list", "a list of objects");
    return fail(*fields.error());
  }
  std::vector<std::uint8_t> active(rows.n + rows.m);
  Json answer = begun(problem), steps = Json::array();
  std::size_t index = 0;
  for (const Json& step : problem.find("steps")->items()) {
    ProblemFields at(step, fmt::format("steps[{}].", index++));
    const std::vector<double> g = at.list("g", n);
    rows.lo = at.has("lo") || rows.lo.empty() ? at.list("lo", rows.m, rows.m > 0) : rows.lo;
    rows.hi = at.has("hi") || rows.hi.empty() ? at.list("hi", rows.m, rows.m > 0) : rows.hi;
    if (at.error()) return fail(*at.error());
    const Status status = qp->solve({g, {}, rows.lo, rows.hi, rows.lower, rows.upper}, active);
    if (status == Status::kBadInput) return fail(unsolved(status));
    steps.push_back(program_answer(*qp, status, rows, !prices.l1.empty(), Json::object()));
  }
  answer["steps"] = std::move(steps);
  return answer;
}

// --- nearest points

double distance(std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (std::size_t j = 0; j < y.size(); ++j) sum += (x[j] - y[j]) * (x[j] - y[j]);
  return std::sqrt(sum);
}

Result<Json> point_answer(Json answer, Status status, const std::vector<double>& x, const std::vector<double>& y) {
  if (status == Status::kBadInput) return fail(unsolved(status));
  answer["status"] = name(status);
  if (status != Status::kOptimal) return answer;
  answer["x"] = Json::list(x);
  answer["distance"] = distance(x, y);
  if (x == y) answer["unchanged"] = true;
  return answer;
}

Result<Json> nearest_in_rates(const Json& problem, ProblemFields& fields, const std::vector<double>& y) {
  const std::size_t n = y.size();
  auto lower = fields.list("lower", n, false), upper = fields.list("upper", n, false);
  const auto previous = fields.list("previous", n), rate = fields.list("rate", n);
  if (fields.error()) return fail(*fields.error());
  if (lower.empty()) lower.assign(n, -kNoBound);
  if (upper.empty()) upper.assign(n, kNoBound);
  std::vector<double> x(n);
  const Status status = nearest_in_box_and_rate(y, lower, upper, previous, rate, x);
  auto answer = point_answer(begun(problem), status, x, y);
  if (!answer) return answer;
  if (status == Status::kInfeasible) {
    Json wins = Json::array();
    for (std::size_t j = 0; j < n; ++j) {
      const bool apart = lower[j] <= upper[j] && (lower[j] > previous[j] + rate[j] || upper[j] < previous[j] - rate[j]);
      wins.push_back(apart ? Json(x[j]) : Json());
    }
    (*answer)["why"] = "a previous value is further from the box than its rate, or a bound is empty";
    (*answer)["box_wins"] = std::move(wins);
    return answer;
  }
  Json active = Json::array();
  for (std::size_t j = 0; j < n; ++j) {
    const char* what = "none";
    if (x[j] < y[j]) what = upper[j] <= previous[j] + rate[j] ? "upper" : "rate up";
    if (x[j] > y[j]) what = lower[j] >= previous[j] - rate[j] ? "lower" : "rate down";
    active.push_back(what);
  }
  (*answer)["active"] = std::move(active);
  return answer;
}

Result<Json> nearest_in_norm(const Json& problem, ProblemFields& fields, const std::vector<double>& y) {
  const std::size_t n = y.size();
  const std::string norm_name = fields.has("norm") ? fields.text("norm") : "l2";
  const auto centre = fields.list("center", n, false);
  const double radius = fields.number("radius");
  if (norm_name != "l1" && norm_name != "l2" && norm_name != "linf")
    fields.complain("norm", "'" + norm_name + "' is no norm", "l1, l2 or linf");
  if (fields.error()) return fail(*fields.error());
  const Norm norm = norm_name == "l1" ? Norm::kL1 : (norm_name == "l2" ? Norm::kL2 : Norm::kLInf);
  std::vector<double> x(n), scratch(2 * n);
  double multiplier = 0;
  const Status status = nearest_in_ball(y, centre, radius, norm, x, scratch, multiplier);
  auto answer = point_answer(begun(problem), status, x, y);
  if (answer && norm == Norm::kL2 && status == Status::kOptimal) (*answer)["multiplier"] = multiplier;
  return answer;
}

Result<Json> nearest_under_cap(const Json& problem, ProblemFields& fields, const std::vector<double>& y) {
  const auto index = fields.list("index");
  const double radius = fields.number("radius");
  std::vector<bool> seen(y.size(), false);
  for (const double j : index) {
    if (!(j >= 0 && j < static_cast<double>(y.size()) && j == std::floor(j)) || seen[static_cast<std::size_t>(j)]) {
      fields.complain("index", fmt::format("{} is no coordinate, or stands twice", j), fmt::format("each once, 0 to {}", y.size() - 1));
      break;
    }
    seen[static_cast<std::size_t>(j)] = true;
  }
  if (fields.error()) return fail(*fields.error());
  std::vector<double> part, x = y;
  for (const double j : index) part.push_back(y[static_cast<std::size_t>(j)]);
  std::vector<double> capped(part.size());
  double multiplier = 0;
  const Status status = nearest_in_ball(part, {}, radius, Norm::kL2, capped, {}, multiplier);
  for (std::size_t k = 0; k < index.size(); ++k) x[static_cast<std::size_t>(index[k])] = capped[k];
  return point_answer(begun(problem), status, x, y);
}

Result<Json> nearest_in_quadric(const Json& problem, ProblemFields& fields, const std::vector<double>& y) {
  const std::size_t n = y.size();
  const bool ball = !fields.has("Q");
  const Rows rows = read_rows(fields, n);
  QuadricProjection projection;
  projection.prepare(n, rows.m);
  Curvature curvature = Curvature::kPositive;
  if (ball) {
    if (fields.has("norm") && fields.text("norm") != "l2") fields.complain("norm", "only the l2 ball is cut by rows", "l2");
    const auto centre = fields.has("center") ? fields.list("center", n) : std::vector<double>(n, 0);
    curvature = projection.set_ball(centre, fields.number("radius"));
  } else {
    const auto q = fields.matrix("Q", n, n), c = fields.has("c") ? fields.list("c", n) : std::vector<double>(n, 0);
    curvature = projection.set_quadric(q, c, fields.number("b"));
  }
  if (curvature == Curvature::kNotConvex) fields.complain("Q", "this has a negative axis", "a positive semidefinite matrix");
  if (curvature == Curvature::kNotFinite) fields.complain(ball ? "radius" : "Q", "a number is not finite", "finite numbers");
  if (!projection.set_rows(rows.a, rows.m)) fields.complain("A", "this has a number that is not finite", "finite numbers");
  if (fields.error()) return fail(*fields.error());
  std::vector<double> x(n);
  const bool cut = rows.m > 0 || !rows.lower.empty();
  const Status status = cut ? projection.nearest(y, rows.set(), x) : projection.nearest(y, x);
  auto answer = point_answer(begun(problem), status, x, y);
  if (!answer) return answer;
  if (status == Status::kInfeasible) {
    const char* set = ball ? "ball" : "ellipsoid";
    (*answer)["why"] =
        !cut ? fmt::format("the {} is empty", set)
             : (projection.polytope_is_empty() ? "the polyhedron is empty" : fmt::format("{} and polyhedron do not meet", set));
  }
  if (status != Status::kOptimal) return answer;
  (*answer)[cut && ball ? "ball_multiplier" : "multiplier"] = projection.multiplier();
  if (cut) {
    (*answer)["multipliers"] = multipliers(projection.row_multipliers(), projection.box_multipliers());
    const Tight tight = tight_at(rows, x);
    (*answer)["active_rows"] = tight.rows;
    (*answer)["active_box"] = tight.box;
  }
  return answer;
}

Result<Json> nearest_in_polytope(const Json& problem, ProblemFields& fields, const std::vector<double>& y) {
  const std::size_t n = y.size();
  const Rows rows = read_rows(fields, n);
  const auto weight = fields.list("weight", n, false), priority_list = fields.list("priority", rows.m, false);
  PolytopeProjection projection;
  projection.prepare(n, rows.m);
  if (!fields.error() && !projection.set_rows(rows.a, rows.m, weight)) {
    fields.complain(weight.empty() ? "A" : "weight", "a number is not finite, or a weight not positive", "finite numbers, weights > 0");
  }
  std::vector<int> priority;
  for (const double p : priority_list) {
    if (!(std::abs(p) <= 1e6 && p == std::floor(p))) fields.complain("priority", fmt::format("{} is no level", p), "whole numbers");
    priority.push_back(std::abs(p) <= 1e6 ? static_cast<int>(p) : 0);
  }
  if (fields.error()) return fail(*fields.error());
  std::vector<double> x(n), slack(rows.m);
  const Status status = projection.nearest(y, rows.set(), x);
  if (status == Status::kBadInput) return fail(unsolved(status));
  Json answer = begun(problem);
  answer["status"] = name(status);
  if (status == Status::kInfeasible) {
    explain(projection.program(), answer);
    if (projection.program().inverted() != QuadraticProgram::kNone) return answer;
    if (projection.least_slack(y, rows.set(), priority, x, slack) != Status::kOptimal) return answer;
    Json least = Json::object();
    least["x"] = Json::list(x);
    least["slack"] = Json::list(slack);
    double sum = 0;
    for (const double s : slack) sum += s * s;
    least["norm"] = std::sqrt(sum);
    answer["least_slack"] = std::move(least);
    return answer;
  }
  if (status != Status::kOptimal) return answer;
  answer["x"] = Json::list(x);
  answer["multipliers"] = multipliers(projection.row_multipliers(), projection.box_multipliers());
  const Tight tight = tight_at(rows, x);
  answer["active_rows"] = tight.rows;
  answer["active_box"] = tight.box;
  answer["unique_multipliers"] = independent(tight.normals);
  if (projection.unchanged()) answer["unchanged"] = true;
  if (!projection.obeys()) answer["obeys"] = false;  // thinner than rounding
  answer["distance"] = projection.distance();
  return answer;
}

Result<Json> solve_nearest(const Json& problem) {
  ProblemFields fields(problem);
  const std::vector<double> y = fields.list("y");
  if (y.empty()) fields.complain("y", "this is empty", "at least one number");
  if (fields.error()) return fail(*fields.error());
  const bool cut = (fields.has("A") && problem.find("A")->is_array() && !problem.find("A")->items().empty()) || fields.has("lower") ||
                   fields.has("upper");
  if (fields.has("rate") || fields.has("previous")) return nearest_in_rates(problem, fields, y);
  if (fields.has("Q") || (fields.has("radius") && cut)) return nearest_in_quadric(problem, fields, y);
  if (fields.has("index")) return nearest_under_cap(problem, fields, y);
  if (fields.has("radius")) return nearest_in_norm(problem, fields, y);
  if (fields.has("slope")) {
    const double slope = fields.number("slope");
    if (fields.error()) return fail(*fields.error());
    std::vector<double> x(y.size());
    return point_answer(begun(problem), nearest_in_cone(y, slope, x), x, y);
  }
  return nearest_in_polytope(problem, fields, y);
}

// --- barrier filters

Result<Json> solve_barrier(const Json& problem) {
  ProblemFields fields(problem);
  const std::vector<double> nominal = fields.list("u_nominal");
  const std::size_t inputs = std::max<std::size_t>(nominal.size(), 1);
  if (nominal.empty()) fields.complain("u_nominal", "this is empty", "at least one number");
  std::vector<double> slopes(inputs), least;
  Json answer = begun(problem);
  double next = 0, next_slope_base = 0;
  const bool discrete = fields.has("gamma");
  if (discrete) {
    const auto x = fields.list("x");
    const auto a_matrix = fields.matrix("A", x.size(), x.size()), b_matrix = fields.matrix("B", x.size(), inputs),
               a = fields.list("a", x.size());
    const double b = fields.number("b"), gamma = fields.number("gamma");
    if (!(gamma > 0 && gamma <= 1)) fields.complain("gamma", fmt::format("{} is out of range", gamma), "0 < gamma <= 1");
    if (fields.error()) return fail(*fields.error());
    double h = 0;
    least.push_back(barrier_discrete(a_matrix, b_matrix, x, a, b, gamma, slopes, h));
    next_slope_base = (1 - gamma) * h - least[0];
    answer["h"] = h;
  } else if (fields.has("alpha2")) {
    const bool wall = fields.has("p_max");
    const auto x = wall ? fields.list("x", 2) : std::vector<double>{};
    const auto lglfh = wall ? std::vector<double>{-1} : fields.list("LgLfh", inputs);
    const double h = wall ? fields.number("p_max") - x[0] : fields.number("h"), h_dot = wall ? -x[1] : fields.number("h_dot");
    const double alpha = fields.number("alpha"), alpha2 = fields.number("alpha2"), lf2h = wall ? 0 : fields.number("Lf2h", 0);
    if (wall && inputs != 1) fields.complain("u_nominal", "p_max speaks of one input", "one number");
    if (fields.error()) return fail(*fields.error());
    least.push_back(barrier_second_degree(h, h_dot, lf2h, lglfh, alpha, alpha2, slopes));
    answer["psi1"] = h_dot + alpha * h;
  } else {
    const bool several = problem.find("h") != nullptr && problem.find("h")->is_array();
    const auto h = several ? fields.list("h") : std::vector<double>{fields.number("h")};
    const auto lgh = several ? fields.matrix("Lgh", h.size(), inputs) : fields.list("Lgh", inputs);
    const auto lfh = several ? (fields.has("Lfh") ? fields.list("Lfh", h.size()) : std::vector<double>(h.size(), 0))
                             : std::vector<double>{fields.number("Lfh", 0)};
    const double alpha = fields.number("alpha");
    if (fields.error()) return fail(*fields.error());
    slopes.assign(h.size() * inputs, 0);
    for (std::size_t i = 0; i < h.size(); ++i) {
      least.push_back(barrier_continuous(h[i], lfh[i], {lgh.data() + i * inputs, inputs}, alpha, {slopes.data() + i * inputs, inputs}));
    }
  }
  const auto u_min = fields.list("u_min", inputs, false), u_max = fields.list("u_max", inputs, false);
  if (fields.error()) return fail(*fields.error());
  if (u_min.empty() != u_max.empty()) {
    return fail(
        {Fault::kBadInput, "u_min or u_max stands alone", u_min.empty() ? "u_min" : "u_max", "both, or none", "\"inf\" is no bound."});
  }
  BarrierFilter filter;
  filter.prepare(inputs, least.size());
  std::vector<double> u(inputs);
  const Status status = filter.filter(nominal, slopes, least, u_min, u_max, u);
  if (status == Status::kBadInput) return fail(unsolved(status));
  answer["status"] = name(status);
  const bool found = status == Status::kOptimal;
  answer["u"] = found ? Json::list(u) : Json();
  if (!found) {
    answer["multiplier"] = Json();
    return answer;
  }
  if (least.size() == 1 && u_min.empty()) {
    answer["multiplier"] = -filter.barrier_multipliers()[0] + 0.0;
  } else {
    Json all = Json::list(filter.barrier_multipliers());
    for (const double m : filter.bound_multipliers()) all.push_back(m);
    answer["multiplier"] = std::move(all);
  }
  if (discrete) {
    next = next_slope_base;
    for (std::size_t j = 0; j < inputs; ++j) next += slopes[j] * u[j];
    answer["h_next"] = next;
  }
  return answer;
}

}  // namespace

Result<Json> solve_line(const Json& problem, bool timed) {
  if (!problem.is_object()) {
    return fail({Fault::kBadInput, fmt::format("this is {}", problem.kind()), "", "an object with the fields of a problem", ""});
  }
  if (problem.find("H") != nullptr) return solve_program(problem, timed);
  if (problem.find("horizon") != nullptr) return solve_predictive(problem);
  if (problem.find("u_nominal") != nullptr) return solve_barrier(problem);
  if (problem.find("y") != nullptr) return solve_nearest(problem);
  return fail({Fault::kBadInput, "no field says which problem this is", "",
               "H (quadratic program), horizon (predictive control), u_nominal (barrier filter) or y (nearest point)",
               "docs/solve.md lists the fields."});
}

}  // namespace kizzasi::cli
