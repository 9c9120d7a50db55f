#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/engine/random_model_test.h"
#include "kizzasi/engine/session.h"

namespace kizzasi {
namespace {

// A channel's limits as its user knows them.
struct Limit {
  std::size_t channel = 0, target = 0;
  double low = 0, high = 0, rate = 0;  // rate 0: none
};

struct Limits {
  std::vector<Limit> all;
  bool has_sum = false;  // the first two targets sum to `sum`
  double sum = 0;
  int decimals = -1;  // of the emitted text; -1: round-trip digits
  std::vector<ConstraintText> text;
};

double period(const ModelFile& m) { return m.schema.step_ns == 0 ? 1.0 : static_cast<double>(m.schema.step_ns) / 1e9; }

Limits random_limits(const ModelFile& m, Rng& rng) {
  Limits limits;
  const bool rounded = rng.below(3) == 0;
  const double dt = period(m);
  double smallest = 1e300;
  const auto targets = m.schema.with_role(Role::kTarget);
  limits.has_sum = targets.size() >= 2 && !rounded && rng.below(2) == 0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::size_t c = targets[t];
    const double a = m.normalizer.physical(rng.normal(), c), b = m.normalizer.physical(rng.normal(), c);
    Limit limit{c, t, std::min(a, b), std::max(a, b),
                rng.below(2) == 0 || limits.has_sum ? 0 : m.normalizer.scale(c) * std::exp(rng.normal())};
    const std::string& name = m.schema.channels[c].name;
    limits.text.push_back({"range", fmt::format("{:.17g} <= {} <= {:.17g}", limit.low, name, limit.high)});
    if (limit.rate > 0) {
      const char* unit = m.schema.step_ns == 0 ? "" : " [1/s]";
      limits.text.push_back({"slew", fmt::format("abs(rate({}, from = commanded)) <= {:.17g}{}", name, limit.rate, unit)});
    }
    smallest = std::min({smallest, limit.high - limit.low, limit.rate > 0 ? limit.rate * dt : smallest});
    limits.all.push_back(limit);
  }
  // As many decimals as leave some numbers inside the limits.
  if (rounded) limits.decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(smallest / 50))), 0, 15);
  if (limits.has_sum) {
    const Limit &a = limits.all[0], &b = limits.all[1];
    limits.sum = std::lerp(a.low + b.low, a.high + b.high, rng.uniform(0.1, 0.9));
    limits.text.push_back(
        {"sum", fmt::format("{} + {} == {:.17g}", m.schema.channels[a.channel].name, m.schema.channels[b.channel].name, limits.sum)});
  }
  return limits;
}

// What the test has seen.
struct Tally {
  std::size_t values = 0;                           // emitted
  std::size_t missing = 0, infinite = 0, huge = 0;  // among the inputs
};

Tally& operator+=(Tally& tally, const Series& series) {
  for (const double value : series.values) {
    tally.missing += std::isnan(value) ? 1 : 0;
    tally.infinite += std::isinf(value) ? 1 : 0;
    tally.huge += std::isfinite(value) && std::abs(value) >= 1e20 ? 1 : 0;
  }
  return tally;
}

// The number that a user reads in the emitted text.
double as_text(double value, int decimals) {
  const std::string text = decimals < 0 ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, decimals);
  return std::strtod(text.c_str(), nullptr);
}

// As the user would test it: in double, with the very expressions; the double itself, or the number read from the text.
// before: (targets) the values of the step before, NaN: none; becomes these.
template <typename Value>
void expect_values_inside(const Limits& limits, const Value& value, std::span<double> before, double dt) {
  for (const Limit& limit : limits.all) {
    const double now = value(limit.target);
    ASSERT_TRUE(std::isfinite(now));
    ASSERT_GE(now, limit.low);
    ASSERT_LE(now, limit.high);
    if (limit.rate > 0 && std::isfinite(before[limit.target])) {
      ASSERT_LE(std::abs((now - before[limit.target]) / dt), limit.rate);
    }
    before[limit.target] = now;
  }
  // a == b as the language states it: to 8 eps of the sum of the absolute values of the terms.
  if (limits.has_sum) {
    ASSERT_LE(std::abs(value(0) + value(1) - limits.sum), 8 * 0x1p-52 * (std::abs(value(0)) + std::abs(value(1)) + std::abs(limits.sum)));
  }
}

struct Before {
  explicit Before(const Limits& limits) : as_double(limits.all.size(), std::nan("")), as_text(as_double) {}
  std::vector<double> as_double, as_text;
};

template <typename Value>
void expect_inside(const Limits& limits, const Value& emitted, Before& before, double dt) {
  ASSERT_NO_FATAL_FAILURE(expect_values_inside(limits, emitted, before.as_double, dt));
  ASSERT_NO_FATAL_FAILURE(
      expect_values_inside(limits, [&](std::size_t t) { return as_text(emitted(t), limits.decimals); }, before.as_text, dt));
}

template <typename Quantile>
void expect_quantiles_inside(const Limits& limits, std::size_t levels, const Quantile& quantile) {
  for (const Limit& limit : limits.all) {
    double last = -std::numeric_limits<double>::infinity();
    for (std::size_t l = 0; l < levels; ++l) {
      const double plain = quantile(l, limit.target), q = as_text(plain, limits.decimals);
      ASSERT_TRUE(q >= last) << "quantiles cross";
      ASSERT_GE(std::min(plain, q), limit.low);
      ASSERT_LE(std::max(plain, q), limit.high);
      last = q;
    }
  }
}

