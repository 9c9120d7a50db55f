#include "kizzasi/logic/monitor/online.h"

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/monitor/cases_test.h"
#include "kizzasi/logic/monitor/offline.h"
#include "tests/allocations/count.h"

namespace kizzasi::logic {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A monitor over one stream.
class Stream {
 public:
  Stream(const Schema& schema, const std::vector<std::string>& formulas, MonitorKind kind = MonitorKind::kRobustness) : schema_(schema) {
    std::vector<ConstraintText> texts;
    for (const std::string& formula : formulas) texts.push_back({.that = formula, .where = "formula"});
    auto made = Monitor::create(schema, texts, kind);
    if (!made) throw std::runtime_error(made.error().text());
    monitor = std::move(*made);
    state.resize(monitor->state_bytes());
    verdicts.resize(formulas.size());
    scratch.resize(monitor->scratch_doubles());
    monitor->reset(state);
  }
  MonitorStatus step(std::span<const double> frame) { return step(frame, samples_++ * schema_.step_ns); }
  MonitorStatus step(std::span<const double> frame, std::int64_t time_ns) {
    return monitor->step(state, time_ns, frame, verdicts, scratch);
  }

  std::unique_ptr<Monitor> monitor;
  std::vector<std::byte> state;
  std::vector<MonitorVerdict> verdicts;
  std::vector<double> scratch;

 private:
  Schema schema_;
  std::int64_t samples_ = 0;
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool near(double a, double b) { return same(a, b) || std::abs(a - b) <= 1e-12; }

TEST(Online, EveryPublishedCaseIsKnownWhenItsHorizonHasPassed) {
  for (const Json& c : stl_cases("online")) {
    SCOPED_TRACE(c.find("id")->string() + " " + c.find("formula")->string());
    const Trace trace(c);
    Stream stream(trace.schema, {c.find("formula")->string()});
    const std::int64_t delay = c.find("delay")->integer();
    EXPECT_EQ(stream.monitor->horizon(0), delay);
    const std::vector<double> expected = numbers_of(*c.find("rob"));
    for (std::size_t n = 0; n < trace.rows; ++n) {
      EXPECT_EQ(stream.step(std::span(trace.frames).subspan(n * trace.schema.size(), trace.schema.size())), MonitorStatus::kTaken);
      const MonitorVerdict& verdict = stream.verdicts[0];
      const std::int64_t k = static_cast<std::int64_t>(n) - delay;
      EXPECT_EQ(verdict.position, std::max<std::int64_t>(k, -1));
      if (k < 0) continue;
      const auto at = static_cast<std::size_t>(k);
      EXPECT_EQ(verdict.low, expected[at]) << k;
      EXPECT_EQ(verdict.high, expected[at]) << k;
      EXPECT_EQ(letter(verdict.truth), c.find("sat")->string()[at]) << k;
    }
  }
}

// Formulas at random over two signals.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : rng(seed) {}

