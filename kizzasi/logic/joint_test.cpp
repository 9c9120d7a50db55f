// Coupled conditions, choices, what looks back and convex sets: nearest by independent searches, exact as the user tests them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kSecond = 1'000'000'000;

Schema channels(std::initializer_list<const char*> names, std::initializer_list<const char*> given = {}) {
  Schema schema;
  for (const char* name : names) schema.channels.push_back({name, "", Role::kTarget});
  for (const char* name : given) schema.channels.push_back({name, "", Role::kKnownFuture});
  schema.step_ns = kSecond;
  return schema;
}

class Stream {
 public:
  Stream(const Schema& schema, const std::vector<ConstraintText>& constraints, int decimals = -1) {
    auto compiled = compile_guard(schema, constraints, {decimals});
    if (!compiled) throw std::runtime_error(compiled.error().text());
    guard = std::move(*compiled);
    state.resize(guard->state_bytes());
    scratch_.resize(guard->scratch_doubles());
    guard->prepare(report);
    guard->reset(state);
  }
  Stream(const Schema& schema, std::initializer_list<const char*> constraints, int decimals = -1)
      : Stream(schema, texts(constraints), decimals) {}

  std::vector<double> propose(std::vector<double> value) {
    const std::vector<std::byte> before = state;
    status = guard->propose(state, time, value, report, scratch_);
    EXPECT_EQ(before, state);
    return value;
  }
  void accept(const std::vector<double>& measured, const std::vector<double>& emitted) {
    guard->accept(state, time, measured, emitted);
    time += kSecond;
  }
  // A step of a rollout.
  std::vector<double> roll(const std::vector<double>& value) {
    const std::vector<double> moved = propose(value);
    accept({}, moved);
    return moved;
  }
  std::pair<double, double> interval(std::size_t channel) const {
    double low = 0, high = 0;
    guard->interval(state, time, channel, low, high);
    return {low, high};
  }

  std::unique_ptr<Guard> guard;
  std::vector<std::byte> state;
  GuardReport report;
  GuardStatus status = GuardStatus::kClean;
  std::int64_t time = 0;

 private:
  static std::vector<ConstraintText> texts(std::initializer_list<const char*> list) {
    std::vector<ConstraintText> out;
    for (const char* that : list) out.push_back({.name = that, .that = that, .where = "test"});
    return out;
  }
  std::vector<double> scratch_;
};

using Allowed = std::function<bool(const std::vector<double>&)>;

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(sum);
}

// The nearest of points thrown at random, closer and closer around the best: an upper bound of the distance that needs no theory.
double thrown(const Allowed& allowed, const std::vector<double>& y, const std::vector<double>& start, Rng& rng) {
  std::vector<double> best = start;
  double least = allowed(start) ? distance(start, y) : kInfinity;
  for (double reach = 16; reach > 1e-6; reach /= 1.5) {
    for (int i = 0; i < 250; ++i) {
      std::vector<double> x = (i % 2 == 0 && reach > 1) ? y : best;
      for (double& value : x) value += reach * rng.normal();
      if (allowed(x) && distance(x, y) < least) {
        least = distance(x, y);
        best = x;
      }
    }
  }
  return least;
}

void expect_nearest(const Schema& schema, const std::vector<ConstraintText>& texts, const Allowed& allowed, std::uint64_t seed,
                    double tolerance = 1e-3) {
  Rng rng(seed);
  Stream s(schema, texts);
  for (int turn = 0; turn < 12; ++turn) {
    std::vector<double> y(schema.size());
    for (double& value : y) value = 6 * rng.normal();
    const std::vector<double> x = s.propose(y);
    EXPECT_NE(s.status, GuardStatus::kInfeasible) << texts.front().that;
    EXPECT_TRUE(allowed(x)) << texts.front().that << fmt::format(" at {}", fmt::join(x, ", "));
    if (allowed(y)) {
      EXPECT_EQ(x, y) << texts.front().that;
    }
    const double mine = distance(x, y), other = thrown(allowed, y, x, rng);
    EXPECT_LE(mine, other + tolerance * (1 + other) * 1e-3)
        << texts.front().that << fmt::format(" from {} to {}", fmt::join(y, ", "), fmt::join(x, ", "));
  }
}

