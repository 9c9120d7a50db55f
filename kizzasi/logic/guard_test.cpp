#include "kizzasi/logic/guard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kSecond = 1'000'000'000;

Schema channels(std::vector<std::string> names, std::int64_t step_ns = kSecond) {
  Schema schema;
  for (std::string& name : names) schema.channels.push_back({std::move(name), "", Role::kTarget});
  schema.step_ns = step_ns;
  return schema;
}

// A guard with one stream.
class Stream {
 public:
  Stream(const Schema& schema, const std::vector<ConstraintText>& constraints, int decimals = -1, std::vector<double> scale = {})
      : step_(schema.step_ns) {
    auto compiled = compile_guard(schema, constraints, {decimals}, scale);
    if (!compiled) throw std::runtime_error(compiled.error().text());
    guard_ = std::move(*compiled);
    state.resize(guard_->state_bytes());
    scratch_.resize(guard_->scratch_doubles());
    guard_->prepare(report);
    guard_->reset(state);
  }
  Stream(const Schema& schema, std::initializer_list<const char*> constraints, int decimals = -1)
      : Stream(schema, texts(constraints), decimals) {}

  std::vector<double> propose(std::vector<double> value) {
    status = guard_->propose(state, time, value, report, scratch_);
    return value;
  }
  void accept(const std::vector<double>& measured, const std::vector<double>& emitted) {
    guard_->accept(state, time, measured, emitted);
    time += step_ == 0 ? 1 : step_;
  }
  std::pair<double, double> interval(std::size_t channel) const {
    double low = 0, high = 0;
    guard_->interval(state, time, channel, low, high);
    return {low, high};
  }
  const Guard& guard() const { return *guard_; }

  std::vector<std::byte> state;
  GuardReport report;
  GuardStatus status = GuardStatus::kClean;
  std::int64_t time = 0;

 private:
  static std::vector<ConstraintText> texts(std::initializer_list<const char*> constraints) {
    std::vector<ConstraintText> list;
    for (const char* that : constraints) list.push_back({.name = that, .that = that});
    return list;
  }
  std::int64_t step_;
  std::unique_ptr<Guard> guard_;
  std::vector<double> scratch_;
};

double number(const Json& json) { return json.is_string() ? (json.string() == "inf" ? kInfinity : -kInfinity) : json.number(); }
std::vector<double> numbers(const Json& json) {
  std::vector<double> list;
  for (const Json& item : json.items()) list.push_back(number(item));
  return list;
}

// A published case written in the language.
struct Published {
  Schema schema;
  std::vector<ConstraintText> constraints;
  std::vector<double> y, scale, previous;
};

Published published(const Json& line) {
  Published p;
  p.y = numbers(*line.find("y"));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < p.y.size(); ++i) names.push_back(fmt::format("x{}", i));
  p.schema = channels(names);
  const auto add = [&](const std::string& that) { p.constraints.push_back({.name = that, .that = that}); };
  const auto bound = [&](const std::string& what, double low, double high) {
    if (low == high) add(fmt::format("{} == {}", what, low));
    if (low == high) return;
    if (std::isfinite(low)) add(fmt::format("{} >= {}", what, low));
    if (std::isfinite(high)) add(fmt::format("{} <= {}", what, high));
  };
  const std::vector<double> low = numbers(*line.find("lower")), high = numbers(*line.find("upper"));
  for (std::size_t i = 0; i < low.size(); ++i) bound(names[i], low[i], high[i]);
  for (std::size_t r = 0; r < line.find("A")->items().size(); ++r) {
    const std::vector<double> a = numbers(line.find("A")->items()[r]);
    std::string sum;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] != 0) sum.append(sum.empty() ? "" : " + ").append(fmt::format("{} * {}", a[i], names[i]));
    }
    bound(sum, number(line.find("lo")->items()[r]), number(line.find("hi")->items()[r]));
  }
  if (line.find("previous") != nullptr) {
    p.previous = numbers(*line.find("previous"));
    const std::vector<double> rate = numbers(*line.find("rate"));
    for (std::size_t i = 0; i < rate.size(); ++i) add(fmt::format("abs(rate({})) <= {}", names[i], rate[i]));
  }
  if (line.find("weight") != nullptr) {
    for (const double weight : numbers(*line.find("weight"))) p.scale.push_back(1 / std::sqrt(weight));
  }
  return p;
}

