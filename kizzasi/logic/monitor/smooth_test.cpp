#include "kizzasi/logic/monitor/smooth.h"

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/monitor/cases_test.h"
#include "kizzasi/logic/monitor/offline.h"

namespace kizzasi::logic {
namespace {

TEST(Smooth, ValueAndGradientOfEveryPublishedCase) {
  for (const Json& c : stl_cases("smooth")) {
    SCOPED_TRACE(c.find("id")->string());
    const Trace trace(c);
    const NodeGraph graph = graph_of(c.find("formula")->string(), trace.schema);
    const auto kind = c.find("mode")->string() == "lse" ? SmoothKind::kLogSumExp : SmoothKind::kSoftmax;
    std::vector<double> gradient(trace.frames.size());
    const auto at = static_cast<std::size_t>(c.find("t")->integer());
    const auto value = smooth_robustness(graph, trace.frames, at, kind, c.find("k")->number(), gradient);
    ASSERT_TRUE(value) << value.error().text();
    const auto expect_near = [](double actual, double expected) {
      EXPECT_LE(std::abs(actual - expected), 1e-12 * std::abs(expected) + 1e-14) << actual << " for " << expected;
    };
    expect_near(*value, c.find("value")->number());
    std::size_t channel = 0;
    for (const auto& [name, expected] : c.find("gradient")->members()) {
      for (std::size_t row = 0; row < trace.rows; ++row) {
        expect_near(gradient[row * trace.schema.size() + channel], expected.items()[row].number());
      }
      ++channel;
    }
  }
}

TEST(Smooth, GradientsOfEveryNumberEqualFiniteDifferences) {
  Schema schema;
  schema.channels = {{"x", "", Role::kTarget}, {"y", "", Role::kTarget}};
  schema.step_ns = 500'000'000;
  Rng rng(3);
  for (const char* text : {"always[2,6] x * y - x / (y + 9) <= norm(x, y)", "eventually[2,5] (rate(x) >= 0.1 and accel(y) < 0.3)",
                           "always[3,7] mean(x, 3s) < max(y, 1s)", "always[3,7] integral(x, 1.5s) + variance(y, 4s) <= trend(x, 2s)",
                           "(x > 0) until[1,6] (prev(y, 1) > min(x, y))", "always[1,4] (x == y or not next x >= norm1(x, y))",
                           "once[0,3] x > 0 and (y since[1,4] x)", "always[2,5] min(x, 2s) > y"}) {
    SCOPED_TRACE(text);
    const NodeGraph graph = graph_of(text, schema);
    std::vector<double> frames(24), gradient(24);
    for (double& value : frames) value = rng.normal();
    const std::size_t at = std::string(text).starts_with("once") ? 8 : 0;
    for (const SmoothKind kind : {SmoothKind::kLogSumExp, SmoothKind::kSoftmax}) {
      ASSERT_TRUE(smooth_robustness(graph, frames, at, kind, 2, gradient));
      double largest = 0;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        constexpr double kStep = 1e-6;
        std::vector<double> moved(frames);
        moved[i] = frames[i] + kStep;
        const double above = *smooth_robustness(graph, moved, at, kind, 2, {});
        moved[i] = frames[i] - kStep;
        const double below = *smooth_robustness(graph, moved, at, kind, 2, {});
        EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << i;
        largest = std::max(largest, std::abs(gradient[i]));
      }
      EXPECT_GT(largest, 0);
    }
  }
}

TEST(Smooth, TendsToTheRobustness) {
  Schema schema;
  schema.channels = {{"x", "", Role::kTarget}};
  Rng rng(4);
  std::vector<double> frames(40);
  for (double& value : frames) value = rng.normal();
  for (const char* text : {"always[0,9] (x > 1 -> eventually[0,5] x < 0)", "(x < 2) until[2,20] (x > 1)"}) {
    const NodeGraph graph = graph_of(text, schema);
    const double hard = judge(graph, frames, {}, TraceEnd::kEnds)[0].robustness[0].low;
    for (const SmoothKind kind : {SmoothKind::kLogSumExp, SmoothKind::kSoftmax}) {
      EXPECT_NEAR(*smooth_robustness(graph, frames, 0, kind, 1e4, {}), hard, 1e-3);
    }
  }
}

TEST(Smooth, RefusesWhatHasNoValue) {
  Schema schema;
  schema.channels = {{"x", "", Role::kTarget}};
  const NodeGraph graph = graph_of("always x > 0", schema);
  const std::vector<double> frames{1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(smooth_robustness(graph, frames, 0, SmoothKind::kSoftmax, 1, {}).error().text(),
            "smooth robustness: the value of 'x' at sample 1 is nan (expected finite values). Fill or leave out what is missing.");
  EXPECT_FALSE(smooth_robustness(graph, std::span(frames).subspan(0, 1), 1, SmoothKind::kSoftmax, 1, {}));
  EXPECT_FALSE(smooth_robustness(graph, std::span(frames).subspan(0, 1), 0, SmoothKind::kSoftmax, 0, {}));
  const std::vector<double> finite{1, 2};
  EXPECT_EQ(smooth_robustness(graph_of("rate(x) > 0", schema), finite, 0, SmoothKind::kSoftmax, 1, {}).error().text(),
            "smooth robustness: the formula has no value at sample 0: it looks back to before the start (expected a later position, or an "
            "interval "
            "that begins later).");
}

}  // namespace
}  // namespace kizzasi::logic