std::vector<ConstraintText> texts(std::initializer_list<const char*> list) {
  std::vector<ConstraintText> out;
  for (const char* that : list) out.push_back({.name = that, .that = that, .where = "test"});
  return out;
}

TEST(Joint, NoPointThatObeysIsNearer) {
  using V = std::vector<double>;
  const Schema two = channels({"x", "y"}), three = channels({"x", "y", "z"});
  const auto check = [&](const Schema& schema, std::initializer_list<const char*> that, const Allowed& allowed) {
    expect_nearest(schema, texts(that), allowed, 17 + that.size());
  };
  check(two, {"x + y <= 3", "x - y <= 1", "x >= -4"}, [](const V& v) { return v[0] + v[1] <= 3 && v[0] - v[1] <= 1 && v[0] >= -4; });
  check(three, {"x + 2 * y - z <= 1", "x - y + z >= -2", "-3 <= z <= 3", "y + z <= 2"},
        [](const V& v) { return v[0] + 2 * v[1] - v[2] <= 1 && v[0] - v[1] + v[2] >= -2 && -3 <= v[2] && v[2] <= 3 && v[1] + v[2] <= 2; });
  check(two, {"abs(x) >= 2"}, [](const V& v) { return std::abs(v[0]) >= 2; });
  check(two, {"abs(x) + abs(y) <= 2"}, [](const V& v) { return std::abs(v[0]) + std::abs(v[1]) <= 2; });
  check(two, {"x <= 1 or y >= 3"}, [](const V& v) { return v[0] <= 1 || v[1] >= 3; });
  check(two, {"x > 1 -> y >= 3 and x <= 5"}, [](const V& v) { return !(v[0] > 1) || (v[1] >= 3 && v[0] <= 5); });
  check(two, {"not (x < 1 and y < 1)"}, [](const V& v) { return !(v[0] < 1 && v[1] < 1); });
  check(two, {"x > 0 xor y > 0"}, [](const V& v) { return (v[0] > 0) != (v[1] > 0); });
  check(two, {"x > 2 <-> y > 2", "x + y <= 6"}, [](const V& v) { return (v[0] > 2) == (v[1] > 2) && v[0] + v[1] <= 6; });
  check(two, {"max(x, y) <= 1"}, [](const V& v) { return std::max(v[0], v[1]) <= 1; });
  check(two, {"min(x, y) <= 1"}, [](const V& v) { return std::min(v[0], v[1]) <= 1; });
  check(three, {"norm1(x, y, z) <= 2"}, [](const V& v) { return std::abs(v[0]) + std::abs(v[1]) + std::abs(v[2]) <= 2; });
  check(three, {"norminf(x, y, z) <= 2"},
        [](const V& v) { return std::max(std::max(std::abs(v[0]), std::abs(v[1])), std::abs(v[2])) <= 2; });
  check(two, {"norm(x, y) <= 2"}, [](const V& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1]) <= 2; });
  check(three, {"norm(x - 1, 2 * y, z) <= 3 - x / 2", "x + y + z <= 1"}, [](const V& v) {
    const double a = v[0] - 1, b = 2 * v[1];
    return std::sqrt(a * a + b * b + v[2] * v[2]) <= 3 - v[0] / 2 && v[0] + v[1] + v[2] <= 1;
  });
  check(two, {"x * x + x * y + y * y <= 4", "x >= 0.5"},
        [](const V& v) { return v[0] * v[0] + v[0] * v[1] + v[1] * v[1] <= 4 && v[0] >= 0.5; });
  check(two, {"norm(x, y) <= 2 or norm(x - 4, y) <= 1"},
        [](const V& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1]) <= 2 || std::sqrt((v[0] - 4) * (v[0] - 4) + v[1] * v[1]) <= 1; });
  check(two, {"abs(x - 2) == 1 or x <= -5"},
        [](const V& v) { return v[0] <= -5 || std::abs(std::abs(v[0] - 2) - 1) <= 8 * 2.220446049250313e-16 * (std::abs(v[0]) + 3); });
}

