#include "kizzasi/decode/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace kizzasi {
namespace {

struct Case {
  HeadConfig head;
  std::vector<float> raw;
};

std::string name(const Case& one) {
  std::string text = one.head.kind;
  for (const float r : one.raw) text.append(" ").append(std::to_string(r));
  return text;
}

// Random members of every family that has a spread, wide and narrow, lopsided and with components far apart.
std::vector<Case> random_cases(std::size_t each, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Case> cases;
  const auto draw = [&](std::size_t n, double width) {
    std::vector<float> raw(n);
    for (float& r : raw) r = static_cast<float>(width * rng.normal());
    return raw;
  };
  for (std::size_t i = 0; i < each; ++i) {
    HeadConfig head;
    for (const char* kind : {"gaussian", "student_t", "mixture", "quantiles"}) {
      head.kind = kind;
      head.components = 1 + static_cast<std::int64_t>(rng.below(4));
      if (i % 2 == 1) head.levels = {0.1, 0.5, 0.75, 0.9};
      cases.push_back({head, draw(head.parameters(), i % 3 == 0 ? 3.0 : 1.0)});
    }
  }
  return cases;
}

struct Member {
  DistributionFamily family;
  std::vector<double> values;
  Member(const Case& one, double scale = 1, double offset = 0)
      : family(DistributionFamily::of(one.head).value()), values(family.parameters()) {
    family.decode(one.raw, scale, offset, values);
  }
};

TEST(Distribution, QuantileAndCdfUndoEachOther) {
  for (const Case& one : random_cases(60, 1)) {
    const Member m(one);
    for (double p = 0.001; p < 1; p += 0.0131) {
      EXPECT_NEAR(m.family.cdf(m.values, m.family.quantile(m.values, p)), p, 1e-9) << name(one) << " p " << p;
    }
  }
}

// The area under the density from far left to x, by Simpson's rule in u with x = median + width sinh(u), against the cdf.
TEST(Distribution, TheDensityIntegratesToTheCdf) {
  for (const Case& one : random_cases(15, 2)) {
    if (one.head.kind == "quantiles") continue;  // has jumps; below
    const Member m(one);
    const double middle = m.family.median(m.values), width = m.family.quantile(m.values, 0.6) - m.family.quantile(m.values, 0.4);
    const auto integral = [&](double to) {
      const int n = 40000;
      const double reach = one.head.kind == "student_t" ? 1e9 : 300;  // only its tails are heavy; a narrow component needs a fine grid
      const double low = -std::asinh(reach), high = std::asinh((to - middle) / width), h = (high - low) / n;
      double sum = 0;
      for (int i = 0; i <= n; ++i) {
        const double u = low + i * h;
        sum += (i == 0 || i == n ? 1
                : i % 2 == 1     ? 4
                                 : 2) *
               std::exp(m.family.log_density(m.values, middle + width * std::sinh(u))) * width * std::cosh(u);
      }
      return sum * h / 3;
    };
    for (const double p : {0.1, 0.5, 0.93}) {
      const double x = m.family.quantile(m.values, p);
      EXPECT_NEAR(integral(x), p, 1e-5) << name(one);
    }
  }
}

TEST(Distribution, TheDensityOfQuantilesIsTheSlopeOfTheCdfBetweenThem) {
  for (const Case& one : random_cases(40, 3)) {
    if (one.head.kind != "quantiles") continue;
    const Member m(one);
    for (double p = 0.0007; p < 1; p += 0.0173) {
      const double step = 1e-5, a = m.family.quantile(m.values, p - 0.5 * step), b = m.family.quantile(m.values, p + 0.5 * step);
      const bool across = std::any_of(one.head.levels.begin(), one.head.levels.end(), [&](double l) { return std::abs(l - p) <= step; });
      if (!across) {
        EXPECT_NEAR(m.family.log_density(m.values, m.family.quantile(m.values, p)), std::log(step / (b - a)), 2e-4) << name(one);
      }
    }
  }
}

// The mean is the integral of the quantile function over (0, 1): midpoints of p = logistic(u), which reaches far into the tails.
TEST(Distribution, TheMeanIsTheIntegralOfTheQuantiles) {
  for (const Case& one : random_cases(10, 4)) {
    const Member m(one);
    double sum = 0;
    const double h = 0.01;
    for (double u = -34; u < 34; u += h) {
      const double p = 1 / (1 + std::exp(-u));
      sum += m.family.quantile(m.values, p) * p * (1 - p) * h;
    }
    const double width = m.family.quantile(m.values, 0.8) - m.family.quantile(m.values, 0.2);
    // Student's t with two degrees of freedom keeps weight far out; the two tails cancel.
    EXPECT_NEAR(sum, m.family.mean(m.values), 1e-4 * (width + std::abs(sum))) << name(one);
  }
}

// Kolmogorov and Smirnov: the greatest distance between the drawn and the stated distribution stays below its 1e-6 point, 2.69 / sqrt(n).
TEST(Distribution, SamplesFollowTheCdf) {
  Rng rng(5);
  for (const Case& one : random_cases(6, 5)) {
    const Member m(one);
    std::vector<double> draws(4000);
    for (double& d : draws) d = m.family.sample(m.values, rng);
    std::sort(draws.begin(), draws.end());
    double distance = 0;
    const double n = static_cast<double>(draws.size());
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const double p = m.family.cdf(m.values, draws[i]);
      distance = std::max({distance, std::abs(p - static_cast<double>(i) / n), std::abs(p - static_cast<double>(i + 1) / n)});
    }
    EXPECT_LT(distance, 2.69 / std::sqrt(n)) << name(one);
  }
}