void expect_stream_inside(const Limits& limits, Session& session, const Series& series, double dt, std::size_t& values) {
  const std::size_t targets = limits.all.size();
  Before before(limits);
  for (std::size_t r = 0; r < series.rows(); ++r) {
    const Prediction& p = session.step(series.frame(r));
    ASSERT_NO_FATAL_FAILURE(expect_inside(limits, [&](std::size_t t) { return p.value[t]; }, before, dt));
    ASSERT_NO_FATAL_FAILURE(
        expect_quantiles_inside(limits, p.levels.size(), [&](std::size_t l, std::size_t t) { return p.quantiles[l * targets + t]; }));
    values += targets * (1 + p.levels.size());
  }
}

void expect_forecast_inside(const Limits& limits, const Forecast& f, std::size_t samples, double dt, std::size_t& values) {
  const std::size_t targets = limits.all.size(), horizon = f.block.horizon;
  Before before(limits);
  for (std::size_t h = 0; h < horizon; ++h) {
    ASSERT_NO_FATAL_FAILURE(expect_inside(limits, [&](std::size_t t) { return f.block.point(h, t); }, before, dt));
    ASSERT_NO_FATAL_FAILURE(
        expect_quantiles_inside(limits, f.block.levels.size(), [&](std::size_t l, std::size_t t) { return f.block.quantile(l, h, t); }));
    values += targets * (1 + f.block.levels.size());
  }
  for (std::size_t s = 0; s < samples; ++s) {
    before = Before(limits);
    for (std::size_t h = 0; h < horizon; ++h, values += targets) {
      ASSERT_NO_FATAL_FAILURE(expect_inside(limits, [&](std::size_t t) { return f.samples[(s * horizon + h) * targets + t]; }, before, dt));
    }
  }
}

// Random models with wild weights; random ranges, rates and sums; doubles as they are, or text with some decimals; inputs that are missing,
// infinite and huge: points, quantiles, samples and every step of a rollout.
TEST(Limits, NoEmittedValueIsOutside) {
  const std::size_t wanted = cases(100'000);
  Tally tally;
  std::size_t& values = tally.values;
  for (std::uint64_t seed = 0; values < wanted; ++seed) {
    Rng rng(seed);
    ModelFile model = random_model(rng, std::exp(2 * rng.normal()));
    const Limits limits = random_limits(model, rng);
    const Series series = random_series(model, 20 + rng.below(40), 0.1, rng);
    tally += series;
    const double dt = period(model);
    const bool observed = !model.schema.with_role(Role::kObserved).empty();
    SCOPED_TRACE(fmt::format("seed {} decimals {} {}", seed, limits.decimals, text_of(model)));
    PredictorOptions options;
    options.grid.decimals = limits.decimals;
    const auto predictor = predictor_of(std::move(model), limits.text, options);
    ASSERT_NE(predictor, nullptr);
    Session session = Session::prepare(predictor);
    ASSERT_NO_FATAL_FAILURE(expect_stream_inside(limits, session, series, dt, values));
    EXPECT_EQ(session.report().infeasible, 0u);
    ForecastRequest request;
    request.horizon = 1 + rng.below(12);
    request.samples = predictor->has_spread() ? 3 : 0;
    request.temperature = 2 * rng.uniform();
    request.seed = seed;
    request.whole = rng.below(2) == 0;
    request.observed_plan = observed ? ObservedPlan::kHold : ObservedPlan::kRefuse;
    Forecast f;
    const auto done = session.forecast(request, f);
    ASSERT_TRUE(done) << done.error().text();
    ASSERT_NO_FATAL_FAILURE(expect_forecast_inside(limits, f, request.samples, dt, values));
  }
  std::printf("%zu values emitted by sessions and forecasts: 0 outside as double or as text; inputs %zu missing, %zu infinite, %zu huge\n",
              values, tally.missing, tally.infinite, tally.huge);
}

// The least distance in all is never more than the least at each step; under rates it is often less.
TEST(Limits, AWholeForecastMovesNoFurtherThanOneStepByStep) {
  std::size_t compared = 0, nearer = 0;
  for (std::uint64_t seed = 1; compared < 200; ++seed) {
    Rng rng(seed);
    ModelFile model = random_model(rng, std::exp(rng.normal()));
    const Limits limits = random_limits(model, rng);
    const Series series = random_series(model, 30, 0, rng);
    const bool observed = !model.schema.with_role(Role::kObserved).empty();
    const auto predictor = predictor_of(std::move(model), limits.text, {});
    ASSERT_NE(predictor, nullptr);
    if (predictor->horizon() < 2) continue;
    Session session = Session::prepare(predictor);
    for (std::size_t r = 0; r < series.rows(); ++r) session.step(series.frame(r));
    ForecastRequest request;
    request.horizon = predictor->horizon();
    request.observed_plan = observed ? ObservedPlan::kHold : ObservedPlan::kRefuse;
    const auto moved = [&](bool whole) {
      request.whole = whole;
      Forecast f;
      EXPECT_TRUE(session.forecast(request, f));
      double sum = 0;
      for (std::size_t i = 0; i < f.raw.size(); ++i) {
        const std::size_t channel = predictor->order()[i % predictor->targets()];
        const double by = (f.block.points[i] - f.raw[i]) / predictor->file().normalizer.scale(channel);
        sum += by * by;
      }
      return sum;
    };
    const double together = moved(true), stepwise = moved(false);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    EXPECT_LE(together, stepwise * (1 + 1e-6) + 1e-12);
    nearer += together < 0.999 * stepwise ? 1 : 0;
    ++compared;
  }
  EXPECT_GT(nearer, 3u);
}

}  // namespace
}  // namespace kizzasi
