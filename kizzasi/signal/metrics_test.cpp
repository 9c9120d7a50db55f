#include "kizzasi/signal/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "kizzasi/base/json.h"
#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<Json> golden(const char* kind) {
  std::ifstream file(KIZZASI_SOURCE_DIR "/tests/golden/forecast/metrics.jsonl");
  std::vector<Json> cases;
  for (std::string line; std::getline(file, line);) {
    Json json = *Json::parse(line, "metrics.jsonl");
    if (json.find("kind")->string() == kind) cases.push_back(std::move(json));
  }
  return cases;
}

const Json& member(const Json& json, const char* key) { return *json.find(key); }

std::vector<double> numbers(const Json& json) {
  std::vector<double> out;
  for (const Json& item : json.items()) out.push_back(item.is_null() ? kNan : item.number());
  return out;
}

// null stands for undefined: NaN.
void expect_value(double ours, const Json& theirs, const std::string& what) {
  if (theirs.is_null()) {
    EXPECT_TRUE(std::isnan(ours)) << what << " is " << ours;
  } else {
    EXPECT_NEAR(ours, theirs.number(), 1e-9 * std::max(1.0, std::abs(theirs.number()))) << what;
  }
}

TEST(PointMetrics, EqualsPublishedCode) {
  const auto cases = golden("point");
  ASSERT_EQ(cases.size(), 25u);
  for (const Json& each : cases) {
    SCOPED_TRACE(member(each, "case").string());
    const Json &input = member(each, "input"), &expected = member(each, "expected");
    const auto y = numbers(member(input, "y")), yhat = numbers(member(input, "yhat"));
    PointMetrics metrics, first, second;
    for (std::size_t i = 0; i < y.size(); ++i) {
      metrics.add(y[i], yhat[i]);
      (i < y.size() / 3 ? first : second).add(y[i], yhat[i]);
    }
    first.merge(second);
    const auto scale = seasonal_scale(numbers(member(input, "insample")), static_cast<std::size_t>(member(input, "season").integer()));
    for (const PointMetrics* m : {&metrics, &first}) {
      expect_value(m->mae(), member(expected, "mae"), "mae");
      expect_value(m->mse(), member(expected, "mse"), "mse");
      expect_value(m->rmse(), member(expected, "rmse"), "rmse");
      expect_value(m->bias(), member(expected, "bias"), "bias");
      expect_value(m->mape_percent(), member(expected, "mape_percent"), "mape");
      expect_value(m->smape_200_percent(), member(expected, "smape_200_percent"), "smape 200");
      expect_value(m->smape_100_fraction(), member(expected, "smape_100_fraction"), "smape 1");
      expect_value(m->wape(), member(expected, "wape_nd"), "wape");
      expect_value(m->mase(scale), member(expected, "mase"), "mase");
      expect_value(m->rmsse(scale), member(expected, "rmsse"), "rmsse");
      expect_value(m->r2(), member(expected, "r2"), "r2");
      expect_value(m->correlation(), member(expected, "corr"), "corr");
      EXPECT_EQ(static_cast<std::int64_t>(m->mape_terms()), member(expected, "mape_terms").integer());
      EXPECT_EQ(static_cast<std::int64_t>(m->smape_terms()), member(expected, "smape_terms_defined").integer());
    }
  }
}

TEST(PointMetrics, CountsWhatItCannotJudge) {
  PointMetrics metrics;
  EXPECT_TRUE(std::isnan(metrics.mae()));
  metrics.add(kNan, 1);
  metrics.add(1, kNan);
  metrics.add(1, std::numeric_limits<double>::infinity());
  metrics.add(1, 3);
  EXPECT_EQ(metrics.missing(), 1u);
  EXPECT_EQ(metrics.unusable(), 2u);
  EXPECT_EQ(metrics.pairs(), 1u);
  EXPECT_EQ(metrics.mae(), 2);
  EXPECT_DOUBLE_EQ(seasonal_scale(std::vector<double>{1, kNan, 4, 6}, 2).absolute, 3);
}

