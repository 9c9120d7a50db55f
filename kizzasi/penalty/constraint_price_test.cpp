#include "kizzasi/penalty/constraint_price.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

Schema three() {
  Schema schema;
  for (const char* name : {"a", "b", "c"}) schema.channels.push_back({name, "", Role::kTarget});
  schema.channels.push_back({"known", "", Role::kKnownFuture});
  schema.step_ns = 100'000'000;
  return schema;
}
const std::vector<double> kScale{1, 2, 0.5, 1};

struct Trace {
  std::vector<double> frames;
  std::vector<std::int64_t> times;
  std::size_t past = 0;
  Trace(Rng& rng, std::size_t rows, std::size_t known) : past(known) {
    for (std::size_t r = 0; r < rows; ++r) {
      times.push_back(static_cast<std::int64_t>(r) * 100'000'000);
      for (std::size_t c = 0; c < 4; ++c) frames.push_back(2 * rng.normal());
    }
  }
  PricedBlock block() const { return {frames, times, past}; }
  double at(std::size_t row, std::size_t channel) const { return frames[row * 4 + channel]; }
};

ConstraintPrice price_of_texts(const std::vector<ConstraintText>& texts, double sharpness = 200) {
  auto price = ConstraintPrice::compile(three(), texts, kScale, 10, sharpness);
  EXPECT_TRUE(price) << price.error().text();
  return std::move(*price);
}

PenaltyConfig of(const std::string& kind) {
  PenaltyConfig config;
  config.penalty = kind;
  config.penalty_width = 0.3;
  return config;
}

TEST(ConstraintPrice, IsTheSumOfWhatIsBrokenInStandardDeviations) {
  Rng rng(1);
  const std::vector<ConstraintText> texts{{"range", "-1 <= a <= 1"},
                                          {"sum", "a + b - 2 * c == 0.5", "project", 0, false, 3},
                                          {"rate", "always abs(rate(b)) <= 2"},
                                          {"two", "b + c <= 1 and prev(c, 1) <= a"},
                                          {"said", "a <= -9", "warn"},
                                          {"given", "known <= -9"}};
  ConstraintPrice price = price_of_texts(texts);
  Trace trace(rng, 9, 3);
  const std::vector<PricedBlock> samples{trace.block()};
  price.measure(samples);
  ASSERT_EQ(price.conditions(), 6u);
  EXPECT_EQ(price.label(1), "range [2]");
  EXPECT_EQ(price.label(2), "sum");
  // The unit of a linear condition is the length of its gradient in normalised values.
  const double units[] = {1, 1, std::sqrt(1 + 4 + 1), 2 / 0.1 * std::sqrt(2), std::sqrt(4 + 0.25), std::sqrt(1 + 0.25)};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(price.unit(i), units[i], 1e-9) << price.label(i);
  double expected = 0;
  std::vector<ConditionSum> truth(6), seen(6), judged(6);
  for (std::size_t r = 3; r < 9; ++r) {
    const double a = trace.at(r, 0), b = trace.at(r, 1), c = trace.at(r, 2);
    const double over[] = {
        -1 - a, a - 1, std::abs(a + b - 2 * c - 0.5), std::abs(b - trace.at(r - 1, 1)) / 0.1 - 2, b + c - 1, trace.at(r - 1, 2) - a};
    for (std::size_t i = 0; i < 6; ++i) {
      const double g = std::max(0.0, over[i] / units[i]);
      expected += (i == 2 ? 3 : 1) * g;
      truth[i].violation += g;
      truth[i].broken += g > 0;
    }
  }
  const std::vector<double> weights(6, 1.0), multipliers(6, 0.0);
  EXPECT_NEAR(price.price(of("hinge"), trace.block(), weights, multipliers, {}, {}, seen), expected, 1e-9);
  price.judge(trace.block(), judged);
  for (std::size_t i = 0; i < 6; ++i) {
    for (const ConditionSum& sum : {seen[i], judged[i]}) {
      EXPECT_EQ(sum.checks, 6u);
      EXPECT_EQ(sum.broken, truth[i].broken) << i;
      EXPECT_NEAR(sum.violation, truth[i].violation, 1e-9) << i;
    }
  }
  // Only what reads the second channel.
  const std::vector<std::uint8_t> about{0, 1, 0, 0};
  const double part = price.price(of("hinge"), trace.block(), weights, multipliers, about, {}, {});
  EXPECT_NEAR(part, 3 * truth[2].violation + truth[3].violation + truth[4].violation, 1e-9);
}

