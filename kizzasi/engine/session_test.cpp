#include "kizzasi/engine/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/decode/correction.h"
#include "kizzasi/engine/random_model_test.h"

namespace kizzasi {
namespace {

struct Case {
  std::shared_ptr<const Predictor> predictor;
  Series series;
  std::string text;
};

Case random_case(std::uint64_t seed, std::size_t most_rows = 60) {
  Rng rng(seed);
  ModelFile model = random_model(rng);
  Series series = random_series(model, 2 + rng.below(most_rows), 0.05, rng);
  const std::string& name = model.schema.channels[model.schema.with_role(Role::kTarget)[0]].name;
  std::vector<ConstraintText> limits;
  if (seed % 2 == 0) limits = {{"floor", name + " >= 0"}};
  std::string text = text_of(model);
  return {predictor_of(std::move(model), limits), std::move(series), std::move(text)};
}

std::vector<double> known_after(const Case& c, std::size_t row) {
  std::vector<double> known;
  for (const std::size_t channel : c.series.schema.with_role(Role::kKnownFuture)) {
    known.push_back(row + 1 < c.series.rows() ? c.series.at(row + 1, channel) : std::nan(""));
  }
  return known;
}

struct Seen {
  std::vector<std::uint64_t> value, raw, quantiles;
  std::int64_t time_ns;
  StepStatus status;
  bool operator==(const Seen&) const = default;
};
Seen seen(const Prediction& p) { return {bits(p.value), bits(p.raw), bits(p.quantiles), p.time_ns, p.status}; }

std::vector<Seen> stepped(Session& session, const Case& c, std::size_t begin, std::size_t end) {
  std::vector<Seen> all;
  for (std::size_t r = begin; r < end; ++r) all.push_back(seen(session.step(c.series.frame(r), known_after(c, r))));
  return all;
}

TEST(Session, StepEqualsRunForAnySplit) {
  for (std::uint64_t seed = 0; seed < cases(150); ++seed) {
    const Case c = random_case(seed);
    SCOPED_TRACE(c.text);
    Session one = Session::prepare(c.predictor), other = Session::prepare(c.predictor);
    const auto whole = stepped(one, c, 0, c.series.rows());
    std::vector<Seen> parts;
    Rng rng(seed + 1);
    for (std::size_t begin = 0; begin < c.series.rows();) {
      const std::size_t end = begin + 1 + rng.below(c.series.rows() - begin);
      PredictionBlock block;
      other.run(c.series, begin, end, block);
      const std::size_t wide = block.levels.size() * block.targets;
      for (std::size_t r = 0; r < block.rows; ++r) {
        parts.push_back({bits(std::span(block.value).subspan(r * block.targets, block.targets)),
                         bits(std::span(block.raw).subspan(r * block.targets, block.targets)),
                         bits(std::span(block.quantiles).subspan(r * wide, wide)), block.time_ns[r], block.status[r]});
      }
      begin = end;
    }
    ASSERT_EQ(parts, whole);
    ASSERT_TRUE(std::ranges::equal(one.state(), other.state()));
  }
  std::printf("%zu models: step equals run for any split\n", cases(150));
}

// --- Monitors
// -----------------------------------------------------------------------------------------------------------------------------

std::vector<ConstraintText> formulas_over(const Schema& schema, Rng& rng) {
  const std::string x = schema.channels[rng.below(schema.size())].name, y = schema.channels[rng.below(schema.size())].name;
  std::vector<ConstraintText> out;
  for (const std::string& that : {"always (" + x + " >= 0 -> eventually[0, 4] " + y + " >= 0.3)", "historically[0, 3] " + x + " <= 1",
                                  "mean(" + x + ", 5 [samples]) <= 0.5", "once " + y + " > 2", x + " - prev(" + x + ", 1) <= 0.7"}) {
    out.push_back({.name = that, .that = that, .where = "test"});
  }
  return out;
}

// Equal but for the positions that no verdict has yet.
void same_verdict(const MonitorVerdict& a, const MonitorVerdict& b) {
  ASSERT_EQ(a.position, b.position);
  ASSERT_EQ(a.truth, b.truth);
  ASSERT_EQ(a.final, b.final);
  ASSERT_EQ(bits(std::vector{a.low, a.high}), bits(std::vector{b.low, b.high}));
}

TEST(Session, MonitorsSeeWhatWasMeasuredAndMoveNothing) {
  for (std::uint64_t seed = 0; seed < cases(100); ++seed) {
    Rng rng(seed + 77);
    ModelFile model = random_model(rng);
    const Series series = random_series(model, 40, 0.1, rng);
    const ModelFile copy = model;
    PredictorOptions options;
    options.monitors = formulas_over(model.schema, rng);
    const auto watched = predictor_of(std::move(model), {}, options), plain = predictor_of(copy);
    const auto monitor = Monitor::create(copy.schema, options.monitors);
    ASSERT_TRUE(monitor) << monitor.error().text();
    AlignedVector<std::byte> state((*monitor)->state_bytes());
    std::vector<double> scratch((*monitor)->scratch_doubles());
    std::vector<MonitorVerdict> verdicts(options.monitors.size());
    (*monitor)->reset(state);
    Session one = Session::prepare(watched), other = Session::prepare(plain), saved = one;
    for (std::size_t r = 0; r < series.rows(); ++r) {
      const Frame frame = series.frame(r);
      ASSERT_EQ(seen(one.step(frame)), seen(other.step(frame)));
      // The same frames, with what the session takes for no measurement left out.
      std::vector<double> row(frame.values.begin(), frame.values.end());
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (!(std::abs(copy.normalizer.normalise(row[c], c)) <= 1e6)) row[c] = std::nan("");
      }
      (*monitor)->step(state, series.time_ns(r), row, verdicts, scratch);
      for (std::size_t f = 0; f < verdicts.size(); ++f) same_verdict(one.verdicts()[f], verdicts[f]);
      if (r == series.rows() / 2) {
        saved = Session::prepare(watched);
        ASSERT_TRUE(saved.restore(one.snapshot()));
        ASSERT_EQ(saved.verdicts()[0].position, -1);
      }
      if (r > series.rows() / 2) {
        saved.step(frame);
        for (std::size_t f = 0; f < verdicts.size(); ++f) same_verdict(saved.verdicts()[f], one.verdicts()[f]);
        ASSERT_TRUE(std::ranges::equal(saved.state(), one.state()));
      }
    }
    // A copy goes on by itself; a forecast changes nothing; another set of formulas is another predictor.
    Session copied = one;
    Forecast ahead;
    ForecastRequest request;
    request.horizon = 3;
    request.observed_plan = ObservedPlan::kHold;
    (void)one.forecast(request, ahead);
    ASSERT_TRUE(std::ranges::equal(copied.state(), one.state()));
    EXPECT_FALSE(other.restore(one.snapshot()));
    one.reset();
    EXPECT_EQ(one.verdicts()[0].position, -1);
  }
}

TEST(Session, MonitorsCountAFrameAsOneSampleWhateverTheClockDoes) {
  Rng rng(5);
  ModelFile model = random_model(rng);
  while (model.schema.step_ns == 0) model = random_model(rng);
  const std::int64_t step = model.schema.step_ns;
  PredictorOptions options;
  const std::string x = model.schema.channels[model.schema.with_role(Role::kTarget)[0]].name;
  options.monitors = {{.name = "m", .that = x + " <= 1e9", .where = "test"}};
  options.max_gap = 5;
  const std::size_t channels = model.schema.size();
  const auto predictor = predictor_of(std::move(model), {}, options);
  Session session = Session::prepare(predictor);
  const std::vector<double> values(channels, 0.0);
  std::int64_t time = 0, expected = 0;
  for (int i = 0; i < 400; ++i) {
    session.step({time, values});
    ASSERT_EQ(session.verdicts()[0].position, expected) << i;
    ASSERT_GT(session.verdicts()[0].truth, 0);
    const std::int64_t steps = 1 + static_cast<std::int64_t>(rng.below(10) == 0 ? rng.below(4) : 0);  // gaps are samples, unknown ones
    const std::uint64_t before = session.frames();
    time += steps * step + static_cast<std::int64_t>((rng.uniform() - 0.5) * 0.4 * static_cast<double>(step));
    Session ahead = session;
    ahead.step({time, values});
    expected += static_cast<std::int64_t>(ahead.frames() - before);
  }
  session.step({time + 100 * step, values});  // the stream begins anew
  EXPECT_EQ(session.verdicts()[0].position, 0);
  session.step({time, values});  // late: nothing was taken
  EXPECT_EQ(session.verdicts()[0].position, 0);
}

// What a prefill leaves is what stepping leaves, but for what only predicting writes.
TEST(Session, PrefillEqualsStepForTheModel) {
  for (std::uint64_t seed = 0; seed < cases(150); ++seed) {
    Case c = random_case(seed, 200);
    SCOPED_TRACE(c.text);
    Session one = Session::prepare(c.predictor), other = Session::prepare(c.predictor);
    stepped(one, c, 0, c.series.rows());
    if (one.report().restarts > 0) continue;  // a prefill does not look at what the model says
    const std::size_t middle = c.series.rows() / 3;
    other.prefill(c.series, 0, middle);
    other.prefill(c.series, middle, c.series.rows());
    const std::size_t bytes = c.predictor->layout().model_bytes;
    ASSERT_TRUE(std::ranges::equal(one.state().first(bytes), other.state().first(bytes)));
    EXPECT_EQ(one.frames(), other.frames());
    EXPECT_EQ(one.last_time_ns(), other.last_time_ns());
  }
}

TEST(Session, InterleavedSessionsEqualSeparateOnes) {
  for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
    const Case a = random_case(seed);
    Case b = a;
    Rng rng(seed + 77);
    for (double& v : b.series.values) v += 0.01 * rng.normal();
    Session alone_a = Session::prepare(a.predictor), alone_b = Session::prepare(a.predictor);
    const auto separate_a = stepped(alone_a, a, 0, a.series.rows()), separate_b = stepped(alone_b, b, 0, b.series.rows());
    Session together_a = Session::prepare(a.predictor), together_b = Session::prepare(a.predictor);
    for (std::size_t r = 0; r < a.series.rows(); ++r) {
      ASSERT_EQ(stepped(together_a, a, r, r + 1)[0], separate_a[r]) << a.text;
      ASSERT_EQ(stepped(together_b, b, r, r + 1)[0], separate_b[r]) << a.text;
    }
  }
}