TEST(Guard, GivesThePublishedNearestPoints) {
  std::ifstream in(KIZZASI_SOURCE_DIR "/tests/golden/logic/projection.jsonl");
  std::size_t cases = 0;
  for (std::string text; std::getline(in, text);) {
    const Json line = *Json::parse(text, "projection.jsonl");
    const std::string& id = line.find("id")->string();
    Published p = published(line);
    const bool feasible = line.find("status")->string() == "ok";
    if (!feasible && p.previous.empty()) {  // bounds that leave nothing are found when compiling
      EXPECT_FALSE(compile_guard(p.schema, p.constraints, {})) << id;
      ++cases;
      continue;
    }
    Stream s(p.schema, p.constraints, -1, p.scale);
    if (!p.previous.empty()) s.accept(p.previous, {});
    const std::vector<double> x = s.propose(p.y);
    EXPECT_EQ(s.status == GuardStatus::kInfeasible, !feasible) << id;
    double size = 1;
    for (const double y : p.y) size = std::max(size, std::abs(y));
    if (const Json* wins = line.find("box_wins")) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (wins->items()[i].is_number()) {
          EXPECT_EQ(x[i], wins->items()[i].number()) << id;
        }
      }
    }
    if (feasible) {
      const std::vector<double> expected = numbers(*line.find("x"));
      const Json* unchanged = line.find("unchanged");
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(x[i], expected[i], 1e-12 * size) << id << " x" << i;
        if (unchanged != nullptr && unchanged->boolean()) {
          EXPECT_EQ(x[i], p.y[i]) << id;
        }
      }
    }
    ++cases;
  }
  EXPECT_EQ(cases, 118u);
}

// An independent truth for a box and one sum: bisection on the multiplier in long double.
std::vector<double> bisected(const std::vector<double>& y, const std::vector<double>& low, const std::vector<double>& high,
                             const std::vector<double>& a, double lower, double upper) {
  const auto at = [&](long double lambda) {
    std::vector<long double> x(y.size());
    for (std::size_t j = 0; j < y.size(); ++j) {
      x[j] = std::clamp<long double>(y[j] - lambda * a[j], low[j], high[j]);
    }
    return x;
  };
  const auto sum = [&](long double lambda) {
    long double total = 0;
    const auto x = at(lambda);
    for (std::size_t j = 0; j < y.size(); ++j) total += a[j] * x[j];
    return total;
  };
  long double left = -1e6L, right = 1e6L;
  if (sum(0) > upper) left = 0;
  if (sum(0) < lower) right = 0;
  const long double target = sum(0) > upper ? upper : lower;
  if (sum(0) <= upper && sum(0) >= lower) left = right = 0;
  for (int i = 0; i < 200 && left < right; ++i) {
    const long double middle = (left + right) / 2;
    (sum(middle) > target ? left : right) = middle;
  }
  const auto x = at((left + right) / 2);
  return {x.begin(), x.end()};
}

