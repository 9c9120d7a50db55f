// Nothing that leaves is outside its limits: tested on the double and on the text, as the user would test them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t wanted_cases() {
  const char* text = std::getenv("KIZZASI_CASES");
  return text == nullptr ? 100'000 : static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

// The limits of one stream as numbers, so that the test can evaluate them without the code under test.
struct Limits {
  struct Channel {
    double low = -kInfinity, high = kInfinity, rate = kInfinity;
    bool strict = false;
  };
  enum class Sum { kNone, kEqual, kAtMost, kAtLeast, kBand };
  std::vector<Channel> channels;
  Sum sum = Sum::kNone;
  std::vector<double> factors;
  double total = 0, band = 0, dt = 1;
  int decimals = -1;
};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : rng_(seed) {}

  std::uint64_t below(std::uint64_t n) { return rng_.below(n); }
  double uniform() { return rng_.uniform(); }

  // A number as people write it: few decimals, or all of them, seldom very large or small.
  double number() {
    const double x = 20 * uniform() - 10;
    switch (below(8)) {
      case 0:
        return std::round(x);
      case 1:
        return x;
      case 2:
        return x * std::pow(10.0, static_cast<double>(below(9)));
      default:
        return std::round(x * 10) / 10;
    }
  }

  // What a broken model may say.
  double wild() {
    switch (below(16)) {
      case 0:
        return std::nan("");
      case 1:
        return kInfinity;
      case 2:
        return -kInfinity;
      case 3:
        return 1.7976931348623157e308 * (below(2) == 0 ? 1 : -1);
      case 4:
        return 5e-324 * static_cast<double>(below(100)) * (below(2) == 0 ? 1 : -1);
      case 5:
        return number() * std::pow(10.0, 300 * uniform() - 150);
      default:
        return number() * (1 + 3 * uniform());
    }
  }

  Limits limits() {
    Limits l;
    l.decimals = below(2) == 0 ? -1 : static_cast<int>(below(7));
    const std::size_t n = 1 + below(4);
    const double step = l.decimals < 0 ? 0 : std::pow(10.0, -l.decimals);
    constexpr double kSteps[] = {1, 0.1, 0.01, 0.005, 0.25, 60, 1.0 / 3};
    l.dt = kSteps[below(7)];
    // Every stream has a point that obeys, so that nothing needs to be given up.
    std::vector<double> inside(n);
    for (double& x : inside) x = l.decimals < 0 ? number() : std::round(number() / step) * step;
    for (std::size_t c = 0; c < n; ++c) {
      Limits::Channel channel;
      channel.strict = below(4) == 0;
      if (below(3) != 0) channel.low = inside[c] - std::abs(number()) - 2 * step - (channel.strict ? 1e-3 : 0);
      if (below(3) != 0) channel.high = inside[c] + std::abs(number()) + 2 * step + (channel.strict ? 1e-3 : 0);
      if (below(2) == 0) channel.rate = std::abs(number()) + 0.1;
      l.channels.push_back(channel);
    }
    if (n > 1) l.sum = static_cast<Limits::Sum>(below(5));
    if (l.sum == Limits::Sum::kEqual && l.decimals >= 0) l.sum = Limits::Sum::kAtMost;
    if (l.sum == Limits::Sum::kNone) return l;
    double sum = 0, span = 0;
    for (std::size_t c = 0; c < n; ++c) {
      const double factor = below(2) == 0 ? (below(2) == 0 ? 1 : -1) : std::round(number() * 4) / 4;
      l.factors.push_back(factor == 0 ? 1 : factor);
      sum += l.factors[c] * inside[c];
      span += std::abs(l.factors[c]) * step;
    }
    l.total = sum;
    l.band = span + (below(2) == 0 ? 1e-3 : std::abs(number()));
    if (l.sum == Limits::Sum::kAtMost) l.total += span;
    if (l.sum == Limits::Sum::kAtLeast) l.total -= span;
    return l;
  }

 private:
  Rng rng_;
};

std::vector<ConstraintText> written(const Limits& l) {
  std::vector<ConstraintText> texts;
  const auto add = [&](const std::string& that) { texts.push_back({.name = that, .that = that, .where = "test"}); };
  for (std::size_t c = 0; c < l.channels.size(); ++c) {
    const Limits::Channel& channel = l.channels[c];
    const char* sign = channel.strict ? "<" : "<=";
    if (std::isfinite(channel.low) && std::isfinite(channel.high)) {
      add(fmt::format("{} {} x{} {} {}", channel.low, sign, c, sign, channel.high));
    } else if (std::isfinite(channel.low)) {
      add(fmt::format("x{} {} {}", c, channel.strict ? ">" : ">=", channel.low));
    } else if (std::isfinite(channel.high)) {
      add(fmt::format("x{} {} {}", c, sign, channel.high));
    }
    if (std::isfinite(channel.rate)) add(fmt::format("abs(rate(x{}, from = commanded)) <= {}", c, channel.rate));
  }
  if (l.sum == Limits::Sum::kNone) return texts;
  std::string sum;
  for (std::size_t c = 0; c < l.factors.size(); ++c) sum.append(c == 0 ? "" : " + ").append(fmt::format("{} * x{}", l.factors[c], c));
  if (l.sum == Limits::Sum::kEqual) add(fmt::format("{} == {}", sum, l.total));
  if (l.sum == Limits::Sum::kAtMost) add(fmt::format("{} <= {}", sum, l.total));
  if (l.sum == Limits::Sum::kAtLeast) add(fmt::format("{} >= {}", sum, l.total));
  if (l.sum == Limits::Sum::kBand) add(fmt::format("{} == {} +- {}", sum, l.total, l.band));
  return texts;
}