TEST(Session, RestoredAndForkedEqualUninterrupted) {
  for (std::uint64_t seed = 0; seed < cases(100); ++seed) {
    const Case c = random_case(seed);
    SCOPED_TRACE(c.text);
    const std::size_t middle = c.series.rows() / 2;
    Session whole = Session::prepare(c.predictor);
    stepped(whole, c, 0, middle);
    const std::vector<std::byte> saved = whole.snapshot();
    Session fork = whole;
    const auto rest = stepped(whole, c, middle, c.series.rows());

    Session fresh = Session::prepare(c.predictor);
    ASSERT_TRUE(fresh.restore(saved));
    EXPECT_EQ(stepped(fresh, c, middle, c.series.rows()), rest);
    EXPECT_TRUE(std::ranges::equal(fresh.state(), whole.state()));
    EXPECT_EQ(stepped(fork, c, middle, c.series.rows()), rest);
    // Rolled back.
    ASSERT_TRUE(whole.restore(saved));
    EXPECT_EQ(stepped(whole, c, middle, c.series.rows()), rest);
    // Begun anew.
    whole.reset();
    Session first = Session::prepare(c.predictor);
    EXPECT_EQ(stepped(whole, c, 0, c.series.rows()), stepped(first, c, 0, c.series.rows()));
  }
}