TEST(Guard, MovesCoupledChannelsToTheNearestPoint) {
  Rng rng(3);
  for (int turn = 0; turn < 300; ++turn) {
    const std::size_t n = 2 + rng.below(5);
    std::vector<std::string> names;
    std::vector<double> y(n), low(n), high(n), a(n);
    std::vector<ConstraintText> texts;
    std::string sum;
    double inside = 0;
    for (std::size_t j = 0; j < n; ++j) {
      names.push_back(fmt::format("x{}", j));
      y[j] = std::round(rng.uniform(-80, 80)) / 8;
      low[j] = std::round(rng.uniform(-40, 0)) / 8;
      high[j] = low[j] + static_cast<double>(rng.below(40)) / 8;
      a[j] = static_cast<double>(rng.below(7)) - 3;
      if (a[j] == 0) a[j] = 0.5;
      inside += a[j] * rng.uniform(low[j], high[j]);
      texts.push_back({.name = names[j], .that = fmt::format("{} <= {} <= {}", low[j], names[j], high[j])});
      sum.append(j == 0 ? "" : " + ").append(fmt::format("{} * {}", a[j], names[j]));
    }
    const double width = rng.below(2) == 0 ? 0 : rng.uniform();
    texts.push_back(
        {.name = "sum", .that = width == 0 ? fmt::format("{} == {}", sum, inside) : fmt::format("{} == {} +- {}", sum, inside, width)});
    Stream s(channels(names), texts);
    const std::vector<double> x = s.propose(y);
    EXPECT_NE(s.status, GuardStatus::kInfeasible);
    const std::vector<double> expected = bisected(y, low, high, a, inside - width, inside + width);
    for (std::size_t j = 0; j < n; ++j) EXPECT_NEAR(x[j], expected[j], 1e-11) << turn << " x" << j << " " << texts.back().that;
  }
}

TEST(Guard, OnDecimalsFindsTheNearestOfAllAllowedNumbers) {
  // Every number with one decimal is tried; the user's test is evaluated on each.
  Rng rng(4);
  for (int turn = 0; turn < 300; ++turn) {
    const double low = static_cast<double>(rng.below(100)) / 10 - 8.05, high = low + 0.2 + static_cast<double>(rng.below(50)) / 10;
    const double rate = 0.15 + static_cast<double>(rng.below(30)) / 10, before = std::round((low + high) * 5) / 10,
                 y = rng.uniform(-12, 12);
    Stream s(channels({"x"}, 500'000'000),
             {{.name = "r", .that = fmt::format("{} <= x < {}", low, high)},
              {.name = "s", .that = fmt::format("-{} <= rate(x) <= {}", rate, rate)}},
             1);
    s.accept({before}, {});
    double best = kNaN;
    for (int k = -200; k <= 200; ++k) {
      const double x = k / 10.0;
      if (!(low <= x && x < high && -rate <= (x - before) / 0.5 && (x - before) / 0.5 <= rate)) continue;
      if (!(std::abs(x - y) >= std::abs(best - y))) best = x;
    }
    const double x = s.propose({y})[0];
    EXPECT_DOUBLE_EQ(std::abs(x - y), std::abs(best - y)) << turn << ": " << x << " " << best;
    EXPECT_NE(s.status, GuardStatus::kInfeasible);
  }
}

TEST(Guard, StrictBoundsEndOneStepInside) {
  Stream all(channels({"x"}), {"x < 5", "x > -5"});
  EXPECT_EQ(all.propose({7})[0], std::nextafter(5.0, 0.0));
  EXPECT_EQ(all.propose({-7})[0], std::nextafter(-5.0, 0.0));
  Stream text(channels({"x"}), {"x < 5", "x > -5"}, 2);
  EXPECT_EQ(text.propose({7})[0], 4.99);
  EXPECT_EQ(text.propose({-7})[0], -4.99);
  Stream sum(channels({"a", "b"}), {"a + b < 1"});
  const std::vector<double> x = sum.propose({3, 4});
  EXPECT_LT(x[0] + x[1], 1.0);
  EXPECT_NEAR(x[0] + x[1], 1.0, 1e-15);
}

