#include "kizzasi/logic/monitor/prefix.h"

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/monitor/cases_test.h"
#include "kizzasi/logic/monitor/offline.h"

namespace kizzasi::logic {
namespace {

// The letter of a row where each proposition is a channel that stands alone.
std::int64_t letter_of(const PrefixMonitor& monitor, const NodeGraph& graph, const Trace& trace, std::size_t row) {
  std::int64_t letter = 0;
  for (std::size_t i = 0; i < monitor.propositions().size(); ++i) {
    const std::uint32_t channel = graph.nodes[graph.nodes[monitor.propositions()[i]].b].a;
    if (trace.frames[row * trace.schema.size() + channel] > 0.5) letter |= std::int64_t{1} << i;
  }
  return letter;
}

TEST(Prefix, VerdictsOfEveryPublishedCase) {
  for (const Json& c : stl_cases("prefix")) {
    SCOPED_TRACE(c.find("id")->string() + " " + c.find("formula")->string());
    const Trace trace(c);
    const NodeGraph graph = graph_of(c.find("formula")->string(), trace.schema);
    const auto monitor = PrefixMonitor::create(graph, graph.roots[0], "formula");
    ASSERT_TRUE(monitor) << monitor.error().text();
    std::int32_t state = monitor->start();
    for (std::size_t row = 0; row < trace.rows; ++row) {
      state = monitor->step(state, letter_of(*monitor, graph, trace, row));
      const PrefixVerdict verdict = monitor->verdict(state);
      EXPECT_EQ(verdict.now, c.find("now")->string()[row] == 'T') << row;
      EXPECT_EQ(fmt::format("{}_{}", verdict.permanent ? "perm" : "temp", verdict.now ? "true" : "false"),
                c.find("ltlf")->items()[row].string())
          << row;
      EXPECT_EQ(verdict.every ? 'T' : verdict.some ? '?' : 'F', c.find("ltl3")->string()[row]) << row;
      EXPECT_EQ(rv_ltl(verdict), c.find("rvltl")->items()[row].string()) << row;
    }
  }
}

TEST(Prefix, WhatIsUnknownStaysUnknownUnlessAllIsSaid) {
  Schema schema;
  schema.channels = {{"p", "", Role::kTarget}};
  const NodeGraph graph = graph_of("eventually p", schema);
  const auto monitor = PrefixMonitor::create(graph, graph.roots[0], "formula");
  ASSERT_TRUE(monitor);
  EXPECT_FALSE(monitor->verdict(monitor->step(monitor->start(), -1)).known);
  const std::int32_t said = monitor->step(monitor->start(), 1);
  EXPECT_TRUE(monitor->verdict(monitor->step(said, -1)).every);
}

TEST(Prefix, RefusesWhatItCannotBuild) {
  Schema schema;
  schema.channels = {{"p", "", Role::kTarget}};
  const NodeGraph past = graph_of("always once p", schema);
  EXPECT_NE(PrefixMonitor::create(past, past.roots[0], "f:1")
                .error()
                .text()
                .find("f:1: the formula needs memory that grows with the stream: it holds past operators"),
            std::string::npos);
  const NodeGraph wide = graph_of("always (p -> eventually[0,100] not p)", schema);
  EXPECT_FALSE(PrefixMonitor::create(wide, wide.roots[0], "f:1"));
}

}  // namespace
}  // namespace kizzasi::logic