TEST(Session, ACopyLooksAtItsOwnPrediction) {
  const Case c = random_case(4);
  Session one = Session::prepare(c.predictor);
  const Prediction& shown = one.step(c.series.frame(0));
  Session copy = one;
  const auto before = bits(shown.value);
  copy.step(c.series.frame(1));
  EXPECT_EQ(bits(shown.value), before);
  Session moved = std::move(copy);
  EXPECT_TRUE(std::isfinite(moved.step(c.series.frame(1)).value[0]));
}

TEST(Session, AnotherPredictorsSnapshotIsRefused) {
  Rng rng(5);
  const ModelFile model = random_model(rng);
  ModelFile other = model;
  other.weights.begin()->second.values[0] += 1;
  Session a = Session::prepare(predictor_of(model)), b = Session::prepare(predictor_of(other));
  const auto before = b.snapshot();
  EXPECT_FALSE(b.restore(a.state()));
  EXPECT_FALSE(b.restore(std::span(before).first(before.size() - 1)));
  EXPECT_EQ(b.snapshot(), before);
}

// A model whose numbers can be told by hand: a short-cut on the last value of one channel with a Gaussian head.
ModelFile by_hand(double weight, std::int64_t step_ns = 1'000'000'000) {
  ModelFile m;
  m.config.parts = "shortcut";
  m.config.recent = 1;
  m.config.head.kind = "gaussian";
  m.schema = {{{"x", "", Role::kTarget}}, step_ns, ""};
  m.normalizer = Normalizer({10}, {2});
  still(m);
  m.weights.at("shortcut.recent.weight").values[0] = static_cast<float>(weight);
  return m;
}