TEST(Distribution, TemperatureSpreadsTheSamplesAboutTheMedian) {
  for (const Case& one : random_cases(10, 6)) {
    const Member m(one, 7, 100);
    const double middle = m.family.median(m.values);
    for (const double temperature : {0.0, 0.5, 2.0}) {
      Rng cold(9), warm(9);
      for (int i = 0; i < 50; ++i) {
        const double plain = m.family.sample(m.values, cold), spread = m.family.sample(m.values, warm, temperature);
        EXPECT_NEAR(spread - middle, temperature * (plain - middle), 1e-9 * (1 + std::abs(plain))) << name(one);
      }
    }
  }
}

TEST(Distribution, ScaleAndOffsetMoveEverythingTogether) {
  const double scale = 12.5, offset = -300;
  for (const Case& one : random_cases(30, 7)) {
    const Member plain(one), moved(one, scale, offset);
    const double slack = 1e-9 * (1 + std::abs(plain.family.mean(plain.values)));
    EXPECT_NEAR(moved.family.mean(moved.values), plain.family.mean(plain.values) * scale + offset, slack * scale + 1e-9);
    for (const double p : {0.01, 0.2, 0.5, 0.66, 0.99}) {
      const double x = plain.family.quantile(plain.values, p), y = x * scale + offset;
      EXPECT_NEAR(moved.family.quantile(moved.values, p), y, 1e-9 * (std::abs(y) + std::abs(offset))) << name(one);
      EXPECT_NEAR(moved.family.cdf(moved.values, y + 0.1), plain.family.cdf(plain.values, x + 0.1 / scale), 1e-7) << name(one);
      EXPECT_NEAR(moved.family.log_density(moved.values, y + 0.1),
                  plain.family.log_density(plain.values, x + 0.1 / scale) - std::log(scale), 1e-4);
    }
  }
}

TEST(Distribution, QuantilesNeverCross) {
  std::vector<double> levels, out;
  for (int i = 1; i < 200; ++i) levels.push_back(i / 200.0);
  out.resize(levels.size());
  auto cases = random_cases(100, 8);
  for (Case one : random_cases(100, 9)) {  // also where every step is nothing, and where it is huge
    for (float& r : one.raw) r *= 60;
    cases.push_back(one);
  }
  for (const Case& one : cases) {
    const Member m(one, 3, 1e6);
    m.family.quantiles(m.values, levels, out);
    EXPECT_TRUE(std::is_sorted(out.begin(), out.end())) << name(one);
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_NEAR(out[i], m.family.quantile(m.values, levels[i]), 1e-9 * std::abs(out[i]));
      EXPECT_TRUE(std::isfinite(out[i])) << name(one);
    }
  }
}