TEST(Guard, ReadsTheUsersOwnArithmetic) {
  const auto nearest = [](const char* that, double y) { return Stream(channels({"x", "y"}), {that}).propose({y, 0})[0]; };
  EXPECT_EQ(nearest("2 * x + 1 <= 5", 9), 2.0);
  EXPECT_EQ(nearest("-x / 4 >= -0.5 - 0.25", 9), 3.0);
  EXPECT_EQ(nearest("x in [1, 1 + 1]", 9), 2.0);
  EXPECT_EQ(nearest("x == 3 +- 0.5", 9), 3.5);
  EXPECT_EQ(nearest("abs(x - 1) <= 2", 9), 3.0);
  EXPECT_EQ(nearest("abs(x) <= 2 - x / 2", -9), -4.0);
  EXPECT_EQ(nearest("2 * abs(x) - 1 <= 5", -9), -3.0);
  EXPECT_EQ(nearest("always 1 <= x <= 2 and c1 <= 1.5", 9), 1.5);
  EXPECT_EQ(nearest("* <= 4", 9), 4.0);
  EXPECT_EQ(nearest("x + x + x <= 9", 9), 3.0);
  EXPECT_EQ(nearest("x == 3", 9), 3.0);
  EXPECT_EQ((nearest("mean(x, 2, 4) <= 3", 9) + 2 + 4) / 3, 3.0);
  // 0.1 + 0.2 <= 0.3 is false in double, and so is every bound that pretends otherwise.
  const double x = nearest("x + 0.2 <= 0.3", 9);
  EXPECT_LE(x + 0.2, 0.3);
  EXPECT_GT(std::nextafter(x, 1.0) + 0.2, 0.3);
}

TEST(Guard, PreviousIsWhatWasMeasuredOrWhatWasCommanded) {
  Stream s(channels({"m", "c"}), {"abs(rate(m)) <= 1", "abs(rate(c, from = commanded)) <= 1"});
  EXPECT_EQ(s.propose({50, 50}), (std::vector<double>{50, 50}));  // nothing is past yet
  EXPECT_EQ(s.report.unknown, (std::vector<std::uint8_t>{1, 1}));
  s.accept({10, 10}, {20, 20});
  EXPECT_EQ(s.propose({50, 50}), (std::vector<double>{11, 21}));
  s.accept({kNaN, 12}, {kNaN, 21});  // m is missing in a frame that was measured: its last measured value stands, one second older
  EXPECT_EQ(s.propose({50, 50}), (std::vector<double>{12, 22}));
  s.accept({kNaN, kNaN}, {12, 22});  // a step of a rollout
  EXPECT_EQ(s.propose({50, 50}), (std::vector<double>{13, 23}));
  s.time += kSecond;  // a frame was left out: twice the time, twice the way
  EXPECT_EQ(s.propose({50, 50}), (std::vector<double>{14, 24}));
  s.time -= 2 * kSecond;  // no time has passed: nothing moves
  EXPECT_EQ(s.propose({50, 50}), (std::vector<double>{12, 22}));
}

TEST(Guard, CountsRowsWhereThereIsNoTime) {
  Stream s(channels({"x"}, 0), {"abs(rate(x)) <= 1 [1/row]", "x - prev(x, 1) >= -0.5"});
  s.accept({3}, {});
  EXPECT_EQ(s.propose({9})[0], 4);
  EXPECT_EQ(s.propose({0})[0], 2.5);
}

TEST(Guard, ALimiterReachesItsTargetStepByStep) {
  Stream s(channels({"u"}, 100'000'000), {"abs(rate(u, from = commanded)) <= 1"});
  s.accept({}, {0});
  double before = 0;
  for (int i = 1; i <= 10; ++i) {
    const double u = s.propose({5})[0];
    EXPECT_NEAR(u, 0.1 * i, 1e-12);
    EXPECT_LE(std::abs((u - before) / 0.1), 1.0);
    s.accept({}, {u});
    before = u;
  }
}