  std::string formula(int depth, bool future, bool endless_past = true) {
    if (depth == 0) return atom();
    const auto part = [&] { return "(" + formula(depth - 1, future, endless_past) + ")"; };
    const auto past = [&] { return endless_past && rng.below(3) == 0 ? std::string() : interval(); };
    switch (rng.below(future ? 15 : 10)) {
      case 0:
        return "not " + part();
      case 1:
        return part() + " and " + part();
      case 2:
        return part() + " or " + part();
      case 3:
        return part() + " -> " + part();
      case 4:
        return part() + (rng.below(2) == 0 ? " <-> " : " xor ") + part();
      case 5:
        return (rng.below(2) == 0 ? "previous " : "Y[!] ") + part();
      case 6:
        return (rng.below(2) == 0 ? "once" : "historically") + past() + " " + part();
      case 7:
        return part() + " since" + past() + " " + part();
      case 8:
        return (rng.below(2) == 0 ? "rise(" : "fall(") + formula(depth - 1, future, endless_past) + ")";
      case 9:
        return atom();
      case 10:
        return (rng.below(2) == 0 ? "next " : "X[!] ") + part();
      case 11:
        return "always" + interval() + " " + part();
      case 12:
        return "eventually" + interval() + " " + part();
      case 13:
        return part() + " until" + interval() + " " + part();
      default:
        return part() + (rng.below(2) == 0 ? " release" : " unless") + interval() + " " + part();
    }
  }
  std::string atom() {
    constexpr const char* kAtoms[] = {"x >= 0.5",
                                      "y < 1",
                                      "x <= y",
                                      "x == y",
                                      "x in [-1, 1]",
                                      "y == 0 +- 0.5",
                                      "x + 2 * y > 1",
                                      "x * y < 0.25",
                                      "rate(x) <= 1",
                                      "mean(x, 3 [samples]) > 0",
                                      "max(y, 4 [samples]) < 1.5",
                                      "hysteresis(x, 1, 0)",
                                      "prev(y, 2) > 0",
                                      "norm(x, y) <= 1.5",
                                      "min(x, y) < 0",
                                      "trend(x, 3) > 0",
                                      "variance(y, 5) < 1"};
    return kAtoms[rng.below(std::size(kAtoms))];
  }
  std::string interval() {
    const std::uint64_t low = rng.below(4), width = rng.below(6);
    return fmt::format("[{},{}]", low, low + width);
  }
  std::vector<double> frames(std::size_t rows, bool missing) {
    std::vector<double> out;
    for (std::size_t i = 0; i < 2 * rows; ++i) {
      const double value = static_cast<double>(rng.below(17)) / 4 - 2;
      out.push_back(missing && rng.below(8) == 0 ? kNaN : value);
    }
    return out;
  }
  Rng rng;
};

Schema two_signals() {
  Schema schema;
  schema.channels = {{"x", "", Role::kTarget}, {"y", "", Role::kTarget}};
  schema.step_ns = 1'000'000'000;
  return schema;
}

// The whole trace at once and sample by sample are two programs; on decided positions they must agree to the bit.
TEST(Online, EqualsTheWholeTrace) {
  Chance chance(7);
  const Schema schema = two_signals();
  for (int i = 0; i < 1500; ++i) {
    const std::string text = chance.formula(static_cast<int>(chance.rng.below(4)), true);
    SCOPED_TRACE(text);
    const std::size_t rows = 30 + chance.rng.below(40);
    const std::vector<double> frames = chance.frames(rows, i % 3 == 0);
    const NodeGraph graph = graph_of(text, schema);
    const auto whole = judge(graph, frames, {}, TraceEnd::kGoesOn)[0];
    Stream stream(schema, {text}), brief(schema, {text}, MonitorKind::kVerdict);
    for (std::size_t n = 0; n < rows; ++n) {
      stream.step(std::span(frames).subspan(2 * n, 2));
      brief.step(std::span(frames).subspan(2 * n, 2));
      const MonitorVerdict& verdict = stream.verdicts[0];
      EXPECT_EQ(verdict.truth, brief.verdicts[0].truth);
      if (verdict.position < 0) continue;
      const auto at = static_cast<std::size_t>(verdict.position);
      ASSERT_TRUE(same(verdict.low, whole.robustness[at].low) && same(verdict.high, whole.robustness[at].high))
          << n << " " << at << ": " << verdict.low << " " << verdict.high << " whole " << whole.robustness[at].low << " "
          << whole.robustness[at].high;
      ASSERT_EQ(verdict.truth, whole.truth[at]) << n << " " << at;
    }
  }
}

// A formula without a bound is judged at the start of the stream, from what has come so far.
TEST(Online, EndlessFormulasAreJudgedFromTheStart) {
  Chance chance(8);
  const Schema schema = two_signals();
  int judged = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto part = [&] { return "(" + chance.formula(static_cast<int>(chance.rng.below(2)), i % 2 == 0) + ")"; };
    const std::string a = part(), b = part(), c = part();
    const std::string texts[] = {"always " + a,
                                 "eventually " + a,
                                 a + " until " + b,
                                 a + " release " + b,
                                 a + " unless " + b,
                                 "always (" + a + " -> eventually " + b + ")",
                                 "eventually (" + a + " and eventually " + b + ")",
                                 "not always (" + a + " or next " + b + ")",
                                 "always[2:] " + a,
                                 a + " until[1:] (" + b + " and always " + c + ")",
                                 "(" + a + " until " + b + ") xor eventually " + c,
                                 "next next (" + a + " until " + b + ")"};
    const std::string& text = texts[chance.rng.below(std::size(texts))];
    SCOPED_TRACE(text);
    const std::size_t rows = 20;
    const std::vector<double> frames = chance.frames(rows, i % 3 == 0);
    const NodeGraph graph = graph_of(text, schema);
    Stream stream(schema, {text});
    for (std::size_t n = 0; n < rows; ++n) {
      stream.step(std::span(frames).subspan(2 * n, 2));
      const MonitorVerdict& verdict = stream.verdicts[0];
      ASSERT_EQ(verdict.position, 0);
      // What is decided so late is never outside what the whole prefix tells, and equal where every part speaks of one sample.
      const auto whole = judge(graph, std::span(frames).subspan(0, 2 * (n + 1)), {}, TraceEnd::kGoesOn)[0];
      ASSERT_LE(verdict.low, whole.robustness[0].low) << n;
      ASSERT_GE(verdict.high, whole.robustness[0].high) << n;
      ASSERT_TRUE(verdict.truth == 0 || verdict.truth == whole.truth[0]) << n;
      bool present = true;
      for (const Node& node : graph.nodes) {
        const bool past = node.kind == NodeKind::kBack || node.kind == NodeKind::kHistorically || node.kind == NodeKind::kOnce ||
                          node.kind == NodeKind::kSince;
        present = present && (!is_condition(node.kind) || (!past && (node.horizon == 0 || node.horizon == kEndless)));
      }
      if (!present) continue;
      ++judged;
      ASSERT_EQ(verdict.low, whole.robustness[0].low) << n;
      ASSERT_EQ(verdict.high, whole.robustness[0].high) << n;
      ASSERT_EQ(verdict.truth, whole.truth[0]) << n;
    }
  }
  EXPECT_GT(judged, 2000);
}