TEST(Joint, RandomPolytopesObeyTheConditionsOfOptimality) {
  // For points of a polytope the nearest is told by its multipliers: y - x is a sum of normals of what is active, with weights >= 0.
  Rng rng(5);
  for (int turn = 0; turn < 400; ++turn) {
    const std::size_t n = 2 + rng.below(5), m = 2 + rng.below(6);
    Schema schema;
    for (std::size_t j = 0; j < n; ++j) schema.channels.push_back({fmt::format("x{}", j), "", Role::kTarget});
    schema.step_ns = kSecond;
    std::vector<double> inside(n), y(n);
    for (double& v : inside) v = rng.normal();
    for (double& v : y) v = 4 * rng.normal();
    std::vector<std::vector<double>> rows;
    std::vector<double> ends;
    std::vector<ConstraintText> list;
    for (std::size_t i = 0; i < m; ++i) {
      std::vector<double> row(n);
      std::string text;
      double at = 0;
      for (std::size_t j = 0; j < n; ++j) {
        row[j] = std::round(8 * rng.normal()) / 4;
        if (row[j] == 0) row[j] = 1;
        at = j == 0 ? row[j] * inside[j] : at + row[j] * inside[j];
        text.append(j == 0 ? "" : " + ").append(fmt::format("{} * x{}", row[j], j));
      }
      ends.push_back(at + std::abs(rng.normal()));
      list.push_back({.name = text, .that = fmt::format("{} <= {}", text, ends.back()), .where = "test"});
      rows.push_back(row);
    }
    Stream s(schema, list);
    const std::vector<double> x = s.propose(y);
    ASSERT_NE(s.status, GuardStatus::kInfeasible);
    // Frank and Wolfe's gap with the vertices unknown: instead, walk against every active normal by projecting y - x onto their cone.
    std::vector<double> left(n);
    for (std::size_t j = 0; j < n; ++j) left[j] = y[j] - x[j];
    std::vector<std::vector<double>> active;
    for (std::size_t i = 0; i < m; ++i) {
      double at = rows[i][0] * x[0];
      for (std::size_t j = 1; j < n; ++j) at += rows[i][j] * x[j];
      ASSERT_LE(at, ends[i]);
      if (ends[i] - at < 1e-9) active.push_back(rows[i]);
    }
    std::vector<double> u(active.size(), 0);
    for (int sweep = 0; sweep < 20'000; ++sweep) {  // coordinate descent for u >= 0
      for (std::size_t i = 0; i < active.size(); ++i) {
        double along = 0, square = 0;
        for (std::size_t j = 0; j < n; ++j) along += active[i][j] * left[j], square += active[i][j] * active[i][j];
        const double step = std::max(-u[i], along / square);
        u[i] += step;
        for (std::size_t j = 0; j < n; ++j) left[j] -= step * active[i][j];
      }
    }
    double size = 0, rest = 0;
    for (std::size_t j = 0; j < n; ++j) size += std::abs(y[j] - x[j]), rest += std::abs(left[j]);
    EXPECT_LE(rest, 1e-7 * (1 + size)) << turn;
  }
}

