#include "kizzasi/train/head_loss.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/decode/distribution.h"

namespace kizzasi {
namespace {

using autograd::CheckedInput;
using autograd::Dims;
using autograd::Tape;
using autograd::Var;

std::vector<HeadConfig> heads() {
  std::vector<HeadConfig> all(7);
  all[0].kind = "point";
  all[1].kind = "gaussian";
  all[2].kind = "student_t";
  all[3].kind = "mixture";
  all[4].kind = "mixture";
  all[4].components = 1;
  all[5].levels = {0.1, 0.4, 0.5, 0.7, 0.95};  // uneven about the median
  return all;                                  // the last: the standard levels
}

// Parameters, targets and weights (some 0) of n values.
std::vector<CheckedInput> random_rows(const HeadConfig& head, std::size_t n, Rng& rng) {
  auto params = autograd::uniform_input("params", {n, head.parameters()}, rng, -3, 3);
  auto target = autograd::uniform_input("target", {n}, rng, -5, 5), weight = autograd::uniform_input("weight", {n}, rng, 0, 2);
  for (double& w : weight.values) w = rng.below(4) == 0 ? 0 : w;
  weight.values[0] = 1;
  target.wants_gradient = weight.wants_gradient = false;
  return {params, target, weight};
}

TEST(HeadLoss, GradientsAreDifferences) {
  Rng rng(1);
  for (const HeadConfig& head : heads()) {
    for (const PointLoss point : {PointLoss::kAbsolute, PointLoss::kHuber, PointLoss::kSquared}) {
      SCOPED_TRACE(head.kind);
      for (int i = 0; i < 20; ++i) {
        const auto rows = random_rows(head, 1 + rng.below(5), rng);
        const auto build = [&](const auto& v) { return head_loss(head, v[0], v[1], v[2], point); };
        autograd::expect_gradients(rows, build, 1e-7, 1e-6);  // small steps: quantiles bend at the target
        autograd::expect_f32_near_f64(rows, build);
      }
    }
  }
}

// The weighted mean of what the decoded distributions say: their log density, or the pinball loss of their quantiles.
double truth(const HeadConfig& head, const std::vector<CheckedInput>& rows) {
  const DistributionFamily family = *DistributionFamily::of(head);
  const std::size_t width = head.parameters();
  double loss = 0, weight = 0;
  for (std::size_t r = 0; r < rows[1].values.size(); ++r) {
    const auto from = rows[0].values.begin() + static_cast<std::ptrdiff_t>(r * width);
    const std::vector<float> raw(from, from + static_cast<std::ptrdiff_t>(width));
    std::vector<double> member(width);
    family.decode(raw, 1, 0, member);
    const double t = rows[1].values[r], w = rows[2].values[r];
    double row = 0;
    if (head.which() == HeadKind::kPoint)
      row = std::abs(t - raw[0]);
    else if (head.which() != HeadKind::kQuantiles)
      row = -family.log_density(member, t);
    else {
      for (const double level : head.levels) {
        const double e = t - family.quantile(member, level);
        row += std::max(level * e, (level - 1) * e) / static_cast<double>(head.levels.size());
      }
    }
    loss += w * row;
    weight += w;
  }
  return loss / weight;
}

TEST(HeadLoss, IsWhatTheDecodedDistributionSays) {
  Rng rng(2);
  for (const HeadConfig& head : heads()) {
    SCOPED_TRACE(head.kind);
    for (int i = 0; i < 50; ++i) {
      auto rows = random_rows(head, 1 + rng.below(20), rng);
      for (double& p : rows[0].values) p = static_cast<float>(p);
      Tape<double> tape;
      const auto value = autograd::evaluate(tape, rows, [&](const auto& v) { return head_loss(head, v[0], v[1], v[2]); }).value[0];
      ASSERT_NEAR(value, truth(head, rows), 1e-6 * (1 + std::abs(value)));
    }
  }
}

TEST(HeadLoss, MissingTargetsAreNotLookedAt) {
  Rng rng(3);
  for (const HeadConfig& head : heads()) {
    SCOPED_TRACE(head.kind);
    auto rows = random_rows(head, 6, rng);
    rows[2].values = {1, 0, 1, 0, 1, 1};
    const auto build = [&](const auto& v) { return head_loss(head, v[0], v[1], v[2]); };
    Tape<double> tape;
    const auto before = autograd::evaluate(tape, rows, build);
    rows[1].values[1] = std::numeric_limits<double>::quiet_NaN();
    rows[1].values[3] = 1e300;
    const auto after = autograd::evaluate(tape, rows, build);
    EXPECT_EQ(before.value, after.value);
    EXPECT_EQ(before.gradients, after.gradients);
    for (std::size_t k = 0; k < head.parameters(); ++k) EXPECT_EQ(after.gradients[0][head.parameters() + k], 0);

    rows[2].values.assign(6, 0);
    const auto nothing = autograd::evaluate(tape, rows, build);
    EXPECT_EQ(nothing.value[0], 0);
    EXPECT_EQ(nothing.gradients[0], std::vector<double>(rows[0].values.size(), 0));
  }
}

TEST(HeadLoss, ExtremeParametersGiveFiniteGradients) {
  Rng rng(4);
  const std::vector<float> extremes{0, 1e-30f, -1, 30, -30, 100, -100, 1e4f, -1e4f, 1e10f, -1e10f, 3e38f, -3e38f};
  for (const HeadConfig& head : heads()) {
    SCOPED_TRACE(head.kind);
    const std::size_t width = head.parameters();
    for (int i = 0; i < 2000; ++i) {
      std::vector<float> params(width), target{extremes[rng.below(extremes.size())]}, weight{1};
      for (float& p : params) p = extremes[rng.below(extremes.size())];
      Tape<float> tape;
      const auto p = tape.leaf({1, width}, params);
      tape.backward(head_loss(head, p, tape.constant({1}, target), tape.constant({1}, weight)));
      for (const float g : tape.grad(p)) ASSERT_TRUE(std::isfinite(g));
    }
  }
}

TEST(HeadLoss, NanParametersAreNotHidden) {
  for (const HeadConfig& head : heads()) {
    Tape<float> tape;
    const std::vector<float> params(head.parameters(), std::numeric_limits<float>::quiet_NaN()), one{1};
    const auto p = tape.leaf({1, params.size()}, params);
    const auto loss = head_loss(head, p, tape.constant({1}, one), tape.constant({1}, one));
    EXPECT_TRUE(std::isnan(loss.value()[0])) << head.kind;
  }
}

TEST(PointLossName, KnowsItsNames) {
  EXPECT_EQ(*point_loss("l1"), PointLoss::kAbsolute);
  EXPECT_EQ(*point_loss("huber"), PointLoss::kHuber);
  EXPECT_EQ(*point_loss("l2"), PointLoss::kSquared);
  EXPECT_EQ(point_loss("l3").error().fault, Fault::kBadUse);
}

}  // namespace
}  // namespace kizzasi
