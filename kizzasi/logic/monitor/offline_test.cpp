#include "kizzasi/logic/monitor/offline.h"

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/monitor/cases_test.h"

namespace kizzasi::logic {
namespace {

std::string letters(const std::vector<Verdict>& truth) {
  std::string out;
  for (const Verdict verdict : truth) out.push_back(letter(verdict));
  return out;
}

TEST(Offline, RobustnessAndTruthOfEveryPublishedCase) {
  for (const Json& c : stl_cases("offline")) {
    SCOPED_TRACE(c.find("id")->string() + " " + c.find("formula")->string());
    const Trace trace(c);
    const auto judged = judge(graph_of(c.find("formula")->string(), trace.schema), trace.frames, {}, TraceEnd::kEnds);
    const std::vector<double> expected = numbers_of(*c.find("rob"));
    ASSERT_EQ(judged[0].robustness.size(), expected.size());
    for (std::size_t t = 0; t < expected.size(); ++t) {
      EXPECT_EQ(judged[0].robustness[t].low, expected[t]) << t;
      EXPECT_EQ(judged[0].robustness[t].high, expected[t]) << t;
    }
    EXPECT_EQ(letters(judged[0].truth), c.find("sat")->string());
    const NodeGraph graph = graph_of(c.find("formula")->string(), trace.schema);
    const Json& horizon = *c.find("horizon");
    EXPECT_EQ(graph.horizon(), horizon.is_string() ? kEndless : horizon.integer());
  }
}

TEST(Offline, TruthOnFiniteTraces) {
  for (const Json& c : stl_cases("ltlf")) {
    SCOPED_TRACE(c.find("id")->string() + " " + c.find("formula")->string());
    const Trace trace(c);
    const auto judged = judge(graph_of(c.find("formula")->string(), trace.schema), trace.frames, {}, TraceEnd::kEnds);
    EXPECT_EQ(letters(judged[0].truth), c.find("sat")->string());
  }
}

TEST(Offline, WhatIsMissingLeavesAnInterval) {
  for (const Json& c : stl_cases("nan")) {
    SCOPED_TRACE(c.find("id")->string() + " " + c.find("formula")->string());
    const Trace trace(c);
    const auto judged = judge(graph_of(c.find("formula")->string(), trace.schema), trace.frames, {}, TraceEnd::kEnds);
    const std::vector<double> low = numbers_of(*c.find("low")), high = numbers_of(*c.find("high"));
    std::string verdicts;
    for (std::size_t t = 0; t < low.size(); ++t) {
      EXPECT_EQ(judged[0].robustness[t].low, low[t]) << t;
      EXPECT_EQ(judged[0].robustness[t].high, high[t]) << t;
      verdicts.push_back(letter(sign_of(judged[0].robustness[t])));
    }
    EXPECT_EQ(verdicts, c.find("verdict")->string());
    EXPECT_EQ(letters(judged[0].truth), c.find("sat")->string());
  }
}

// Where a signal works in both directions a tighter interval than the published one is right too, if it holds the final value.
void expect_interval(const Json& low, const Json& high, const std::vector<Robustness>& ours, bool exact) {
  const std::vector<double> lows = numbers_of(low), highs = numbers_of(high);
  ASSERT_GE(ours.size(), lows.size());
  for (std::size_t t = 0; t < lows.size(); ++t) {
    if (exact) {
      EXPECT_EQ(ours[t].low, lows[t]) << t;
      EXPECT_EQ(ours[t].high, highs[t]) << t;
    } else {
      EXPECT_GE(ours[t].low, lows[t]) << t;
      EXPECT_LE(ours[t].high, highs[t]) << t;
      EXPECT_LE(ours[t].low, ours[t].high) << t;
    }
  }
}

TEST(Offline, IntervalsWhileTheFutureIsOpen) {
  for (const Json& c : stl_cases("rosi")) {
    SCOPED_TRACE(c.find("id")->string() + " " + c.find("formula")->string());
    const Trace trace(c);
    const bool exact = c.find("exact")->boolean();
    const NodeGraph graph = graph_of(c.find("formula")->string(), trace.schema);
    for (const Json& step : c.find("steps")->items()) {
      const auto known = static_cast<std::size_t>(step.find("known")->integer());
      SCOPED_TRACE(known);
      const auto judged = judge(graph, std::span(trace.frames).subspan(0, known * trace.schema.size()), {}, TraceEnd::kGoesOn);
      expect_interval(*step.find("low"), *step.find("high"), judged[0].robustness, exact);
      if (!exact) continue;
      std::string verdicts;
      for (const Robustness& r : judged[0].robustness) verdicts.push_back(letter(sign_of(r)));
      EXPECT_EQ(verdicts, step.find("verdict")->string());
    }
    for (const Json& step : c.find("finite")->items()) {  // the trace is known to end: what has not come is missing
      const auto known = static_cast<std::size_t>(step.find("known")->integer());
      SCOPED_TRACE(fmt::format("finite {}", known));
      std::vector<double> frames = trace.frames;
      std::fill(frames.begin() + static_cast<std::ptrdiff_t>(known * trace.schema.size()), frames.end(),
                std::numeric_limits<double>::quiet_NaN());
      expect_interval(*step.find("low"), *step.find("high"), judge(graph, frames, {}, TraceEnd::kEnds)[0].robustness, exact);
    }
  }
}

}  // namespace
}  // namespace kizzasi::logic