TEST(Joint, BallsAndEllipsoidsGiveTheNearestPoint) {
  // Of a ball: y / |y|. Of an ellipse x^2 + 4 y^2 <= 4: the root of its multiplier's equation, by bisection.
  Rng rng(12);
  Stream ball(channels({"x", "y", "z"}), {"norm(x - 1, y, z) <= 2"});
  Stream ellipse(channels({"x", "y"}), {"x * x + 4 * y * y <= 4"});
  Stream cut(channels({"x", "y"}), {"norm(x, y) <= 2", "x + y <= 1"});
  for (int turn = 0; turn < 200; ++turn) {
    const std::vector<double> y{5 * rng.normal(), 5 * rng.normal(), 5 * rng.normal()};
    const double size = std::sqrt((y[0] - 1) * (y[0] - 1) + y[1] * y[1] + y[2] * y[2]), shrink = std::min(1.0, 2 / size);
    const std::vector<double> x = ball.propose(y);
    EXPECT_NEAR(x[0], 1 + (y[0] - 1) * shrink, 1e-9);
    EXPECT_NEAR(x[1], y[1] * shrink, 1e-9);
    EXPECT_NEAR(x[2], y[2] * shrink, 1e-9);
    double least = 0, most = 1e6;
    const auto level = [&](double m) { return std::pow(y[0] / (1 + m), 2) + 4 * std::pow(y[1] / (1 + 4 * m), 2); };
    for (int i = 0; i < 200; ++i) (level((least + most) / 2) > 4 ? least : most) = (least + most) / 2;
    const double m = level(0) <= 4 ? 0 : least;
    const std::vector<double> e = ellipse.propose({y[0], y[1]});
    EXPECT_NEAR(e[0], y[0] / (1 + m), 1e-6) << fmt::format("{}", fmt::join(y, ", "));
    EXPECT_NEAR(e[1], y[1] / (1 + 4 * m), 1e-6);
    EXPECT_NEAR(distance(e, {y[0], y[1]}), std::hypot(y[0] - y[0] / (1 + m), y[1] - y[1] / (1 + 4 * m)), 1e-9);
    EXPECT_LE(e[0] * e[0] + 4 * e[1] * e[1], 4);
    const std::vector<double> c = cut.propose({y[0], y[1]});
    EXPECT_LE(std::sqrt(c[0] * c[0] + c[1] * c[1]), 2);
    EXPECT_LE(c[0] + c[1], 1);
  }
}

TEST(Joint, AsManyCallsAtOnceAsThereAreThreads) {
  const Stream shared(channels({"x", "y"}), {"x + y <= 3", "x - y <= 1", "norm(x, y) <= 4", "x <= 1 or y <= -1"});
  const auto answers = [&](std::uint64_t seed) {
    Rng rng(seed);
    std::vector<double> scratch(shared.guard->scratch_doubles()), all;
    GuardReport report;
    shared.guard->prepare(report);
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<double> x{6 * rng.normal(), 6 * rng.normal()};
      shared.guard->propose(shared.state, 0, x, report, scratch);
      all.insert(all.end(), x.begin(), x.end());
    }
    return all;
  };
  std::vector<std::vector<double>> alone(16), together(16);
  for (std::size_t i = 0; i < alone.size(); ++i) alone[i] = answers(i);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < together.size(); ++i) threads.emplace_back([&together, &answers, i] { together[i] = answers(i); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, together);
}

TEST(Joint, ASavedStateGoesOnAsTheOneThatRan) {
  Stream s(channels({"x", "y"}), {"mean(x, 4s) <= 2", "abs(accel(y)) <= 3", "once[0, 3] y > 2 -> x <= 0"});
  Rng rng(2);
  for (int t = 0; t < 20; ++t) (void)s.roll({4 * rng.normal(), 4 * rng.normal()});
  const std::vector<std::byte> saved = s.state;
  const std::int64_t time = s.time;
  std::vector<std::vector<double>> first, second;
  for (std::vector<std::vector<double>>* out : {&first, &second}) {
    s.state = saved;
    s.time = time;
    Rng same(3);
    for (int t = 0; t < 20; ++t) out->push_back(s.roll({4 * same.normal(), 4 * same.normal()}));
  }
  EXPECT_EQ(first, second);
}