TEST(Online, SharedFormulasGiveWhatEachGivesAlone) {
  Chance chance(9);
  const Schema schema = two_signals();
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back(chance.formula(2, true));
  Stream all(schema, texts);
  std::vector<Stream> alone;
  for (const std::string& text : texts) alone.emplace_back(schema, std::vector<std::string>{text});
  EXPECT_EQ(Stream(schema, std::vector<std::string>(100, texts[0])).state.size(), alone[0].state.size());
  const std::vector<double> frames = chance.frames(60, true);
  for (std::size_t n = 0; n < 60; ++n) {
    all.step(std::span(frames).subspan(2 * n, 2));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      alone[i].step(std::span(frames).subspan(2 * n, 2));
      ASSERT_EQ(all.verdicts[i].position, alone[i].verdicts[0].position);
      ASSERT_TRUE(same(all.verdicts[i].low, alone[i].verdicts[0].low)) << texts[i];
    }
  }
}

TEST(Online, AStateThatIsSavedAndRestoredGoesOnAsIfNothingHadBeen) {
  Chance chance(10);
  const Schema schema = two_signals();
  for (int i = 0; i < 200; ++i) {
    const std::string text = chance.formula(3, true);
    Stream stream(schema, {text}), other(schema, {text});
    const std::vector<double> frames = chance.frames(60, true);
    const std::size_t cut = chance.rng.below(60);
    for (std::size_t n = 0; n < 60; ++n) {
      if (n == cut) other.state = stream.state;
      stream.step(std::span(frames).subspan(2 * n, 2), static_cast<std::int64_t>(n) * schema.step_ns);
      if (n < cut) continue;
      other.step(std::span(frames).subspan(2 * n, 2), static_cast<std::int64_t>(n) * schema.step_ns);
      ASSERT_EQ(stream.verdicts[0].position, other.verdicts[0].position);
      ASSERT_TRUE(same(stream.verdicts[0].low, other.verdicts[0].low) && same(stream.verdicts[0].high, other.verdicts[0].high)) << text;
    }
    EXPECT_EQ(stream.state, other.state);
  }
}