TEST(Guard, WhatIsNotFiniteBecomesTheLastEmittedValue) {
  Stream s(channels({"x", "y"}), {"x >= 2"});
  EXPECT_EQ(s.propose({kNaN, -kInfinity}), (std::vector<double>{2, 0}));
  EXPECT_EQ(s.report.replaced, 2u);
  EXPECT_EQ(s.report.moved, 2u);
  s.accept({7, 7}, {kNaN, 3});
  EXPECT_EQ(s.propose({kNaN, kInfinity}), (std::vector<double>{7, 3}));
  EXPECT_EQ(s.propose({5, 5}), (std::vector<double>{5, 5}));
  EXPECT_EQ(s.report.replaced, 0u);
  EXPECT_EQ(s.status, GuardStatus::kClean);
}

TEST(Guard, PoliciesDoWhatTheySay) {
  const Schema schema = channels({"x", "y"});
  Stream reject(schema, {{"r", "x <= 1", "reject"}, {"p", "y <= 1"}});
  EXPECT_EQ(reject.propose({5, 5}), (std::vector<double>{5, 5}));
  EXPECT_EQ(reject.status, GuardStatus::kRejected);
  EXPECT_EQ(reject.report.broken, (std::vector<std::uint8_t>{1, 1}));
  EXPECT_EQ(reject.propose({0, 5}), (std::vector<double>{0, 1}));
  EXPECT_EQ(reject.status, GuardStatus::kMoved);
  EXPECT_EQ(reject.report.distance, 4);
  reject.propose({kNaN, 0});
  EXPECT_EQ(reject.status, GuardStatus::kRejected);  // NaN satisfies nothing

  Stream hold(schema, {{"h", "x <= 1", "hold"}});
  EXPECT_EQ(hold.propose({5, 5}), (std::vector<double>{1, 5}));  // nothing to hold yet
  hold.accept({}, {0.5, 0.5});
  EXPECT_EQ(hold.propose({5, 5}), (std::vector<double>{0.5, 5}));
  EXPECT_EQ(hold.status, GuardStatus::kHeld);

  Stream warn(schema, {{"w", "x <= 1", "warn"}});
  EXPECT_EQ(warn.propose({5, 5}), (std::vector<double>{5, 5}));
  EXPECT_EQ(warn.status, GuardStatus::kWarned);
  EXPECT_EQ(warn.report.broken[0], 1);
  EXPECT_EQ(warn.report.slack[0], 4);
}

