// Very many hostile frames through guards of boxes, rates and polytopes; every emitted frame is held against the numbers of its limits by
// arithmetic that stands here. usage: kizzasi_endurance [FRAMES]. Exit code 1 where one lies outside, or where one is called infeasible:
// the limits always leave the frame before.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"

namespace {

using namespace kizzasi;

constexpr std::size_t kFramesOfASet = 1'000'000;

struct Row {
  std::vector<double> factors;
  double most = 0;
};

struct Limits {
  std::vector<double> low, high, rate;  // infinite: none
  std::vector<Row> rows;
  std::int64_t step_ns = 0;

  std::vector<ConstraintText> texts() const {
    std::vector<std::string> all;
    for (std::size_t c = 0; c < low.size(); ++c) {
      all.push_back(fmt::format("{} <= x{} <= {}", low[c], c, high[c]));
      if (std::isfinite(rate[c])) all.push_back(fmt::format("abs(rate(x{}, from = commanded)) <= {}", c, rate[c]));
    }
    for (const Row& row : rows) {
      std::string sum;
      for (std::size_t c = 0; c < row.factors.size(); ++c) sum += fmt::format("{}{} * x{}", c == 0 ? "" : " + ", row.factors[c], c);
      all.push_back(fmt::format("{} <= {}", sum, row.most));
    }
    std::vector<ConstraintText> out;
    for (const std::string& that : all) out.push_back({.name = that, .that = that, .where = "limits"});
    return out;
  }

  bool outside(const std::vector<double>& x, const std::vector<double>& before) const {
    const double seconds = static_cast<double>(step_ns) / 1e9;
    bool out = false;
    for (std::size_t c = 0; c < x.size(); ++c) {
      out = out || !(low[c] <= x[c] && x[c] <= high[c]);
      if (!before.empty() && std::isfinite(rate[c])) out = out || !(std::abs((x[c] - before[c]) / seconds) <= rate[c]);
    }
    for (const Row& row : rows) {
      double sum = row.factors[0] * x[0];
      for (std::size_t c = 1; c < x.size(); ++c) sum += row.factors[c] * x[c];
      out = out || !(sum <= row.most);
    }
    return out;
  }
};

double few_digits(Rng& rng, double spread) { return std::round(100 * spread * (2 * rng.uniform() - 1)) / 100; }

// Three sets of four are boxes and rates alone; the fourth has a polytope around a point of its own.
Limits random_limits(Rng& rng) {
  Limits out;
  const std::size_t n = 1 + rng.below(4);
  std::vector<double> inside(n);
  for (double& x : inside) x = few_digits(rng, 5);
  for (std::size_t c = 0; c < n; ++c) {
    out.low.push_back(inside[c] - 0.1 - std::abs(few_digits(rng, 3)));
    out.high.push_back(inside[c] + 0.1 + std::abs(few_digits(rng, 3)));
    out.rate.push_back(rng.below(3) == 0 ? std::numeric_limits<double>::infinity() : 0.1 + std::abs(few_digits(rng, 4)));
  }
  constexpr std::int64_t kSteps[] = {1'000'000'000, 10'000'000, 40'000, 333'333'333};
  out.step_ns = kSteps[rng.below(4)];
  const std::size_t rows = n > 1 && rng.below(4) == 0 ? 1 + rng.below(4) : 0;
  for (std::size_t r = 0; r < rows; ++r) {
    Row row;
    double at = 0;
    for (std::size_t c = 0; c < n; ++c) {
      row.factors.push_back(few_digits(rng, 2));
      at += row.factors[c] * inside[c];
    }
    if (row.factors[0] == 0) row.factors[0] = 1, at += inside[0];
    row.most = at + 0.1 + std::abs(few_digits(rng, 2));
    out.rows.push_back(std::move(row));
  }
  return out;
}

double hostile(Rng& rng, double middle, double& ramp) {
  const std::uint64_t bits = rng.bits();
  switch (bits % 64) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return bits & 128 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    case 2:
      return bits & 128 ? 1e30 : -1e30;
    case 3:
      return 5e-324 * static_cast<double>(bits >> 60);
    case 4:
      return ramp += 0.25;
    default:
      return middle + 12 * (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5);
  }
}

}  // namespace

int main(int count, char** words) {
  const auto wanted = static_cast<std::size_t>(count > 1 ? std::strtoull(words[1], nullptr, 10) : 10'000'000);
  std::size_t frames = 0, sets = 0, outside = 0, infeasible = 0, moved = 0;
  for (std::uint64_t seed = 1; frames < wanted; ++seed) {
    Rng rng(seed);
    const Limits limits = random_limits(rng);
    const std::size_t n = limits.low.size();
    Schema schema;
    for (std::size_t c = 0; c < n; ++c) schema.channels.push_back({fmt::format("x{}", c), "", Role::kTarget});
    schema.step_ns = limits.step_ns;
    const auto guard = compile_guard(schema, limits.texts(), {});
    if (!guard) {
      std::fprintf(stderr, "%s\n", guard.error().text().c_str());
      return 1;
    }
    ++sets;
    std::vector<std::byte> state((*guard)->state_bytes());
    std::vector<double> scratch((*guard)->scratch_doubles()), x(n), before;
    GuardReport report;
    (*guard)->prepare(report);
    (*guard)->reset(state);
    double ramp = 0;
    std::int64_t time = 0;
    const std::size_t end = std::min(wanted, frames + kFramesOfASet);
    for (; frames < end; ++frames, time += limits.step_ns) {
      for (std::size_t c = 0; c < n; ++c) x[c] = hostile(rng, (limits.low[c] + limits.high[c]) / 2, ramp);
      const GuardStatus status = (*guard)->propose(state, time, x, report, scratch);
      (*guard)->accept(state, time, {}, x);
      infeasible += status == GuardStatus::kInfeasible ? 1 : 0;
      moved += status == GuardStatus::kMoved ? 1 : 0;
      if (limits.outside(x, before)) {
        if (++outside < 5)
          std::fprintf(stderr, "seed %llu, frame at %lld ns lies outside\n", static_cast<unsigned long long>(seed),
                       static_cast<long long>(time));
      }
      before = x;
    }
  }
  std::printf("%zu frames under %zu sets of boxes, rates and polytopes: %zu outside, %zu called infeasible, %zu moved\n", frames, sets,
              outside, infeasible, moved);
  return outside + infeasible > 0 ? 1 : 0;
}