TEST(ConstraintPrice, GradientsEqualDifferences) {
  Rng rng(8);
  const std::vector<ConstraintText> texts{{"", "-1 <= a <= 1"},
                                          {"", "abs(rate(b)) <= 2 and a + b - 2 * c == 0.5"},
                                          {"", "known > 0 -> mean(a, 0.3s) <= b"},
                                          {"", "always[0,0.2s] (a > 1 -> eventually[0,0.2s] c < 0)"},
                                          {"", "norm(a, b, c) <= 2 or accel(a) >= 0"},
                                          {"", "(a < 1) until[0,0.3s] (b > 0)"},
                                          {"", "always (b > 2 -> once[0,0.3s] c > 1)"}};
  ConstraintPrice price = price_of_texts(texts, 3);
  std::vector<Trace> traces;
  for (int i = 0; i < 20; ++i) traces.emplace_back(rng, 14, 6);
  std::vector<PricedBlock> samples;
  for (const Trace& trace : traces) samples.push_back(trace.block());
  price.measure(samples);
  const std::size_t n = price.conditions();
  std::vector<double> weights(n), multipliers(n);
  for (double& w : weights) w = rng.uniform(0.5, 2);
  for (double& m : multipliers) m = rng.uniform(0.5, 2);
  for (const std::string kind : {"hinge", "squared", "huber", "barrier", "exponential", "exact", "lagrangian", "augmented"}) {
    SCOPED_TRACE(kind);
    std::size_t slopes = 0;
    for (Trace& trace : traces) {
      std::vector<double> gradient(trace.frames.size(), 0.0);
      const auto value = [&] { return price.price(of(kind), trace.block(), weights, multipliers, {}, {}, {}); };
      price.price(of(kind), trace.block(), weights, multipliers, {}, gradient, {});
      double largest = 1;
      for (const double g : gradient) largest = std::max(largest, std::abs(g));
      for (std::size_t i = 0; i < gradient.size(); i += 3) {
        const double kept = trace.frames[i], step = 1e-6;
        trace.frames[i] = kept + step;
        const double up = value();
        trace.frames[i] = kept - step;
        const double down = value();
        trace.frames[i] = kept;
        EXPECT_NEAR(gradient[i], (up - down) / (2 * step), 2e-6 * largest) << i;
        slopes += gradient[i] != 0;
      }
    }
    EXPECT_GT(slopes, 100u);
  }
}

TEST(ConstraintPrice, JudgesWhatThePredictedRowsDecide) {
  Rng rng(2);
  // A rise above 1 must end within two rows: the rise may lie in the known rows, the end must lie in the predicted ones.
  ConstraintPrice price = price_of_texts({{"ends", "a > 1 -> eventually[0,2] a < 0"}});
  price.measure({});
  EXPECT_GE(price.past(), 3u);
  for (int turn = 0; turn < 200; ++turn) {
    Trace trace(rng, 11, 4);
    ConditionSum expected;
    for (std::size_t t = 2; t <= 8; ++t) {
      const double least = std::min({trace.at(t, 0), trace.at(t + 1, 0), trace.at(t + 2, 0)});
      const double robust = std::max(1 - trace.at(t, 0), -least);
      ++expected.checks;
      expected.broken += robust < 0;
      expected.violation += std::max(0.0, -robust);
    }
    std::vector<ConditionSum> judged(1);
    price.judge(trace.block(), judged);
    ASSERT_EQ(judged[0].checks, expected.checks);
    ASSERT_EQ(judged[0].broken, expected.broken);
    ASSERT_NEAR(judged[0].violation, expected.violation, 1e-12);
  }
}

TEST(ConstraintPrice, HoursAreNotWeighedAgainstValues) {
  // At 23:00 and a of 5: broken by 4, though it is only an hour past 22.
  Schema schema = three();
  schema.step_ns = 3'600'000'000'000;
  auto made =
      ConstraintPrice::compile(schema, std::vector<ConstraintText>{{"night", "hour() >= 22 or hour() < 4 -> a <= 1"}}, kScale, 10, 200);
  ASSERT_TRUE(made);
  Rng rng(3);
  Trace trace(rng, 24, 1);
  for (std::size_t r = 0; r < 24; ++r) {
    trace.times[r] = static_cast<std::int64_t>(r) * schema.step_ns;
    trace.frames[r * 4] = 5;
  }
  made->measure(std::vector<PricedBlock>{trace.block()});
  std::vector<ConditionSum> seen(1), judged(1);
  const std::vector<double> one{1}, none{0};
  EXPECT_NEAR(made->price(of("hinge"), trace.block(), one, none, {}, {}, seen), 5 * 4, 1e-9);  // 1, 2, 3, 22 and 23 hours
  made->judge(trace.block(), judged);
  EXPECT_EQ(judged[0].broken, 5u);
  EXPECT_EQ(judged[0].checks, 23u);
  EXPECT_NEAR(judged[0].violation, 20, 1e-9);
}

TEST(ConstraintPrice, WhatIsMissingCostsNothing) {
  Rng rng(4);
  ConstraintPrice price = price_of_texts({{"", "a <= 0"}, {"", "abs(rate(b)) <= 0"}});
  Trace trace(rng, 6, 2);
  for (std::size_t r = 2; r < 6; ++r) trace.frames[r * 4] = kMissing;
  trace.frames[3 * 4 + 1] = kMissing;
  std::vector<double> gradient(trace.frames.size(), 0.0);
  std::vector<ConditionSum> seen(2), judged(2);
  const std::vector<double> ones{1, 1}, zeros{0, 0};
  EXPECT_TRUE(std::isfinite(price.price(of("squared"), trace.block(), ones, zeros, {}, gradient, seen)));
  price.judge(trace.block(), judged);
  EXPECT_EQ(seen[0].checks, 0u);
  EXPECT_EQ(seen[1].checks, 2u);  // rows 2 and 5
  EXPECT_EQ(judged[0].checks, 0u);
  EXPECT_EQ(judged[1].checks, 2u);
  for (const double g : gradient) EXPECT_TRUE(std::isfinite(g));
}

TEST(ConstraintPrice, MistakesHaveTheirPlace) {
  const auto unknown = ConstraintPrice::compile(
      three(), std::vector<ConstraintText>{{"", "aa <= 1", "project", 0, false, 1, "limits.toml:3"}}, kScale, 10, 200);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("limits.toml:3"), std::string::npos);
}

}  // namespace
}  // namespace kizzasi
