#include "kizzasi/signal/normalizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Series one_channel(std::vector<double> values) { return {"", {{{"x", "", Role::kTarget}}, 0, ""}, 0, std::move(values)}; }

std::vector<double> normal_values(std::size_t n, double mean, double deviation, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values(n);
  for (double& v : values) v = mean + deviation * rng.normal();
  return values;
}

TEST(Normalizer, KnowsTheClosedForms) {
  const Series series = one_channel({1, 2, 3, 4, 10, kNan});
  const auto standard = *Normalizer::fit(series, Scaling::kStandard);
  EXPECT_DOUBLE_EQ(standard.offset(0), 4);
  EXPECT_DOUBLE_EQ(standard.scale(0), std::sqrt(10.0));
  const auto robust = *Normalizer::fit(series, Scaling::kRobust);
  EXPECT_DOUBLE_EQ(robust.offset(0), 3);
  EXPECT_DOUBLE_EQ(robust.scale(0), 2 / 1.349);
  const auto range = *Normalizer::fit(series, Scaling::kMinMax);
  EXPECT_DOUBLE_EQ(range.offset(0), 1);
  EXPECT_DOUBLE_EQ(range.scale(0), 9);
  const auto none = *Normalizer::fit(series, Scaling::kNone);
  EXPECT_EQ(none.offset(0), 0);
  EXPECT_EQ(none.scale(0), 1);
}

TEST(Normalizer, StandardisedValuesHaveMeanZeroAndDeviationOne) {
  for (const double mean : {0.0, 1e6, -1e-6}) {
    for (const double deviation : {1e-150, 1e-3, 1.0, 1e150}) {
      const auto values = normal_values(1001, mean * deviation, deviation, 7);
      const auto fit = *Normalizer::fit(one_channel(values), Scaling::kStandard);
      double sum = 0, squares = 0;
      for (const double v : values) sum += fit.normalise(v, 0);
      for (const double v : values) squares += std::pow(fit.normalise(v, 0), 2);
      EXPECT_NEAR(sum / 1001, 0, 1e-6);
      EXPECT_NEAR(squares / 1001, 1, 1e-6);
    }
  }
}

// Changing the unit of a channel (a x + b with a > 0) changes no normalised value.
TEST(Normalizer, IsBlindToUnits) {
  for (const Scaling scaling : {Scaling::kStandard, Scaling::kRobust, Scaling::kMinMax}) {
    const auto values = normal_values(300, 5, 2, 3);
    auto fahrenheit = values;
    for (double& v : fahrenheit) v = 1.8 * v + 32;
    const auto a = *Normalizer::fit(one_channel(values), scaling), b = *Normalizer::fit(one_channel(fahrenheit), scaling);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(a.normalise(values[i], 0), b.normalise(fahrenheit[i], 0), 2e-6);
  }
}

TEST(Normalizer, GoesThereAndBack) {
  const auto values = normal_values(300, 100, 30, 5);
  const auto fit = *Normalizer::fit(one_channel(values), Scaling::kRobust);
  for (const double v : values) ASSERT_NEAR(fit.physical(fit.normalise(v, 0), 0), v, 1e-5);
  EXPECT_TRUE(std::isnan(fit.normalise(kNan, 0)));
}

TEST(Normalizer, AConstantChannelHasScaleOne) {
  for (const Scaling scaling : {Scaling::kStandard, Scaling::kRobust, Scaling::kMinMax}) {
    const auto fit = *Normalizer::fit(one_channel(std::vector<double>(37, 0.1)), scaling);
    EXPECT_EQ(fit.scale(0), 1);
    EXPECT_EQ(fit.normalise(0.1, 0), 0);
  }
}

TEST(Normalizer, RobustFallsBackWhereMostValuesAreEqual) {
  std::vector<double> night(90, 0);
  night.insert(night.end(), 10, 5);
  const auto fit = *Normalizer::fit(one_channel(night), Scaling::kRobust);
  EXPECT_EQ(fit.offset(0), 0);
  EXPECT_DOUBLE_EQ(fit.scale(0), 1.5);  // the standard deviation of 10 % fives
}

TEST(Normalizer, RefusesWhatHasNoScale) {
  EXPECT_EQ(Normalizer::fit(one_channel({kNan, kNan}), Scaling::kStandard).error().text(),
            "channel 'x': no value is present (expected at least one value in the training rows). Leave the channel out.");
  EXPECT_FALSE(Normalizer::fit(one_channel({1, std::numeric_limits<double>::infinity()}), Scaling::kStandard));
  EXPECT_FALSE(Normalizer::fit(one_channel({-1.7e308, 1.7e308}), Scaling::kMinMax));
}

TEST(Normalizer, ReadsBackTheVeryNumbers) {
  const Normalizer wrote({0.1, -1e-300, 3}, {1.0 / 3, 7e250, 1});
  const auto back = Normalizer::from_json(*Json::parse(wrote.to_json().dump(), "m"), "m");
  ASSERT_TRUE(back);
  ASSERT_EQ(back->channels(), 3u);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(back->offset(c), wrote.offset(c));
    EXPECT_EQ(back->scale(c), wrote.scale(c));
  }
  for (const char* text :
       {"{}", R"({"offset": [1], "scale": [1, 2]})", R"({"offset": [1], "scale": [0]})", R"({"offset": ["1"], "scale": [1]})"}) {
    EXPECT_FALSE(Normalizer::from_json(*Json::parse(text, "m"), "m")) << text;
  }
}

TEST(Scaling, NamesReadBack) {
  for (const Scaling scaling : {Scaling::kNone, Scaling::kStandard, Scaling::kRobust, Scaling::kMinMax}) {
    EXPECT_EQ(scaling_from(to_string(scaling), "x"), scaling);
  }
  EXPECT_EQ(scaling_from("standart", "--scaling").error().text(),
            "--scaling: 'standart' is no scaling (expected none, standard, robust, min_max). Did you mean 'standard'?");
}

}  // namespace
}  // namespace kizzasi