TEST(Online, MissingSamplesAreUnknown) {
  Chance chance(11);
  const Schema schema = two_signals();
  for (int i = 0; i < 300; ++i) {
    const std::string text = chance.formula(2, true);
    Stream gaps(schema, {text}), told(schema, {text});
    const std::vector<double> frames = chance.frames(80, false);
    const std::vector<double> none(2, kNaN);
    std::int64_t time = 0;
    for (std::size_t n = 0; n < 80; ++n) {
      const std::int64_t missing = n > 0 && chance.rng.below(10) == 0 ? static_cast<std::int64_t>(chance.rng.below(200)) : 0;
      for (std::int64_t k = 0; k < missing; ++k) told.step(none, (time + k) * schema.step_ns);
      time += missing;
      const auto frame = std::span(frames).subspan(2 * n, 2);
      EXPECT_EQ(gaps.step(frame, time * schema.step_ns), missing > 0 ? MonitorStatus::kGap : MonitorStatus::kTaken);
      told.step(frame, time * schema.step_ns);
      ++time;
      ASSERT_EQ(gaps.verdicts[0].position, told.verdicts[0].position);
      // A long gap moves the blocks in which means are added up, so that their last digits may differ.
      ASSERT_TRUE(near(gaps.verdicts[0].low, told.verdicts[0].low) && near(gaps.verdicts[0].high, told.verdicts[0].high))
          << text << " at " << time << " after " << missing;
      if (std::abs(told.verdicts[0].low) > 1e-9) {
        ASSERT_EQ(gaps.verdicts[0].truth, told.verdicts[0].truth) << text;
      }
    }
  }
}

TEST(Online, TimesThatStandStillOrAreUneven) {
  Stream stream(two_signals(), {"historically x > 0"});
  const std::vector<double> good{1, 0}, bad{-1, 0};
  EXPECT_EQ(stream.step(good, 5'000'000'000), MonitorStatus::kTaken);
  EXPECT_EQ(stream.step(bad, 5'000'000'000), MonitorStatus::kOutOfOrder);
  EXPECT_EQ(stream.step(bad, -5'000'000'000), MonitorStatus::kOutOfOrder);
  EXPECT_EQ(stream.verdicts[0].truth, 1);
  EXPECT_EQ(stream.step(good, 6'050'000'000), MonitorStatus::kTaken);  // within a tenth of a step
  EXPECT_EQ(stream.step(good, 7'300'000'000), MonitorStatus::kUneven);
  EXPECT_EQ(stream.verdicts[0].truth, 1);
  EXPECT_EQ(stream.step(good, 9'000'000'007'300'000'000), MonitorStatus::kGap);
  EXPECT_EQ(stream.verdicts[0].truth, 0);
}

TEST(Online, SteppingAllocatesNothing) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  Stream stream(two_signals(),
                {"always[0,100] (x > 0 -> eventually[0,50] y > 0)", "always (x > 0 -> eventually y > 0)", "x since[2,30] y"});
  Chance chance(12);
  const std::vector<double> frames = chance.frames(1000, true);
  const std::size_t before = allocations_so_far();
  for (std::size_t n = 0; n < 1000; ++n) stream.step(std::span(frames).subspan(2 * n, 2));
  EXPECT_EQ(allocations_so_far() - before, 0u);
}

}  // namespace
}  // namespace kizzasi::logic