TEST(Joint, SoftRowsGiveWayByTheirPrice) {
  // (x - 4)^2 + w max(0, x - 1)^2 with y free: x = (4 + w) / (1 + w).
  std::vector<ConstraintText> list = texts({"x + y <= 100", "x - y <= 100"});
  list.push_back({.name = "soft", .that = "x <= 1", .soft = true, .weight = 3});
  Stream s(channels({"x", "y"}), list);
  const std::vector<double> x = s.propose({4, 0});
  EXPECT_NEAR(x[0], (4 + 3.0) / (1 + 3.0), 1e-12);
  EXPECT_EQ(x[1], 0);
  EXPECT_NEAR(s.report.slack[2], x[0] - 1, 1e-12);
  EXPECT_EQ(s.status, GuardStatus::kMoved);
  // Minimise (x - 3)^2 + (y - 3)^2 + 2 max(0, x + y - 2)^2 subject to x - y >= 1.
  std::vector<ConstraintText> sums = texts({"x - y >= 1"});
  sums.push_back({.name = "soft", .that = "x + y <= 2", .soft = true, .weight = 2});
  const std::vector<double> z = Stream(channels({"x", "y"}), sums).propose({3, 3});
  // With x = s + 1/2, y = s - 1/2: 2 (s - 3)^2 + 2 (2 s - 2)^2, s = 7/5.
  EXPECT_NEAR(z[0], 1.4 + 0.5, 1e-12);
  EXPECT_NEAR(z[1], 1.4 - 0.5, 1e-12);
}

TEST(Joint, SoftCurvesGiveWayByTheirPrice) {
  // On the ray from the middle: (p - 5)^2 + w max(0, p - 2)^2 has its least at (5 + 2 w) / (1 + w).
  Stream ball(channels({"x", "y"}), std::vector<ConstraintText>{{.name = "n", .that = "norm(x, y) <= 2", .soft = true, .weight = 4}});
  std::vector<double> x = ball.propose({3, 4});
  EXPECT_NEAR(x[0], 0.6 * (5 + 8.0) / 5, 1e-9);
  EXPECT_NEAR(x[1], 0.8 * (5 + 8.0) / 5, 1e-9);
  EXPECT_EQ(ball.status, GuardStatus::kMoved);
  EXPECT_NEAR(ball.report.slack[0], (5 + 8.0) / 5 - 2, 1e-9);
  EXPECT_EQ(ball.propose({0.3, 0.4}), (std::vector<double>{0.3, 0.4}));
  // Random forms beside a hard plane: no point around that obeys the plane costs less.
  Rng rng(11);
  for (int turn = 0; turn < 60; ++turn) {
    const double w = std::exp(2 * rng.normal()), v = std::exp(rng.normal()), a = rng.normal(), b = rng.normal(), c = rng.normal(),
                 r = 1 + rng.uniform();
    std::vector<ConstraintText> list{{.name = "n", .that = fmt::format("norm(x - {}, 2 * y) <= {}", a, r), .soft = true, .weight = w},
                                     {.name = "q", .that = fmt::format("x * x + x * y + y * y <= {}", r), .soft = true, .weight = v},
                                     {"h", fmt::format("{} * x + y >= {}", b, c)}};
    const double x0 = 4 * rng.normal(), y0 = 4 * rng.normal();
    const std::vector<double> at = Stream(channels({"x", "y"}), list).propose({x0, y0});
    const auto cost = [&](double p, double q) {
      const double n = std::max(0.0, std::hypot(p - a, 2 * q) - r), s = std::max(0.0, p * p + p * q + q * q - r);
      return (p - x0) * (p - x0) + (q - y0) * (q - y0) + w * n * n + v * s * s;
    };
    ASSERT_GE(b * at[0] + at[1], c);
    const double least = cost(at[0], at[1]);
    for (int other = 0; other < 400; ++other) {
      const double far = std::exp(-12 * rng.uniform()), p = at[0] + far * rng.normal(), q = at[1] + far * rng.normal();
      if (b * p + q < c) continue;
      ASSERT_GE(cost(p, q), least - 1e-7 * (1 + least)) << turn << ": " << list[0].that << ", " << list[1].that << ", " << list[2].that;
    }
  }
}

