#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
  std::vector<ConstraintText> text;
};

Limits random_limits(const ModelFile& m, Rng& rng) {
  Limits limits;
  const auto targets = m.schema.with_role(Role::kTarget);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::size_t c = targets[t];
    const double a = m.normalizer.physical(rng.normal(), c), b = m.normalizer.physical(rng.normal(), c);
    Limit limit{c, t, std::min(a, b), std::max(a, b), rng.below(2) == 0 ? 0 : m.normalizer.scale(c) * std::exp(rng.normal())};
    const std::string& name = m.schema.channels[c].name;
    limits.text.push_back({"range", fmt::format("{:.17g} <= {} <= {:.17g}", limit.low, name, limit.high)});
    if (limit.rate > 0) {
      const char* unit = m.schema.step_ns == 0 ? "" : " [1/s]";
      limits.text.push_back({"slew", fmt::format("abs(rate({}, from = commanded)) <= {:.17g}{}", name, limit.rate, unit)});
    }
    limits.all.push_back(limit);
  }
  return limits;
}

// As the user would test it: in double, with the very expression.
void expect_inside(const Limit& limit, double value, double before, double dt) {
  ASSERT_TRUE(std::isfinite(value));
  ASSERT_GE(value, limit.low);
  ASSERT_LE(value, limit.high);
  if (limit.rate > 0 && std::isfinite(before)) {
    ASSERT_LE(std::abs((value - before) / dt), limit.rate);
  }
}

// Random models with wild weights, random limits, and inputs that are missing, infinite and huge: points, quantiles, samples and every step
// of a rollout.
TEST(Limits, NoEmittedValueIsOutside) {
  const std::size_t wanted = cases(100'000);
  std::size_t values = 0;
  for (std::uint64_t seed = 0; values < wanted; ++seed) {
    Rng rng(seed);
    ModelFile model = random_model(rng, std::exp(2 * rng.normal()));
    const Limits limits = random_limits(model, rng);
    const Series series = random_series(model, 20 + rng.below(40), 0.1, rng);
    const double dt = model.schema.step_ns == 0 ? 1.0 : static_cast<double>(model.schema.step_ns) / 1e9;
    const bool observed = !model.schema.with_role(Role::kObserved).empty();
    SCOPED_TRACE(fmt::format("seed {} {}", seed, text_of(model)));
    const auto predictor = predictor_of(std::move(model), limits.text);
    ASSERT_NE(predictor, nullptr);
    Session session = Session::prepare(predictor);
    std::vector<double> before(limits.all.size(), std::nan(""));
    for (std::size_t r = 0; r < series.rows(); ++r) {
      const Prediction& p = session.step(series.frame(r));
      for (const Limit& limit : limits.all) {
        expect_inside(limit, p.value[limit.target], before[limit.target], dt);
        before[limit.target] = p.value[limit.target];
        double last = -INFINITY;
        for (std::size_t l = 0; l < p.levels.size(); ++l) {
          const double q = p.quantiles[l * limits.all.size() + limit.target];
          ASSERT_GE(q, last) << "quantiles cross";
          expect_inside(limit, last = q, std::nan(""), dt);
        }
        values += 1 + p.levels.size();
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    ForecastRequest request;
    request.horizon = 1 + rng.below(12);
    request.samples = predictor->has_spread() ? 3 : 0;
    request.temperature = 2 * rng.uniform();
    request.seed = seed;
    request.observed_plan = observed ? ObservedPlan::kHold : ObservedPlan::kRefuse;
    Forecast f;
    const auto done = session.forecast(request, f);
    ASSERT_TRUE(done) << done.error().text();
    for (const Limit& limit : limits.all) {
      double last = before[limit.target];
      for (std::size_t h = 0; h < request.horizon; ++h) {
        expect_inside(limit, f.block.point(h, limit.target), h == 0 ? std::nan("") : last, dt);
        last = f.block.point(h, limit.target);
        double below = -INFINITY;
        for (std::size_t l = 0; l < f.block.levels.size(); ++l) {
          const double q = f.block.quantile(l, h, limit.target);
          ASSERT_GE(q, below);
          expect_inside(limit, below = q, std::nan(""), dt);
        }
        values += 1 + f.block.levels.size();
        if (testing::Test::HasFatalFailure()) return;
      }
      for (std::size_t s = 0; s < request.samples; ++s) {
        double sampled = std::nan("");
        for (std::size_t h = 0; h < request.horizon; ++h, ++values) {
          const double now = f.samples[(s * request.horizon + h) * limits.all.size() + limit.target];
          expect_inside(limit, now, sampled, dt);
          sampled = now;
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
