// Units: what measures the same is converted before anything is compared, by the factors that the standards define.
#include "kizzasi/logic/units.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/consistency.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/monitor/nodes.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi {
namespace {

using logic::converted;

TEST(Units, FactorsAreThoseOfTheStandards) {
  struct Case {
    double value;
    const char *from, *to;
    double expected;
  };
  const Case cases[] = {
      {36, "km/h", "m/s", 10},
      {1, "bar", "kPa", 100},
      {2, "min", "s", 120},
      {25, "degC", "K", 298.15},
      {212, "degF", "degC", 100},
      {1,
       "\xC2\xB0"
       "C",
       "K", 274.15},
      {60, "l/min", "m3/h", 3.6},
      {1, "kWh", "MJ", 3.6},
      {3000, "rpm", "Hz rad", 100 * 3.141592653589793},
      {180, "deg", "rad", 3.141592653589793},
      {1, "psi", "Pa", 6894.757293168361},
      {1, "mph", "km/h", 1.609344},
      {5, "%", "1", 0.05},
      {1, "N m", "J", 1},
      {1, "V*A", "W", 1},
      {1, "kg*m^2/s^2", "J", 1},
      {9.81, "m/s2", "cm/s^2", 981},
      {120, "vehicles/h", "vehicles/min", 2},
      {1, "\xC2\xB5m", "nm", 1000},
      {1, "m s^-1", "m/s", 1},
      {1, "t", "kg", 1000},
      {1, "mAh", "A s", 3.6},
      {4, "K/min", "degC/h", 240},  // degrees of change have no zero
      {1, "mbar", "hPa", 1},
      {1, "h", "ms", 3.6e6},
  };
  for (const Case& c : cases) {
    const auto got = converted(c.value, c.from, c.to, false);
    ASSERT_TRUE(got) << c.from << " to " << c.to;
    EXPECT_NEAR(*got, c.expected, 4e-16 * std::abs(c.expected)) << c.from << " to " << c.to;
    const auto back = converted(*got, c.to, c.from, false);
    ASSERT_TRUE(back);
    EXPECT_NEAR(*back, c.value, 1e-13 * std::max(1.0, std::abs(c.value))) << c.to << " to " << c.from;
  }
  EXPECT_EQ(*converted(9, "degF", "degC", true), 5);  // a difference
}

TEST(Units, WhatMeasuresSomethingElseIsNotConverted) {
  const char* const pairs[][2] = {{"m", "s"},       {"m/s", "m/s2"}, {"K", "K/s"},    {"vehicles/h", "people/h"},
                                  {"Hz", "rpm"},    {"kWh", "kW"},   {"T", "t"},      {"%%", "m"},
                                  {"*/s", "1/min"}, {"", "m"},       {"C", "degC"},   {"m//s", "m"},
                                  {"m^", "m"},      {"m-", "m"},     {"10/s", "1/s"}, {"bar", "m"},
                                  {"dB", "1"},      {"Min", "min"}};
  for (const auto& pair : pairs) {
    EXPECT_FALSE(converted(1, pair[0], pair[1], false)) << pair[0] << " to " << pair[1];
    EXPECT_FALSE(converted(1, pair[1], pair[0], false)) << pair[1] << " to " << pair[0];
  }
}

Schema plant() {
  Schema schema;
  schema.channels = {{"v", "m/s", Role::kTarget},     {"w", "km/h", Role::kTarget},  {"p", "kPa", Role::kTarget},
                     {"temp", "degC", Role::kTarget}, {"other", "K", Role::kTarget}, {"bare", "", Role::kTarget}};
  schema.step_ns = 1'000'000'000;
  return schema;
}

std::string in_common(const char* text) {
  const auto formula = logic::parse_formula({text, "test"});
  return formula ? print(logic::in_common_units(*formula, plant())) : formula.error().text();
}

TEST(Units, NumbersTakeTheUnitOfTheChannelBesideThem) {
  const char* const cases[][2] = {
      {"v <= 36 [km/h]", "v <= 10 [m/s]"},
      {"18 [km/h] <= v <= 36 [km/h]", "5 [m/s] <= v <= 10 [m/s]"},
      {"p in [1 [bar], 200]", "p in [100 [kPa], 200]"},
      {"temp <= 300.15 [K]", "temp <= 27 [degC]"},
      {"temp == 20 +- 5 [K]", "temp == 20 +- 5 [degC]"},
      {"abs(rate(temp)) <= 60 [K/min]", "abs(rate(temp)) <= 1 [degC/s]"},
      {"temp - prev(temp, 1) <= 9 [degF]", "temp - prev(temp, 1) <= 5 [degC]"},
      {"rate(v) <= 7.2 [km/h/s]", "rate(v) <= 2 [m/s/s]"},
      {"accel(v) <= 1 [km/s3]", "accel(v) <= 1000 [m/s/s2]"},
      {"mean(v, 10s) <= 36 [km/h]", "mean(v, 10 [s]) <= 10 [m/s]"},
      {"hysteresis(temp, 353.15 [K], 60)", "hysteresis(temp, 80 [degC], 60)"},
      {"v - w >= 0", "v - w * 0.2777777777777778 [m/s per km/h] >= 0"},
      {"max(v, w) <= 90 [km/h]", "max(v, w * 0.2777777777777778 [m/s per km/h]) <= 25 [m/s]"},
      {"temp <= other", "temp <= other * 1 [degC per K] + -273.15 [degC]"},
      {"always[0, 1min] v <= 3.6 [km/h] -> p >= 1 [bar]", "always[0,1min] v <= 1 [m/s] -> p >= 100 [kPa]"},
      // Not converted: as they were.
      {"v <= 3 [m/s]", "v <= 3 [m/s]"},
      {"v <= 3", "v <= 3"},
      {"bare <= 3 [V]", "bare <= 3 [V]"},
      {"v <= 3 [kg]", "v <= 3 [kg]"},
      {"2 * temp <= 300 [K]", "2 * temp <= 300 [K]"},
      {"temp - 5 [K] <= 20", "temp - 5 [K] <= 20"},
      {"temp + other <= 5", "temp + other <= 5"},
  };
  for (const auto& one : cases) {
    const std::string text = in_common(one[0]);
    EXPECT_EQ(text, one[1]) << one[0];
    const auto once = logic::parse_formula({text, "again"});
    ASSERT_TRUE(once) << text;
    EXPECT_EQ(print(logic::in_common_units(*once, plant())), text) << "converted twice";
  }
}

class Guarded {
 public:
  explicit Guarded(const std::vector<std::string>& texts) {
    std::vector<ConstraintText> list;
    for (const std::string& text : texts) list.push_back({.name = text, .that = text, .where = "test"});
    auto compiled = compile_guard(plant(), list, {});
    if (!compiled) throw std::runtime_error(compiled.error().text());
    guard_ = std::move(*compiled);
    state_.resize(guard_->state_bytes());
    scratch_.resize(guard_->scratch_doubles());
    guard_->prepare(report_);
    guard_->reset(state_);
  }
  std::vector<double> step(std::vector<double> value) {
    guard_->propose(state_, time_, value, report_, scratch_);
    guard_->accept(state_, time_, {}, value);
    time_ += 1'000'000'000;
    return value;
  }