// The layout that HeadConfig states, written out by hand: softplus(0) = log 2.
TEST(Distribution, DecodesTheStatedOrder) {
  const double log2 = std::log(2.0);
  HeadConfig head;
  head.levels = {0.1, 0.3, 0.5, 0.9};
  const Member q({head, {10, 0, 0, 50}});  // median, step up to 0.9, steps down to 0.3 and 0.1
  EXPECT_DOUBLE_EQ(q.values[2], 10);
  EXPECT_DOUBLE_EQ(q.values[3], 10 + log2);
  EXPECT_DOUBLE_EQ(q.values[1], 10 - log2);
  EXPECT_DOUBLE_EQ(q.values[0], 10 - log2 - 50);
  head.kind = "student_t";
  const Member t({head, {1, 0, 0}}, 2, 5);
  EXPECT_DOUBLE_EQ(t.values[0], 7);
  EXPECT_DOUBLE_EQ(t.values[1], 2 * (log2 + 1e-4));
  EXPECT_DOUBLE_EQ(t.values[2], 2 + log2);
  head.kind = "mixture";
  head.components = 2;
  const Member m({head, {1000, 1000, -1, 3, 0, 0}});  // logits that would overflow
  EXPECT_DOUBLE_EQ(m.values[0], 0.5);
  EXPECT_DOUBLE_EQ(m.values[2], -1);
  EXPECT_DOUBLE_EQ(m.values[5], log2 + 1e-4);
}

// Quantile tails as stated: through the two outermost, q(p) = q_0 + s log(p / p_0).
TEST(Distribution, TailsOfQuantilesAreExponential) {
  HeadConfig head;
  head.levels = {0.1, 0.2, 0.5, 0.9};
  const Member m({head, {0, 1, 2, 3}});
  const auto q = [&](double p) { return m.family.quantile(m.values, p); };
  EXPECT_NEAR(q(0.05) - q(0.1), q(0.1) - q(0.2), 1e-12);  // memoryless: each halving of p goes as far
  EXPECT_NEAR(q(0.025) - q(0.05), q(0.05) - q(0.1), 1e-12);
  EXPECT_NEAR(q(0.98) - q(0.9), q(0.9) - q(0.5), 1e-12);  // 0.5, 0.1, 0.02 above: fifths
  EXPECT_EQ(q(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(q(1), std::numeric_limits<double>::infinity());
}

TEST(Distribution, APointHasNoSpread) {
  HeadConfig head;
  head.kind = "point";
  const Member m({head, {2}}, 3, 1);
  EXPECT_FALSE(m.family.has_density());
  for (const double p : {0.0, 0.1, 0.5, 1.0}) EXPECT_EQ(m.family.quantile(m.values, p), 7);
  Rng rng(1);
  EXPECT_EQ(m.family.sample(m.values, rng, 5), 7);
  EXPECT_EQ(m.family.cdf(m.values, 6.9), 0);
  EXPECT_EQ(m.family.cdf(m.values, 7), 1);
}

TEST(Distribution, WhatIsNotFiniteIsSeenAndNotHidden) {
  for (Case one : random_cases(5, 11)) {
    for (std::size_t i = 0; i < one.raw.size(); ++i) {
      for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        Case broken = one;
        broken.raw[i] = bad;
        const Member m(broken);
        const double mean = m.family.mean(m.values), q = m.family.quantile(m.values, 0.3);
        // Either the member says so, or the broken number has a limit that is a fair distribution (a weight or a step of zero).
        if (DistributionFamily::finite(m.values)) {
          EXPECT_TRUE(std::isfinite(mean) && std::isfinite(q)) << name(broken);
          EXPECT_EQ(bad, -INFINITY) << name(broken);
        }
      }
    }
  }
}

TEST(Distribution, RefusesAHeadThatIsWrong) {
  HeadConfig head;
  head.levels = {0.2, 0.1, 0.5};
  EXPECT_FALSE(DistributionFamily::of(head));
  head.levels = {0.1, 0.9};
  EXPECT_FALSE(DistributionFamily::of(head));
  head.kind = "normal";
  EXPECT_FALSE(DistributionFamily::of(head));
}

}  // namespace
}  // namespace kizzasi
