#include "kizzasi/train/clip.h"

#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/train/golden_test.h"

namespace kizzasi {
namespace {

// The three gradients of the reference file one after another, under the given prefix.
std::vector<double> joined(const Golden& golden, const std::string& prefix) {
  std::vector<double> all;
  for (const std::string name : {"grad.0", "grad.1", "grad.2"}) {
    const auto& part = golden.values(prefix + name);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Clip, ByNormAndByValueAsPublished) {
  const Golden golden("clipping");
  const auto start = joined(golden, "");
  const std::vector<float> gradient(start.begin(), start.end());
  struct Run {
    std::string name;
    double p, limit;
  };
  for (const Run& run :
       {Run{"l2_1", 2, 1}, {"l2_100", 2, 100}, {"l1_2", 1, 2}, {"inf_0.5", std::numeric_limits<double>::infinity(), 0.5}}) {
    auto clipped = gradient;
    const double norm = clip_by_norm(clipped, run.limit, run.p);
    EXPECT_NEAR(norm, golden.values(run.name + ".norm")[0], 1e-6 * norm) << run.name;
    expect_near(std::span<const float>(clipped), joined(golden, run.name + "."), 1e-6, run.name);
  }
  auto clipped = gradient;
  clip_by_value(clipped, 0.7f);
  expect_near(std::span<const float>(clipped), joined(golden, "value_0.7."), 1e-6, "value");
}

TEST(Clip, NormOfAnyOrderIsItsFormula) {
  for (const std::size_t count : {0u, 1u, 7u, 8u, 9u, 1000u}) {
    std::vector<float> gradient(count);
    for (std::size_t i = 0; i < count; ++i)
      gradient[i] = static_cast<float>(std::sin(static_cast<double>(i) + 1) * 1e15);  // squares overflow f32
    for (const double p : {1.0, 2.0, 3.5}) {
      double sum = 0;
      for (const float g : gradient) sum += std::pow(std::abs(static_cast<double>(g)), p);
      EXPECT_NEAR(gradient_norm(gradient, p), std::pow(sum, 1 / p), 1e-12 * std::pow(sum, 1 / p)) << count << " " << p;
    }
  }
}

TEST(Clip, LeavesWhatIsNotFiniteToBeSeen) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const double p : {1.0, 2.0, std::numeric_limits<double>::infinity()}) {
      std::vector<float> gradient{1, bad, 3};
      EXPECT_FALSE(std::isfinite(clip_by_norm(gradient, 0.1, p)));
      EXPECT_EQ(gradient[0], 1);
    }
  }
}

}  // namespace
}  // namespace kizzasi