 private:
  std::unique_ptr<Guard> guard_;
  std::vector<std::byte> state_;
  std::vector<double> scratch_;
  GuardReport report_;
  std::int64_t time_ = 0;
};

// The same limits in two systems of units move the same frames to the same bits; the channels of two units to the same values.
TEST(Units, AGuardIsTheSameInEveryUnit) {
  Guarded one({"abs(v) <= 36 [km/h]", "1 [bar] <= p <= 5 [bar]", "abs(rate(temp)) <= 120 [K/min]", "norm(v, bare) <= 43.2 [km/h]",
               "temp > 353.15 [K] -> p <= 2 [bar]"});
  Guarded two({"abs(v) <= 10 [m/s]", "100 [kPa] <= p <= 500 [kPa]", "abs(rate(temp)) <= 2 [degC/s]", "norm(v, bare) <= 12 [m/s]",
               "temp > 80 -> p <= 200 [kPa]"});
  Guarded mixed({"v - w == 0 +- 0.001 [km/h]"});
  Rng rng(7);
  for (int frame = 0; frame < 400; ++frame) {
    std::vector<double> value(6);
    for (double& x : value) x = rng.normal() * 20 + 10;
    value[2] *= 30;
    value[3] *= 4;
    EXPECT_EQ(one.step(value), two.step(value));
    const std::vector<double> moved = mixed.step(value);
    EXPECT_LE(std::abs(moved[0] * 3600 / 1000 - moved[1]), 0.001 * (1 + 1e-9));
  }
}

// A repair counts in the unit of the channel, and says so.
TEST(Units, AConflictOfTwoUnitsIsMendedInOne) {
  const std::vector<ConstraintText> texts{{.name = "fast", .that = "v >= 72 [km/h]", .where = "test"},
                                          {.name = "slow", .that = "v <= 10", .where = "test"}};
  const auto found = check_consistency(plant(), texts);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->conflict, (std::vector<std::size_t>{0, 1}));
  ASSERT_EQ(found->repairs.size(), 2U);  // half of the way each
  EXPECT_EQ(found->repairs[0].that, "v >= 15 [m/s]");
  EXPECT_EQ(found->repairs[1].that, "v <= 15");
}

TEST(Units, AMonitorIsTheSameInEveryUnit) {
  Schema schema = plant();
  const auto judged = [&](const char* text) {
    const logic::Source source{text, "test"};
    const auto graph = logic::build_graph(*logic::parse_formula(source), schema, source);
    if (!graph) throw std::runtime_error(graph.error().text());
    return graph->nodes;
  };
  const auto same = [](const std::vector<logic::Node>& a, const std::vector<logic::Node>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) { return x.same(y); });
  };
  EXPECT_TRUE(same(judged("always[0, 1min] v <= 36 [km/h]"), judged("always[0, 60s] v <= 10")));
  EXPECT_TRUE(
      same(judged("temp > 353.15 [K] -> eventually[0, 1h] temp < 333.15 [K]"), judged("temp > 80 -> eventually[0, 3600s] temp < 60")));
}

}  // namespace
}  // namespace kizzasi
