#include "kizzasi/train/prediction_cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/autograd/gradient_check_test.h"

namespace kizzasi {
namespace {

// A cost that is smooth in all values of a window and differs from window to window.
class WavyCost final : public PredictionCost {
 public:
  std::vector<double> start() const override { return {2}; }
  std::size_t sums() const override { return 1; }
  bool moves() const override { return false; }
  double cost(const PredictedWindow& window, std::span<const double> state, std::span<double> gradient,
              std::span<double> sums) const override {
    double total = 0;
    for (std::size_t i = 0; i < window.values.size(); ++i) {
      const double x = window.values[i] * static_cast<double>(window.row + i + 1);
      const double next = window.values[(i + 1) % window.values.size()];
      total += state[0] * std::sin(x) + window.values[i] * next;
      sums[0] += window.values[i];
    }
    for (std::size_t i = 0; i < window.values.size(); ++i) {
      const auto factor = static_cast<double>(window.row + i + 1);
      const std::size_t n = window.values.size();
      gradient[i] = state[0] * factor * std::cos(window.values[i] * factor) + window.values[(i + 1) % n] + window.values[(i + n - 1) % n];
    }
    return total;
  }
  void step(std::int64_t, std::span<double>, std::span<const double>) const override {}
  Json note(std::span<const double>, std::span<const double>) const override { return {}; }
};

TEST(PredictionCost, GradientsByTheParametersOfEveryHeadEqualDifferences) {
  const std::vector<Origin> origins{{0, 0, 1}, {0, 0, 3}};
  const std::vector<float> location{0.1f, -0.2f, 0.3f, 0, 0.5f, 1, -1, 0.2f, 0.7f, 0, 0.1f, 0.2f}, scale{1, 0.5f, 2, 1.5f, 0.7f, 1};
  const std::vector<float> spread{2, 0.5f, 1.5f, 1}, anchor{0, 0.25f, -1, 0.5f};
  const PredictedBatch batch{origins, location, scale, spread, anchor, 2};
  const WavyCost cost;
  const std::vector<double> state{2};
  Rng rng(5);
  for (const std::string kind : {"point", "gaussian", "student_t", "mixture", "quantiles"}) {
    SCOPED_TRACE(kind);
    HeadConfig head;
    head.kind = kind;
    head.levels = {0.1, 0.5, 0.9};
    const auto parameters = autograd::normal_input("parameters", {2, 6 * head.parameters()}, rng);
    const auto operation = [&](const auto& v) {
      std::vector<double> sums(1);
      return prediction_cost(head, cost, state, batch, v[0], sums);
    };
    autograd::expect_differentiable({parameters}, operation, 1e-7, 2e-5);
  }
  // A point: the parameters are the values themselves, in units of the short-cut's error.
  HeadConfig head;
  head.kind = "point";
  autograd::Tape<double> tape;
  const std::vector<double> raw{1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0};
  std::vector<double> sums(1);
  prediction_cost(head, cost, state, batch, tape.leaf({2, 6}, raw), sums);
  double expected = 0;
  for (std::size_t w = 0; w < 2; ++w) {
    for (std::size_t i = 0; i < 6; ++i) {
      const double in_window = static_cast<double>(location[w * 6 + i]) + static_cast<double>(scale[i]) * raw[w * 6 + i];
      expected += in_window * static_cast<double>(spread[w * 2 + i % 2]) + static_cast<double>(anchor[w * 2 + i % 2]);
    }
  }
  EXPECT_NEAR(sums[0], expected, 1e-12);
}

}  // namespace
}  // namespace kizzasi