TEST(Joint, WhereNotAllCanHoldPrioritiesDecide) {
  std::vector<ConstraintText> list = texts({"x + y >= load", "x - y <= 1", "x <= 2", "y <= 2"});
  list[0].priority = 1;
  Stream s(channels({"x", "y"}, {"load"}), list);
  std::vector<double> x = s.propose({0, 0, 10});
  EXPECT_EQ(s.status, GuardStatus::kInfeasible);
  EXPECT_EQ(s.report.broken, (std::vector<std::uint8_t>{1, 0, 0, 0}));
  EXPECT_NEAR(x[0], 2, 1e-6);  // as near to the load as the others let it
  EXPECT_NEAR(x[1], 2, 1e-6);
  list[0].priority = -1;
  Stream other(channels({"x", "y"}, {"load"}), list);
  x = other.propose({0, 0, 10});
  EXPECT_GE(x[0] + x[1], 10);
  EXPECT_EQ(other.report.broken[0], 0);
  EXPECT_EQ(other.status, GuardStatus::kInfeasible);
}

TEST(Joint, WhatLooksBackIsAffineInWhatIsNow) {
  Stream s(channels({"x"}), {"mean(x, 3s) <= 2", "abs(accel(x)) <= 1.5", "prev(x, 2) - x <= 4"});
  std::vector<double> trace;
  Rng rng(8);
  for (int t = 0; t < 300; ++t) {
    const double x = s.roll({10 * rng.normal()})[0];
    trace.push_back(x);
    const std::size_t n = trace.size();
    double sum = 0;
    const std::size_t width = std::min<std::size_t>(3, n);
    for (std::size_t k = n - width; k < n; ++k) sum += trace[k];
    if (s.status != GuardStatus::kInfeasible) {
      EXPECT_LE(sum / static_cast<double>(width), 2.0);
      if (n >= 3) {
        EXPECT_LE(std::abs((trace[n - 1] - trace[n - 2]) - (trace[n - 2] - trace[n - 3])), 1.5);
        EXPECT_LE(trace[n - 3] - trace[n - 1], 4);
      }
    }
  }
}

TEST(Joint, AWindowIsNoListOfNumbers) {
  for (const char* that : {"mean(x, 10s) <= 3", "mean(x, 2 [samples]) <= 3"}) {
    const double x = Stream(channels({"x"}), {that}).propose({9})[0];
    EXPECT_LE(x, 3);
    EXPECT_NEAR(x, 3, 1e-12);
  }
  EXPECT_EQ(Stream(channels({"x"}), {"mean(x, 1) <= 3"}).propose({9})[0], 5);  // of x and 1
}

TEST(Joint, WindowsIntegralsTrendsAndSchedules) {
  Stream s(channels({"x"}), {"max(x, 3s) - x <= 1", "integral(x, 4s) >= -2", "trend(x, 5s) <= 0.5", "variance(x, 3s) <= 2"});
  std::vector<double> trace;
  Rng rng(18);
  int held = 0;
  for (int t = 0; t < 400; ++t) {
    trace.push_back(s.roll({3 * rng.normal()})[0]);
    const std::size_t n = trace.size();
    if (s.status == GuardStatus::kInfeasible || n < 6) continue;
    ++held;
    const double* x = trace.data() + n - 1;
    EXPECT_LE(std::max({x[0], x[-1], x[-2]}) - x[0], 1);
    EXPECT_GE(x[-3] + x[-2] + x[-1] + x[0], -2);
    EXPECT_LE((2 * x[0] + x[-1] - x[-3] - 2 * x[-4]) / 10, 0.5);
    const double mean = (x[0] + x[-1] + x[-2]) / 3;
    EXPECT_LE(((x[0] - mean) * (x[0] - mean) + (x[-1] - mean) * (x[-1] - mean) + (x[-2] - mean) * (x[-2] - mean)) / 3, 2 + 1e-12);
  }
  EXPECT_GT(held, 300);
  Schema clock = channels({"x"}, {"mode"});
  clock.step_ns = 3600 * kSecond;
  Stream by_hour(clock, {"hour() >= 22 or hour() < 6 -> x <= 1", "mode > 2 -> x >= 0.5"});
  for (int hour = 0; hour < 48; ++hour) {
    by_hour.time = hour * 3600 * kSecond;
    const double high = by_hour.propose({5, 1})[0], low = by_hour.propose({-5, 3})[0];
    EXPECT_EQ(high, hour % 24 >= 22 || hour % 24 < 6 ? 1.0 : 5.0) << hour;
    EXPECT_EQ(low, 0.5);
  }
}

