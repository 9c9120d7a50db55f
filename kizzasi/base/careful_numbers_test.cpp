#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kizzasi/base/compensated_sum.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/base/running_moments.h"
#include "kizzasi/base/safe_exponentials.h"

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

CompensatedSum sum_of(std::span<const double> terms) {
  CompensatedSum sum;
  for (const double term : terms) sum.add(term);
  return sum;
}

TEST(CompensatedSum, OfTenMillionTenthsIsWithinTwoUlp) {
  CompensatedSum sum;
  double plain = 0;
  for (int i = 0; i < 10'000'000; ++i) {
    sum.add(0.1);
    plain += 0.1;
  }
  const double ulp = std::nextafter(1e6, 2e6) - 1e6;
  EXPECT_NEAR(sum.value(), 1e6, 2 * ulp);
  EXPECT_GT(std::abs(plain - 1e6), 1000 * ulp);  // what it is for
}

TEST(CompensatedSum, KeepsWhatALargerTermHides) {
  EXPECT_EQ(sum_of(std::vector{1.0, 1e100, 1.0, -1e100}).value(), 2.0);
  EXPECT_EQ(sum_of(std::vector<double>{}).value(), 0.0);
}

// The exact sum in whole numbers: terms are multiples of 2^-40 whose sizes differ by 2^50.
TEST(CompensatedSum, EqualsTheSumInWholeNumbersWholeOrMerged) {
  Rng rng(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> terms;
    std::int64_t exact = 0;
    for (int i = 0; i < 2000; ++i) {
      const auto whole = static_cast<std::int64_t>(rng.bits() >> 13 >> rng.below(50)) * (rng.below(2) == 0 ? 1 : -1);
      terms.push_back(std::ldexp(static_cast<double>(whole), -40));
      exact += whole;
    }
    const double truth = std::ldexp(static_cast<double>(exact), -40);
    EXPECT_EQ(sum_of(terms).value(), truth);
    CompensatedSum parts = sum_of(std::span(terms).first(700));
    parts.merge(sum_of(std::span(terms).subspan(700)));
    EXPECT_DOUBLE_EQ(parts.value(), truth);
  }
}

TEST(CompensatedSum, DoesNotHideWhatIsNotFinite) {
  EXPECT_EQ(sum_of(std::vector{1.0, kInfinity, 2.0}).value(), kInfinity);
  EXPECT_TRUE(std::isnan(sum_of(std::vector{1.0, kNan, 2.0}).value()));
  EXPECT_TRUE(std::isnan(sum_of(std::vector{kInfinity, -kInfinity}).value()));
}

RunningMoments moments_of(std::span<const double> values) {
  RunningMoments moments;
  for (const double v : values) moments.add(v);
  return moments;
}

void expect_equal(const RunningMoments& a, double mean, double variance, double scale) {
  EXPECT_NEAR(a.mean(), mean, 1e-15 * std::abs(mean) + 1e-13 * scale);
  EXPECT_NEAR(a.variance(), variance, 1e-12 * scale * scale);
}

TEST(RunningMoments, EqualTwoPassesAndAnyPartsMerged) {
  Rng rng(2);
  for (const double offset : {0.0, -3.0, 1e9}) {
    for (const std::size_t size : {1, 2, 3, 10, 1000}) {
      std::vector<double> values(size);
      for (double& v : values) v = offset + rng.normal();
      double mean = 0, squares = 0;  // of the distances from the offset, which are exact
      for (const double v : values) mean += (v - offset) / static_cast<double>(size);
      for (const double v : values) squares += (v - offset - mean) * (v - offset - mean);
      const auto n = static_cast<double>(size);
      const RunningMoments whole = moments_of(values);
      expect_equal(whole, offset + mean, squares / n, 1);
      if (size > 1) {
        EXPECT_NEAR(whole.sample_variance(), squares / (n - 1), 1e-12);
      }
      for (const std::size_t cut : {std::size_t{0}, size / 3, size}) {
        RunningMoments parts = moments_of(std::span(values).first(cut));
        parts.merge(moments_of(std::span(values).subspan(cut)));
        EXPECT_EQ(parts.count(), size);
        expect_equal(parts, offset + mean, squares / n, 1);
      }
    }
  }
}

TEST(RunningMoments, HaveTheirClosedForms) {
  RunningMoments moments;
  EXPECT_TRUE(std::isnan(moments.mean()) && std::isnan(moments.variance()));
  for (int i = 1; i <= 100'001; ++i) moments.add(i);  // n numbers in a row: variance (n^2 - 1) / 12
  EXPECT_DOUBLE_EQ(moments.mean(), 50'001);
  EXPECT_NEAR(moments.variance(), (100'001.0 * 100'001.0 - 1) / 12, 1e-3);
  const RunningMoments one = moments_of(std::vector{7.0});
  EXPECT_EQ(one.variance(), 0);
  EXPECT_TRUE(std::isnan(one.sample_variance()));
}

TEST(SafeExponentials, AreExpAndLogWhereTheseAreFinite) {
  Rng rng(3);
  for (int i = 0; i < 10'000; ++i) {
    const double x = rng.uniform(-740, 709), y = std::exp(rng.uniform(-700, 700));
    ASSERT_EQ(safe_exp(x), std::exp(x));
    ASSERT_EQ(safe_log(y), std::log(y));
    ASSERT_EQ(safe_exp(static_cast<float>(x / 10)), std::exp(static_cast<float>(x / 10)));
  }
}

TEST(SafeExponentials, StayFiniteAndPassNaN) {
  EXPECT_EQ(safe_exp(1e4), std::numeric_limits<double>::max());
  EXPECT_EQ(safe_exp(kInfinity), std::numeric_limits<double>::max());
  EXPECT_EQ(safe_exp(89.0f), std::numeric_limits<float>::max());
  EXPECT_EQ(safe_exp(-kInfinity), 0);
  EXPECT_EQ(safe_log(0.0), std::log(std::numeric_limits<double>::min()));
  EXPECT_EQ(safe_log(0.0f), std::log(std::numeric_limits<float>::min()));
  EXPECT_EQ(safe_log(1e-9, 1e-6), std::log(1e-6));
  EXPECT_EQ(safe_log(kInfinity), std::log(std::numeric_limits<double>::max()));
  EXPECT_TRUE(std::isnan(safe_exp(kNan)) && std::isnan(safe_log(kNan)) && std::isnan(safe_log(-1.0)));
}

}  // namespace
}  // namespace kizzasi