TEST(QuantileMetrics, EqualsPublishedCode) {
  const auto cases = golden("quantile");
  ASSERT_EQ(cases.size(), 13u);
  for (const Json& each : cases) {
    SCOPED_TRACE(member(each, "case").string());
    const Json &input = member(each, "input"), &expected = member(each, "expected");
    const auto y = numbers(member(input, "y")), levels = numbers(member(input, "quantiles"));
    QuantileMetrics metrics(levels), second(levels);
    for (std::size_t i = 0; i < y.size(); ++i) {
      (i < y.size() / 2 ? metrics : second).add(y[i], numbers(member(input, "yhat").items()[i]));
    }
    metrics.merge(second);
    const auto scale = seasonal_scale(numbers(member(input, "insample")), static_cast<std::size_t>(member(input, "season").integer()));
    expect_value(metrics.mean_pinball(), member(expected, "mean_pinball"), "pinball");
    expect_value(metrics.crps(), member(expected, "crps_from_quantiles"), "crps");
    expect_value(metrics.mean_wql(), member(expected, "mean_wql"), "wql");
    EXPECT_EQ(static_cast<std::int64_t>(metrics.crossings()), member(expected, "crossings").integer());
    for (std::size_t i = 0; i < levels.size(); ++i) {
      expect_value(metrics.pinball_at(i), member(expected, "pinball_by_quantile").items()[i], "pinball of a level");
      expect_value(metrics.wql_at(i), member(expected, "wql_by_quantile").items()[i], "wql of a level");
      expect_value(metrics.hit_rate_at(i), member(expected, "hit_rate_by_quantile").items()[i], "hit rate");
    }
    const auto intervals = metrics.intervals();
    const auto& theirs = member(expected, "intervals").members();
    ASSERT_EQ(intervals.size(), theirs.size());
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      SCOPED_TRACE(theirs[i].first);
      EXPECT_NEAR(100 * intervals[i].nominal, std::stod(theirs[i].first), 1e-9);
      expect_value(intervals[i].coverage, member(theirs[i].second, "coverage"), "coverage");
      expect_value(intervals[i].mean_width, member(theirs[i].second, "mean_width"), "width");
      expect_value(intervals[i].winkler, member(theirs[i].second, "winkler"), "winkler");
      expect_value(intervals[i].msis(scale), member(theirs[i].second, "msis"), "msis");
    }
  }
}

TEST(QuantileMetrics, CountsWhatItCannotJudge) {
  QuantileMetrics metrics(std::vector<double>{0.1, 0.9});
  metrics.add(kNan, std::vector<double>{0, 1});
  metrics.add(0.5, std::vector<double>{0, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(metrics.missing(), 1u);
  EXPECT_EQ(metrics.unusable(), 1u);
  EXPECT_EQ(metrics.pairs(), 0u);
  EXPECT_TRUE(std::isnan(metrics.crps()));
  EXPECT_TRUE(std::isnan(metrics.intervals()[0].winkler));
}

TEST(Crps, EqualsPublishedCode) {
  for (const Json& each : golden("crps_sample")) {
    auto samples = numbers(member(member(each, "input"), "samples"));
    expect_value(crps_sample(member(member(each, "input"), "y").number(), samples), member(member(each, "expected"), "crps"), "sample");
  }
  for (const Json& each : golden("crps_normal")) {
    const Json& input = member(each, "input");
    expect_value(crps_normal(member(input, "y").number(), member(input, "mean").number(), member(input, "sd").number()),
                 member(member(each, "expected"), "crps"), "normal");
  }
}

// A large sample of a normal law, and its many quantiles, give its closed form.
TEST(Crps, FormsAgreeOnOneLaw) {
  Rng rng(4);
  std::vector<double> samples(200'000), levels(999);
  for (double& s : samples) s = 2 + 3 * rng.normal();
  const double closed = crps_normal(4.5, 2, 3);
  EXPECT_NEAR(crps_sample(4.5, samples), closed, 0.02);
  std::vector<double> quantiles;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i] = static_cast<double>(i + 1) / 1000;
    quantiles.push_back(samples[static_cast<std::size_t>(levels[i] * 200'000)]);
  }
  QuantileMetrics metrics(levels);
  metrics.add(4.5, quantiles);
  EXPECT_NEAR(metrics.crps(), closed, 0.02);
}

}  // namespace
}  // namespace kizzasi
