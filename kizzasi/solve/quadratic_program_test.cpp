#include "kizzasi/solve/quadratic_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/published_test.h"

namespace kizzasi::solve {
namespace {

struct Problem {
  std::size_t n = 0, m = 0;
  std::vector<double> h, g, a, lo, hi, lower, upper;
  LinearTerms terms() const { return {g, {}, lo, hi, lower, upper}; }
};

Problem published_problem(const Json& line) {
  Problem p;
  p.h = numbers(line.find("H"));
  p.a = numbers(line.find("A"));
  p.n = static_cast<std::size_t>(std::llround(std::sqrt(p.h.size())));
  p.m = p.a.size() / p.n;
  p.g = numbers(line.find("g"));
  p.lo = numbers(line.find("lo"));
  p.hi = numbers(line.find("hi"));
  return p;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double size_of(std::span<const double> v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

// Feasible, stationary, and every multiplier on a bound that is met, with its sign: what makes a point the answer. Computed here from the
// problem alone. Returns the largest violation of any of the three, in the scale of the terms.
double optimality_gap(const Problem& p, std::span<const double> x, std::span<const double> rows, std::span<const double> box) {
  double worst = 0;
  const auto check = [&](double value, double low, double high, double multiplier, double size, double multiplier_size) {
    worst = std::max({worst, (low - value) / size, (value - high) / size});
    if (multiplier > 0) worst = std::max(worst, std::min(multiplier / multiplier_size, std::abs(value - high) / size));
    if (multiplier < 0) worst = std::max(worst, std::min(-multiplier / multiplier_size, std::abs(value - low) / size));
  };
  const double steepest = std::max({1e-300, size_of(rows), size_of(box)});
  for (std::size_t i = 0; i < p.m; ++i) {
    const std::span<const double> a(p.a.data() + i * p.n, p.n);
    check(dot(a, x), p.lo[i], p.hi[i], rows[i], 1 + size_of(a) * size_of(x), steepest);
  }
  for (std::size_t j = 0; j < p.n; ++j) {
    if (!p.lower.empty()) check(x[j], p.lower[j], p.upper[j], box[j], 1 + size_of(x), steepest);
    double gradient = p.g[j] + box[j], size = 1e-300 + std::abs(p.g[j]) + std::abs(box[j]);
    for (std::size_t k = 0; k < p.n; ++k) {
      gradient += p.h[j * p.n + k] * x[k];
      size += std::abs(p.h[j * p.n + k] * x[k]);
    }
    for (std::size_t i = 0; i < p.m; ++i) {
      gradient += p.a[i * p.n + j] * rows[i];
      size += std::abs(p.a[i * p.n + j] * rows[i]);
    }
    worst = std::max(worst, std::abs(gradient) / size);
  }
  return worst;
}

// By how much the certificate proves that nothing obeys all rows, against how far it is from a combination that vanishes.
void expect_certificate(const Problem& p, const QuadraticProgram& qp, const std::string& id) {
  std::vector<double> sum(qp.certificate_box().begin(), qp.certificate_box().end());
  double bound = 0;
  const auto add = [&](double multiplier, double low, double high) {
    if (multiplier > 0) bound += multiplier * high;
    if (multiplier < 0) bound += multiplier * low;
  };
  for (std::size_t i = 0; i < p.m; ++i) {
    for (std::size_t j = 0; j < p.n; ++j) sum[j] += qp.certificate_rows()[i] * p.a[i * p.n + j];
    add(qp.certificate_rows()[i], p.lo[i], p.hi[i]);
  }
  for (std::size_t j = 0; j < p.n && !p.lower.empty(); ++j) add(qp.certificate_box()[j], p.lower[j], p.upper[j]);
  EXPECT_LT(bound, 0) << id;
  EXPECT_LE(size_of(sum), 1e-12 * (1 + size_of(p.a))) << id;
}

TEST(QuadraticProgram, GivesThePublishedAnswers) {
  double worst = 0, worst_gap = 0;
  for (const Json& line : published("qp.jsonl", "qp/qp.jsonl")) {
    const std::string& id = line.find("id")->string();
    const Problem p = published_problem(line);
    QuadraticProgram qp;
    qp.prepare(p.n, p.m);
    ASSERT_EQ(qp.set_hessian(p.h), Curvature::kPositive) << id;
    ASSERT_TRUE(qp.set_rows(p.a, p.m));
    const Status status = qp.solve(p.terms());
    ASSERT_EQ(name(status), line.find("status")->string()) << id;
    if (status == Status::kInfeasible) {
      expect_certificate(p, qp, id);
      continue;
    }
    const std::vector<double> x = numbers(line.find("x"));
    for (std::size_t i = 0; i < p.n; ++i) {
      const double off = std::abs(qp.x()[i] - x[i]) / (1 + size_of(x));
      EXPECT_LE(off, 1e-10) << id;
      worst = std::max(worst, off);
    }
    const double objective = line.find("objective")->number();
    EXPECT_NEAR(qp.objective(), objective, 1e-12 * std::max(1.0, std::abs(objective))) << id;
    if (line.find("unique_multipliers")->boolean()) {
      const Json* m = line.find("multipliers");
      const std::vector<double> rows = numbers(m->is_array() ? m : m->find("rows"));
      for (std::size_t i = 0; i < p.m; ++i) EXPECT_NEAR(qp.row_multipliers()[i], rows[i], 1e-8 * (1 + size_of(rows))) << id;
    }
    const double gap = optimality_gap(p, qp.x(), qp.row_multipliers(), qp.box_multipliers());
    EXPECT_LE(gap, 1e-12) << id;
    worst_gap = std::max(worst_gap, gap);
  }
  RecordProperty("worst_x", std::to_string(worst * 1e15) + "e-15");
  RecordProperty("worst_kkt", std::to_string(worst_gap * 1e15) + "e-15");
}

// Each step from the active set of the one before; a cold start beside it gives the same, also after a step without an answer.
TEST(QuadraticProgram, WarmStartsGiveThePublishedSequences) {
  double worst = 0, apart = 0;
  std::size_t warm_steps = 0, cold_steps = 0;
  for (const Json& line : published("qp_warm.jsonl", "qp/warm.jsonl")) {
    const std::string& id = line.find("id")->string();
    Problem p = published_problem(line);
    p.n = static_cast<std::size_t>(line.find("n")->integer());
    p.m = static_cast<std::size_t>(line.find("m")->integer());
    QuadraticProgram warm, cold;
    for (QuadraticProgram* qp : {&warm, &cold}) {
      qp->prepare(p.n, p.m);
      ASSERT_EQ(qp->set_hessian(p.h), Curvature::kPositive) << id;
      ASSERT_TRUE(qp->set_rows(p.a, p.m));
    }
    std::vector<std::uint8_t> active(p.n + p.m);
    std::size_t step = 0;
    for (const Json& s : line.find("steps")->items()) {
      const std::string where = id + " step " + std::to_string(step++);
      p.g = numbers(s.find("g"));
      p.lo = numbers(s.find("lo"));
      p.hi = numbers(s.find("hi"));
      const Status status = warm.solve(p.terms(), active);
      ASSERT_EQ(name(status), s.find("status")->string()) << where;
      ASSERT_EQ(cold.solve(p.terms()), status) << where;
      warm_steps += warm.iterations();
      cold_steps += cold.iterations();
      if (status != Status::kOptimal) {
        if (warm.inverted() == QuadraticProgram::kNone) expect_certificate(p, warm, where);
        continue;
      }
      const std::vector<double> x = numbers(s.find("x"));
      for (std::size_t i = 0; i < p.n; ++i) {
        const double off = std::abs(warm.x()[i] - x[i]) / (1 + size_of(x));
        EXPECT_LE(off, 1e-10) << where;
        worst = std::max(worst, off);
        apart = std::max(apart, std::abs(warm.x()[i] - cold.x()[i]) / (1 + size_of(x)));
      }
      EXPECT_NEAR(warm.objective(), s.find("objective")->number(), 1e-12 * std::max(1.0, std::abs(warm.objective()))) << where;
      EXPECT_LE(optimality_gap(p, warm.x(), warm.row_multipliers(), warm.box_multipliers()), 1e-12) << where;
    }
  }
  EXPECT_LE(apart, 1e-10);
  EXPECT_LT(warm_steps, cold_steps / 2);
  RecordProperty("worst_x", std::to_string(worst * 1e15) + "e-15");
  RecordProperty("steps", std::to_string(warm_steps) + " warm, " + std::to_string(cold_steps) + " cold");
}

}  // namespace
}  // namespace kizzasi::solve