TEST(Guard, PrioritiesDecideWhenNotAllCanHold) {
  const Schema schema = channels({"x", "y"});
  Stream bound(schema, {{"rate", "abs(rate(x)) <= 1"}, {"bound", "x <= 2"}});  // among equals the bound wins, whatever the order
  bound.accept({9, 0}, {});
  EXPECT_EQ(bound.propose({9, 0})[0], 2);
  EXPECT_EQ(bound.status, GuardStatus::kInfeasible);
  EXPECT_EQ(bound.report.broken, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(bound.report.slack[0], 6);
  Stream rate(schema, {{"rate", "abs(rate(x)) <= 1", "project", 0}, {"bound", "x <= 2", "project", 1}});
  rate.accept({9, 0}, {});
  EXPECT_EQ(rate.propose({9, 0})[0], 8);
  EXPECT_EQ(rate.report.broken, (std::vector<std::uint8_t>{0, 1}));

  // x + y == 10, but the rates keep both near 1: the rates win, or yield as little as they must.
  Stream weak(schema, {{"sum", "x + y == 10", "project", 2}, {"rx", "abs(rate(x)) <= 1"}, {"ry", "abs(rate(y)) <= 1"}});
  weak.accept({1, 1}, {});
  EXPECT_EQ(weak.propose({0, 0}), (std::vector<double>{2, 2}));
  EXPECT_EQ(weak.report.broken, (std::vector<std::uint8_t>{1, 0, 0}));
  Stream strong(schema, {{"sum", "x + y == 10"}, {"rx", "abs(rate(x)) <= 1", "project", 1}, {"ry", "abs(rate(y)) <= 1", "project", 2}});
  strong.accept({1, 1}, {});
  EXPECT_EQ(strong.propose({0, 0}), (std::vector<double>{2, 8}));
  EXPECT_EQ(strong.report.broken, (std::vector<std::uint8_t>{0, 0, 1}));
}

TEST(Guard, SoftBoundsCostTheSquareOfTheirSlack) {
  ConstraintText soft{"s", "x <= 1"};
  soft.soft = true;
  soft.weight = 3;
  // (x - 5)^2 + 3 (x - 1)^2 is least at x = 2.
  Stream s(channels({"x"}), std::vector<ConstraintText>{soft});
  EXPECT_NEAR(s.propose({5})[0], 2, 1e-15);
  EXPECT_EQ(s.status, GuardStatus::kMoved);
  EXPECT_NEAR(s.report.slack[0], 1, 1e-15);
  // With a unit of distance of 2: ((x - 5) / 2)^2 + 3 (x - 1)^2, least at 17 / 13.
  Stream scaled(channels({"x"}), std::vector<ConstraintText>{soft}, -1, {2});
  EXPECT_NEAR(scaled.propose({5})[0], 17.0 / 13, 1e-15);
  // A hard bound decides over it.
  Stream both(channels({"x"}), std::vector<ConstraintText>{soft, {"h", "x >= 4"}});
  EXPECT_EQ(both.propose({5})[0], 4);
  // Coupled: (x-2)^2 + (y-2)^2 + w (x + y - 2)^2, by symmetry x = y = (2 + 2 w) / (1 + 2 w).
  soft.that = "x + y <= 2";
  Stream sum(channels({"x", "y"}), std::vector<ConstraintText>{soft});
  EXPECT_NEAR(sum.propose({2, 2})[0], 8.0 / 7, 1e-14);
  EXPECT_NEAR(sum.propose({2, 2})[1], 8.0 / 7, 1e-14);
}

TEST(Guard, GivenChannelsAreTakenAsTheyStand) {
  Schema schema = channels({"demand", "supply", "store"});
  schema.channels[0].role = Role::kKnownFuture;
  Stream s(schema, {"supply - demand == 0", "store + demand <= 10", "demand >= 0"});
  const std::vector<double> x = s.propose({4, 1, 9});
  EXPECT_EQ(x[0], 4);
  EXPECT_EQ(x[1], 4);
  EXPECT_EQ(x[2] + 4, 10);
  EXPECT_EQ(s.propose({-1, 1, 9}), (std::vector<double>{-1, -1, 9}));
  EXPECT_EQ(s.status, GuardStatus::kMoved);  // a given value that is out of bounds is reported; it is not the guard's to move
  EXPECT_EQ(s.report.broken, (std::vector<std::uint8_t>{0, 0, 1}));
  s.propose({kNaN, 1, 99});
  EXPECT_EQ(s.report.unknown, (std::vector<std::uint8_t>{1, 1, 1}));
  EXPECT_EQ(s.status, GuardStatus::kClean);
}

TEST(Guard, ProposingLeavesNoTraceAndCopiesOfTheStateGoOnAlike) {
  const Schema schema = channels({"x", "y"});
  const auto fresh = [&] {
    return Stream(schema, {"-5 <= x <= 5", "abs(rate(x)) <= 1", "x + y <= 3", "abs(rate(y, from = commanded)) <= 2"});
  };
  Stream a = fresh(), b = fresh();
  Rng rng(5);
  for (int t = 0; t < 200; ++t) {
    const std::vector<double> y{rng.uniform(-20, 20), rng.uniform(-20, 20)};
    const std::vector<std::byte> before = a.state;
    for (int sample = 0; sample < 3; ++sample) a.propose({rng.uniform(-20, 20), rng.uniform(-20, 20)});
    EXPECT_EQ(a.state, before);
    const std::vector<double> x = a.propose(y);
    if (t % 50 == 20) std::copy(a.state.begin(), a.state.end(), b.state.begin());  // restored from a snapshot
    EXPECT_EQ(b.propose(y), x);
    a.accept({x[0], kNaN}, x);
    b.accept({x[0], kNaN}, x);
  }
}

TEST(Guard, IntervalIsExactlyWhatPasses) {
  Stream s(channels({"x", "y"}), {"-5 <= x <= 5", "abs(rate(x)) <= 0.7", "2 * y + 0.1 < 0.9"});
  s.accept({4.9, 0}, {});
  for (std::size_t channel = 0; channel < 2; ++channel) {
    const auto [low, high] = s.interval(channel);
    const auto passes = [&](double x) {
      std::vector<double> value{4.5, 0};
      value[channel] = x;
      s.propose(value);
      return s.status == GuardStatus::kClean;
    };
    if (std::isfinite(low)) {
      EXPECT_TRUE(passes(low));
      EXPECT_FALSE(passes(std::nextafter(low, -kInfinity)));
    }
    EXPECT_TRUE(passes(high));
    EXPECT_FALSE(passes(std::nextafter(high, kInfinity)));
  }
  Stream sum(channels({"a", "b"}), {"a + b == 3", "0 <= a <= 2", "0 <= b"});
  EXPECT_EQ(sum.interval(0), (std::pair<double, double>{0, 2}));
  EXPECT_EQ(sum.interval(1), (std::pair<double, double>{1, 3}));
}

TEST(Guard, ManyChannelsWithSharedAndSeparateSums) {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back(fmt::format("x{}", i));
  Stream s(channels(names), {"sum(*) == 1", "* >= 0"});
  Rng rng(6);
  std::vector<double> y(200);
  for (double& value : y) value = rng.normal();
  const std::vector<double> x = s.propose(y);
  double sum = 0;
  for (const double value : x) {
    EXPECT_GE(value, 0);
    sum += value;
  }
  EXPECT_NEAR(sum, 1, 8 * std::numeric_limits<double>::epsilon() * 2);
  EXPECT_EQ(s.report.broken, (std::vector<std::uint8_t>{0, 0}));
  Stream apart(channels({"a", "b", "c", "d"}), {"a == b", "c + d <= 1", "c + d >= -1"});
  EXPECT_EQ(apart.propose({1, 3, 2, 1}), (std::vector<double>{2, 2, 1, 0}));
}

TEST(Guard, CheckOnlyJudges) {
  Stream s(channels({"x"}), {"0 <= x <= 1", "abs(rate(x)) <= 1"});
  s.accept({0.5}, {});
  const std::vector<double> bad{9}, good{0.25}, missing{kNaN};
  EXPECT_EQ(s.guard().check(s.state, s.time, bad, s.report), GuardStatus::kInfeasible);
  EXPECT_EQ(s.report.broken, (std::vector<std::uint8_t>{1, 1}));
  EXPECT_EQ(s.report.slack, (std::vector<double>{8, 7.5}));
  EXPECT_EQ(s.guard().check(s.state, s.time, good, s.report), GuardStatus::kClean);
  EXPECT_EQ(s.guard().check(s.state, s.time, missing, s.report), GuardStatus::kClean);
  EXPECT_EQ(s.report.unknown, (std::vector<std::uint8_t>{1, 1}));
}

TEST(Guard, ExplainsHowItReadsAndEnforces) {
  Stream s(channels({"a", "b"}), {"0 <= a <= 5 and b >= 0", "abs(rate(a)) <= 2", "a - b == 0"});
  const Json json = s.guard().explain();
  const auto& list = json.find("constraints")->items();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].find("read_as")->string(), "((0 <= a <= 5) and (b >= 0))");
  EXPECT_EQ(list[0].find("class")->string(), "range");
  EXPECT_EQ(list[1].find("class")->string(), "moving range");
  EXPECT_EQ(list[2].find("class")->string(), "affine");
  EXPECT_EQ(list[2].find("cost")->string(), "m log m a frame, m = 2");
  EXPECT_EQ(list[0].find("enforcement")->string(), "project: the nearest value that obeys is emitted");
}

}  // namespace
}  // namespace kizzasi