TEST(Joint, ThePastOfConditionsIsKnown) {
  // Once the alarm was on within the last 3 frames, x stays low; after x was high it may not rise twice.
  Stream s(channels({"x"}, {"alarm"}),
           {"once[0,3] alarm >= 1 -> x <= 1", "rise(x > 4) -> previous[!] x > 2", "(x < 8 since x <= 0) or x <= 0 or not once x <= 0"});
  Rng rng(4);
  std::vector<double> xs, alarms;
  for (int t = 0; t < 500; ++t) {
    const double alarm = rng.below(8) == 0 ? 1 : 0;
    const double x = s.roll({6 * rng.normal(), alarm})[0];
    ASSERT_NE(s.status, GuardStatus::kInfeasible) << t;
    xs.push_back(x);
    alarms.push_back(alarm);
    const std::size_t n = xs.size();
    bool recent = false;
    for (std::size_t k = n - std::min<std::size_t>(4, n); k < n; ++k) recent = recent || alarms[k] >= 1;
    EXPECT_FALSE(recent && x > 1) << t;
    const bool rises = x > 4 && (n < 2 || !(xs[n - 2] > 4));
    EXPECT_FALSE(rises && (n < 2 || !(xs[n - 2] > 2))) << t;
    bool since = false, ever = false;
    for (std::size_t k = 0; k < n; ++k) {
      since = xs[k] <= 0 || (since && xs[k] < 8);
      ever = ever || xs[k] <= 0;
    }
    EXPECT_TRUE(since || x <= 0 || !ever) << t;
  }
}

TEST(Joint, WhatIsMissingObeysNothing) {
  Stream s(channels({"x", "y"}, {"mode"}), {"mode > 2 -> x <= 1", "x + y <= 10", "x - y <= 10"});
  EXPECT_EQ(s.propose({5, 0, 1})[0], 5);
  EXPECT_EQ(s.propose({5, 0, 3})[0], 1);
  EXPECT_EQ(s.propose({5, 0, kNaN})[0], 1);  // it may be above 2
  Stream rate(channels({"x", "y"}), {"rate(x) <= 1 and x + y <= 3", "x - y <= 9"});
  const std::vector<double> x = rate.propose({5, 5});
  EXPECT_EQ(x[0] + x[1], 3);
}

TEST(Joint, AnIntervalIsWhatPartnersLeave) {
  Stream s(channels({"x", "y"}), {"x + y <= 3", "x - y <= 1", "y >= -2", "x >= -1"});
  const auto [low, high] = s.interval(0);
  EXPECT_EQ(low, -1);
  EXPECT_NEAR(high, 2, 1e-9);
  EXPECT_LE(high, 2);
  const auto [least, most] = s.interval(1);
  EXPECT_EQ(least, -2);
  EXPECT_NEAR(most, 4, 1e-9);
  const auto open = Stream(channels({"x"}), {"abs(x) >= 2"}).interval(0);
  EXPECT_EQ(open.first, -kInfinity);
  EXPECT_EQ(open.second, kInfinity);
}

TEST(Joint, OnDecimalsToo) {
  Rng rng(6);
  Stream s(channels({"x", "y"}), {"x + y <= 3.05", "x - 2 * y <= 1", "norm(x, y) <= 4", "x <= 1 or y <= 1"}, 1);
  for (int turn = 0; turn < 200; ++turn) {
    const std::vector<double> x = s.propose({5 * rng.normal(), 5 * rng.normal()});
    ASSERT_NE(s.status, GuardStatus::kInfeasible);
    for (const double v : x) EXPECT_EQ(std::strtod(fmt::format("{:.1f}", v).c_str(), nullptr), v);
    EXPECT_LE(x[0] + x[1], 3.05);
    EXPECT_LE(x[0] - 2 * x[1], 1);
    EXPECT_LE(std::sqrt(x[0] * x[0] + x[1] * x[1]), 4);
    EXPECT_TRUE(x[0] <= 1 || x[1] <= 1);
  }
}

}  // namespace
}  // namespace kizzasi