// The user's own test, written out.
std::string broken(const Limits& l, const std::vector<double>& x, const std::optional<std::vector<double>>& before) {
  for (std::size_t c = 0; c < x.size(); ++c) {
    const Limits::Channel& channel = l.channels[c];
    if (!std::isfinite(x[c])) return fmt::format("x{} = {}", c, x[c]);
    const bool in = channel.strict ? channel.low < x[c] && x[c] < channel.high : channel.low <= x[c] && x[c] <= channel.high;
    if (!in) return fmt::format("x{} = {} outside [{}, {}]", c, x[c], channel.low, channel.high);
    if (before && !(std::abs((x[c] - (*before)[c]) / l.dt) <= channel.rate)) {
      return fmt::format("x{} = {} after {}: rate {} above {}", c, x[c], (*before)[c], std::abs((x[c] - (*before)[c]) / l.dt),
                         channel.rate);
    }
  }
  if (l.sum == Limits::Sum::kNone) return "";
  double sum = 0, size = std::abs(l.total);
  for (std::size_t c = 0; c < x.size(); ++c) {
    sum = c == 0 ? l.factors[c] * x[c] : sum + l.factors[c] * x[c];
    size += std::abs(l.factors[c] * x[c]);
  }
  const bool holds = l.sum == Limits::Sum::kEqual     ? std::abs(sum - l.total) <= 8 * std::numeric_limits<double>::epsilon() * size
                     : l.sum == Limits::Sum::kAtMost  ? sum <= l.total
                     : l.sum == Limits::Sum::kAtLeast ? sum >= l.total
                                                      : std::abs(sum - l.total) <= l.band;
  return holds && (l.sum != Limits::Sum::kEqual || std::isfinite(sum)) ? "" : fmt::format("sum {:.17g} against {:.17g}", sum, l.total);
}

// True where a band is narrower than the doubles around its terms: then no double value may lie in it, and that must be said.
bool too_fine(const Limits& l, const std::vector<double>& x) {
  double size = std::abs(l.total);
  for (std::size_t c = 0; c < l.factors.size(); ++c) size += std::abs(l.factors[c] * x[c]);
  return l.sum == Limits::Sum::kBand && l.band < 4 * std::numeric_limits<double>::epsilon() * size;
}

Schema schema_of(const Limits& l) {
  Schema schema;
  for (std::size_t c = 0; c < l.channels.size(); ++c) schema.channels.push_back({fmt::format("x{}", c), "", Role::kTarget});
  schema.step_ns = static_cast<std::int64_t>(std::llround(l.dt * 1e9));
  return schema;
}

TEST(Emitted, NothingIsOutsideItsLimitsAsDoubleOrAsText) {
  Maker make(20260817);
  const std::size_t cases = wanted_cases();
  std::size_t emitted = 0, streams = 0;
  std::size_t outside = 0, unreachable = 0;
  while (emitted < cases) {
    Limits l = make.limits();
    const Schema schema = schema_of(l);
    l.dt = static_cast<double>(schema.step_ns) / 1e9;
    const std::vector<ConstraintText> texts = written(l);
    auto guard = compile_guard(schema, texts, {l.decimals});
    ASSERT_TRUE(guard) << guard.error().text();
    const Guard& g = **guard;
    ++streams;
    std::vector<std::byte> state(g.state_bytes());
    std::vector<double> scratch(g.scratch_doubles());
    GuardReport report;
    g.prepare(report);
    g.reset(state);
    std::optional<std::vector<double>> before;
    for (std::int64_t t = 0; t < 25; ++t) {
      std::vector<double> x(l.channels.size());
      for (double& value : x) value = make.wild();
      const std::vector<double> raw = x;
      const GuardStatus status = g.propose(state, t * schema.step_ns, x, report, scratch);
      std::vector<double> printed;
      for (const double value : x) {
        const std::string text = l.decimals < 0 ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, l.decimals);
        printed.push_back(std::strtod(text.c_str(), nullptr));
      }
      if (too_fine(l, x) && status == GuardStatus::kInfeasible) {
        ++unreachable;
        break;
      }
      for (const std::string& problem : {broken(l, x, before), broken(l, printed, before)}) {
        if (problem.empty()) continue;
        ++outside;
        std::string all;
        for (const ConstraintText& text : texts) all.append("  ").append(text.that).append("\n");
        ADD_FAILURE() << problem << "\nraw " << fmt::format("{}", fmt::join(raw, ", ")) << "\nbefore "
                      << (before ? fmt::format("{}", fmt::join(*before, ", ")) : "-") << " dt " << l.dt << "\nemitted "
                      << fmt::format("{}", fmt::join(x, ", ")) << "\ndecimals " << l.decimals << " status " << to_string(status) << "\n"
                      << all;
      }
      ASSERT_LE(outside, 4u);
      // Once obeyed, nothing moves again.
      std::vector<double> again = x;
      const GuardStatus second = g.propose(state, t * schema.step_ns, again, report, scratch);
      EXPECT_EQ(second, GuardStatus::kClean);
      ASSERT_EQ(again, x);
      emitted += x.size();
      g.accept(state, t * schema.step_ns, {}, x);
      before = x;
    }
  }
  EXPECT_EQ(outside, 0u);
  EXPECT_LE(unreachable, emitted / 100'000);
  std::printf("%zu values emitted under %zu sets of limits: %zu outside as double or as text\n", emitted, streams, outside);
}

}  // namespace
}  // namespace kizzasi
