#include "kizzasi/decode/conformal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "kizzasi/base/json.h"
#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

std::vector<Json> golden(const char* kind) {
  std::ifstream file(KIZZASI_SOURCE_DIR "/tests/golden/forecast/conformal.jsonl");
  std::vector<Json> cases;
  for (std::string line; std::getline(file, line);) {
    Json json = *Json::parse(line, "conformal.jsonl");
    if (json.find("kind")->string() == kind) cases.push_back(std::move(json));
  }
  return cases;
}

double number(const Json& json) {
  if (!json.is_string()) return json.number();
  return json.string() == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

std::vector<double> numbers(const Json& json) {
  std::vector<double> out;
  for (const Json& item : json.items()) out.push_back(number(item));
  return out;
}

TEST(Conformal, RanksEqualTheOracle) {
  const auto cases = golden("split_conformal");
  ASSERT_EQ(cases.size(), 7u);
  for (const Json& each : cases) {
    auto scores = numbers(*each.find("input")->find("scores"));
    std::sort(scores.begin(), scores.end());
    for (const auto& [alpha, radius] : each.find("expected")->find("radius_by_alpha")->members()) {
      EXPECT_EQ(conformal_radius(scores, std::stod(alpha)), number(radius)) << "n " << scores.size() << " alpha " << alpha;
    }
  }
}

TEST(Conformal, CorrectionOfQuantilesEqualsTheOracle) {
  const auto cases = golden("cqr");
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& each : cases) {
    auto scores = numbers(*each.find("expected")->find("scores"));
    std::sort(scores.begin(), scores.end());
    EXPECT_EQ(conformal_radius(scores, each.find("input")->find("alpha")->number()), number(*each.find("expected")->find("correction")));
  }
}

TEST(Conformal, WeightedRanksEqualTheOracle) {
  const auto cases = golden("weighted_conformal");
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& each : cases) {
    const auto scores = numbers(*each.find("input")->find("scores"));
    std::vector<double> weights;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      weights.push_back(std::pow(each.find("input")->find("decay")->number(), static_cast<double>(scores.size() - i)));
    }
    EXPECT_EQ(weighted_conformal_radius(scores, weights, each.find("input")->find("alpha")->number()),
              number(*each.find("expected")->find("radius")));
  }
}

TEST(AdaptiveConformal, EveryStepEqualsTheOracle) {
  const auto cases = golden("aci");
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& each : cases) {
    const Json &input = *each.find("input"), &expected = *each.find("expected");
    AdaptiveConformal adaptive(input.find("alpha")->number(), input.find("gamma")->number(),
                               static_cast<std::size_t>(input.find("window")->integer()));
    const auto scores = numbers(*input.find("scores")), radius = numbers(*expected.find("radius_t")),
               alpha = numbers(*expected.find("alpha_t")), miss = numbers(*expected.find("miss_t"));
    for (std::size_t t = 0; t < scores.size(); ++t) {
      ASSERT_NEAR(adaptive.alpha(), alpha[t], 1e-9);
      ASSERT_EQ(adaptive.radius(), radius[t]) << t;
      ASSERT_EQ(adaptive.observe(scores[t]), miss[t] == 1) << t;
      ASSERT_FALSE(adaptive.observe(std::numeric_limits<double>::quiet_NaN()));
    }
  }
}

// The guarantee itself: with exchangeable errors, a value lies below its corrected quantile with probability level (n + 1 ranks).
TEST(Conformal, ShiftsCoverTheirLevel) {
  Rng rng(11);
  for (const std::size_t n : {19u, 20u, 50u, 199u}) {
    for (const double level : {0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95}) {
      int below = 0;
      const int trials = 4000;
      for (int trial = 0; trial < trials; ++trial) {
        std::vector<double> errors(n);
        for (double& e : errors) e = std::pow(rng.normal(), 3) + 1;
        std::sort(errors.begin(), errors.end());
        below += std::pow(rng.normal(), 3) + 1 <= conformal_shift(errors, level) ? 1 : 0;
      }
      const double share = below / static_cast<double>(trials), noise = 4 * std::sqrt(level * (1 - level) / trials);
      const double rank = 1 / static_cast<double>(n + 1);
      if (level > 0.5) {
        EXPECT_GT(share, level - noise);
        EXPECT_LT(share, level + rank + noise);
      } else {
        EXPECT_LT(share, level + noise + (level == 0.5 ? rank : 0));
        EXPECT_GT(share, level - rank - noise);
      }
    }
  }
}

TEST(Conformal, TooFewErrorsMeanNoBound) {
  const std::vector<double> errors{-1, 0, 2};
  EXPECT_EQ(conformal_shift(errors, 0.9), std::numeric_limits<double>::infinity());
  EXPECT_EQ(conformal_shift(errors, 0.1), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(conformal_shift(errors, 0.5), 0);
  EXPECT_EQ(conformal_shift(errors, 0.75), 2);
  EXPECT_EQ(conformal_shift(errors, 0.25), -1);
}

}  // namespace
}  // namespace kizzasi