double fed(Session& s, double value, std::int64_t time_s) {
  const std::vector<double> values{value};
  return s.step({time_s * 1'000'000'000, values}).value[0];
}

TEST(Session, PredictsWhatTheModelSays) {
  Session s = Session::prepare(predictor_of(by_hand(0.5)));
  EXPECT_DOUBLE_EQ(fed(s, 14, 0), 12);  // (14 - 10) / 2 * 0.5 * 2 + 10
  const Prediction& p = s.step({1'000'000'000, std::vector<double>{6}});
  EXPECT_DOUBLE_EQ(p.value[0], 8);
  EXPECT_EQ(p.time_ns, 2'000'000'000);
  EXPECT_EQ(p.step, 2u);
  // softplus(0) + 1e-4 = 0.69325 scales; 97.5 % stands 1.95996 of them out.
  EXPECT_NEAR(p.quantiles[p.levels.size() - 1], 8 + 2 * (std::log(2.0) + 1e-4) * 1.959963984540054, 1e-6);
  EXPECT_NEAR(p.quantiles[p.levels.size() / 2], 8, 1e-12);
}

TEST(Session, AMissingOrUnusableValueKeepsTheLastOneAndIsCounted) {
  Session s = Session::prepare(predictor_of(by_hand(1)));
  EXPECT_DOUBLE_EQ(fed(s, 14, 0), 14);
  EXPECT_DOUBLE_EQ(fed(s, std::nan(""), 1), 14);
  EXPECT_DOUBLE_EQ(fed(s, INFINITY, 2), 14);
  EXPECT_DOUBLE_EQ(fed(s, 1e12, 3), 14);
  EXPECT_EQ(s.report().missing_values, 1u);
  EXPECT_EQ(s.report().unusable_values, 2u);
  EXPECT_EQ(s.report().not_finite, 0u);
}

TEST(Session, GapsAreSteppedLateFramesAreNotTakenAndALongGapBeginsAnew) {
  PredictorOptions options;
  options.max_gap = 5;
  ModelFile model = by_hand(1);
  model.config.recent = 3;  // the value three frames ago
  still(model);
  model.weights.at("shortcut.recent.weight").values[2] = 1;
  Session s = Session::prepare(predictor_of(model, {}, options));
  fed(s, 20, 0);
  fed(s, 22, 1);
  EXPECT_DOUBLE_EQ(fed(s, 24, 4), 22);  // frames 2 and 3 are missing and hold 22
  EXPECT_EQ(s.report().gap_frames, 2u);
  EXPECT_EQ(s.frames(), 5u);
  EXPECT_EQ(s.step({3'000'000'000, std::vector<double>{99}}).status, StepStatus::kLate);
  EXPECT_DOUBLE_EQ(s.step({4'000'000'000, std::vector<double>{99}}).value[0], 22);
  EXPECT_EQ(s.report().late_frames, 2u);
  EXPECT_EQ(s.frames(), 5u);
  EXPECT_DOUBLE_EQ(fed(s, 30, 11), 10);  // six missing: the past is forgotten
  EXPECT_EQ(s.report().restarts, 1u);
  EXPECT_EQ(s.report().gap_frames, 2u);
}

TEST(Session, JitterIsNoGapAndAClockThatDriftsIsFollowed) {
  Session s = Session::prepare(predictor_of(by_hand(1, 5'000'000)));
  Rng rng(3);
  const std::vector<double> values{12};
  for (std::int64_t i = 0; i < 5000; ++i) s.step({i * 5'000'000 + static_cast<std::int64_t>(rng.below(2'400'000)) - 1'200'000, values});
  EXPECT_EQ(s.report().gap_frames, 0u);
  EXPECT_EQ(s.report().late_frames, 0u);
  s.reset();
  for (std::int64_t i = 0; i < 5000; ++i) s.step({i * 5'005'000, values});  // a tenth of a per cent slow
  EXPECT_EQ(s.report().gap_frames, 0u);
  s.reset();
  for (std::int64_t i = 0; i < 5000; ++i) s.step({i * 4'995'000, values});
  EXPECT_EQ(s.report().gap_frames, 0u);
  EXPECT_EQ(s.frames(), 5000u);
}

TEST(Session, WhatWouldSpoilTheModelForGoodIsHealed) {
  ModelFile model = by_hand(1);
  model.weights.at("head.bias").values[0] = 3e38f;
  model.weights.at("shortcut.recent.weight").values[0] = 3e38f;
  Session s = Session::prepare(predictor_of(model));
  const std::vector<double> values{14};
  const Prediction& p = s.step({0, values});
  EXPECT_EQ(p.status, StepStatus::kNotFinite);
  EXPECT_EQ(p.value[0], 14);
  EXPECT_EQ(s.report().not_finite, 1u);
  for (const double q : p.quantiles) EXPECT_EQ(q, 14);
}

// Adaptive conformal inference: over a long stretch the share of truths below each quantile tends to its level, however wrong the model.
TEST(Session, AdaptedQuantilesCoverInTheLongRun) {
  for (const double spread : {0.2, 1.4, 5.0}) {
    ModelFile model = by_hand(0);
    model.calibration = {{0.1, 0.5, 0.9}, 1, 1, {1, 1, 1}, {0, 0, 0}, 1, 0.02};
    Session s = Session::prepare(predictor_of(model));
    Rng rng(11);
    const int n = 20000;
    std::vector<double> below(3);
    std::vector<double> quantiles(3, std::nan(""));
    for (int i = 0; i < n; ++i) {
      const std::vector<double> values{10 + spread * rng.normal()};
      for (std::size_t l = 0; l < 3; ++l) below[l] += values[0] <= quantiles[l] ? 1 : 0;
      const Prediction& p = s.step({i * 1'000'000'000LL, values});
      std::ranges::copy(p.quantiles, quantiles.begin());
    }
    EXPECT_NEAR(below[0] / n, 0.1, 0.01) << spread;
    EXPECT_NEAR(below[2] / n, 0.9, 0.01) << spread;
  }
}

TEST(Session, RejectingLeavesTheStateAsItWas) {
  ModelFile model = by_hand(1);
  Session s = Session::prepare(predictor_of(model, {{"top", "-1e9 <= x <= 15", "reject"}}));
  fed(s, 14, 0);
  const auto before = s.snapshot();
  const std::vector<double> values{16};
  const Prediction& p = s.step({1'000'000'000, values});
  EXPECT_EQ(p.status, StepStatus::kRejected);
  EXPECT_TRUE(std::isnan(p.value[0])) << "there is no value";
  EXPECT_EQ(s.report().rejected, 1u);
  const auto after = s.snapshot();
  const std::size_t counts = s.predictor().layout().counts_at;
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(counts), before.begin()));
  EXPECT_EQ(s.frames(), 1u);
  EXPECT_DOUBLE_EQ(fed(s, 13, 2), 13);
}

TEST(Session, LimitsHoldDownToTheSmallestNumbers) {
  // 10 + 2 * (-5) = 0 exactly; the limit is the smallest double above 0, which a flushed comparison would take for 0.
  ModelFile model = by_hand(0);
  model.weights.at("head.bias").values[0] = -5;
  Session s = Session::prepare(predictor_of(model, {{"above", "x >= 4.9406564584124654e-324"}}));
  EXPECT_GE(fed(s, 10, 0), 4.9406564584124654e-324);
  EXPECT_NE(fed(s, 10, 1), 0.0);
}

}  // namespace
}  // namespace kizzasi
