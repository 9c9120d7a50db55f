#include "kizzasi/logic/rows.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/logic/nearest.h"

namespace kizzasi::logic {
namespace {

constexpr double kEps = 2.220446049250313e-16;
// What is broken by more than this share of all that was added up is broken in earnest, not by rounding.
constexpr double kRounding = 1e-6;
// Members beyond this over (m max |a|) are taken as that: past it the sum itself could not be evaluated in double. Where the sum must be
// finer than such numbers can tell apart, the square root of it is tried, and so on.
constexpr double kLargest = 1e300;

double clamped(double value, double low, double high) { return value < low ? low : (value > high ? high : value); }

// The arrays of one group, over its members.
struct Members {
  std::span<double> y, low, high, a, w, x, asked, breaks;

  Members(std::size_t m, std::span<double> scratch)
      : y(scratch.subspan(0, m)),
        low(scratch.subspan(m, m)),
        high(scratch.subspan(2 * m, m)),
        a(scratch.subspan(3 * m, m)),
        w(scratch.subspan(4 * m, m)),
        x(scratch.subspan(5 * m, m)),
        asked(scratch.subspan(6 * m, m)),
        breaks(scratch.subspan(7 * m, 2 * m)) {}

  // What direction . x reaches inside the box, leaving out one member (or none: pass the size).
  Range reach(std::size_t without) const {
    Range sum{0, 0};
    for (std::size_t j = 0; j < a.size(); ++j) {
      if (j == without || a[j] == 0) continue;
      sum.low += a[j] * (a[j] > 0 ? low[j] : high[j]);
      sum.high += a[j] * (a[j] > 0 ? high[j] : low[j]);
    }
    return sum;
  }
};

// The values of member j for which the others can still bring direction . x into `sum`.
Range allowance(const Members& g, std::size_t j, const Range& sum) {
  if (g.a[j] == 0) return {};
  const Range others = g.reach(j);
  const double one = (sum.low - others.high) / g.a[j], two = (sum.high - others.low) / g.a[j];
  Range range{std::min(one, two), std::max(one, two)};
  if (std::isnan(one) || std::isnan(two)) range = {};
  return range;
}

// Obeys the steps of the group in their order: boxes shrink, the sum is bounded, and what comes too late yields.
Range narrowed(const Compiled& c, const Group& group, const Moment& moment, std::span<const double> limits, Members& g) {
  const Grid all;
  Range sum;
  std::fill(g.low.begin(), g.low.end(), -std::numeric_limits<double>::infinity());
  std::fill(g.high.begin(), g.high.end(), std::numeric_limits<double>::infinity());
  for (const Group::Step& step : group.order) {
    if (step.row) {
      const Range reach = g.reach(g.a.size());
      Range within{std::max(sum.low, reach.low), std::min(sum.high, reach.high)};
      const Range by = row_range(c, group.rows[step.index], moment);
      if (group.weight || within.empty()) {  // a soft sum may lie out of reach
        sum = {std::max(sum.low, by.low), std::min(sum.high, by.high)};
        continue;
      }
      narrow(within, by, all);
      sum = within.low == within.high ? within : Range{std::max(sum.low, by.low), std::min(sum.high, by.high)};
      continue;
    }
    const std::size_t j = step.member;
    Range range{g.low[j], g.high[j]};
    const Range allowed = group.weight ? Range{} : allowance(g, j, sum);
    Range both{std::max(range.low, allowed.low), std::min(range.high, allowed.high)};
    const Range by{limits[2 * step.index], limits[2 * step.index + 1]};
    const bool yields = !both.empty() && (by.empty() || by.low > both.high || by.high < both.low);
    narrow(yields ? both : range, by, c.grid);
    if (yields) range = {c.grid.ceil(both.low), c.grid.floor(both.high)};
    if (range.empty()) range.low = range.high = c.grid.nearest(both.low);
    g.low[j] = range.low;
    g.high[j] = range.high;
  }
  return sum;
}

// Projects with all numbers brought near 1 by powers of two, so that nothing overflows. Leaves y, low and high scaled; x is NaN where a
// scaled coordinate did not move.
void project(const Group& group, const Range& sum, Members& g) {
  double top = 0, steepest = 0;
  for (std::size_t j = 0; j < g.a.size(); ++j) {
    for (const double size : {std::abs(g.y[j]), std::abs(g.low[j]), std::abs(g.high[j])}) {
      if (std::isfinite(size)) top = std::max(top, size);
    }
    steepest = std::max(steepest, std::abs(g.a[j]));
  }
  const int slope_shift = steepest > 0 && !(steepest > 0x1p-200 && steepest < 0x1p200) ? -std::ilogb(steepest) : 0;
  for (const double size : {std::abs(sum.low), std::abs(sum.high)}) {
    if (std::isfinite(size) && steepest > 0) top = std::max(top, std::min(std::numeric_limits<double>::max(), size / steepest));
  }
  const int shift = top > 0 && !(top > 0x1p-400 && top < 0x1p400) ? -std::ilogb(top) : 0;
  if (shift != 0) {
    for (const std::span<double> values : {g.y, g.low, g.high}) {
      for (double& value : values) value = std::scalbn(value, shift);
    }
  }
  if (slope_shift != 0) {
    for (double& slope : g.a) slope = std::scalbn(slope, slope_shift);
  }
  SlabProblem problem{g.y, g.low, g.high, g.a, g.w, 0, 0, 0};
  problem.lower = std::scalbn(sum.low, shift + slope_shift);
  problem.upper = std::scalbn(sum.high, shift + slope_shift);
  if (group.weight) problem.softness = std::scalbn(1 / *group.weight, 2 * slope_shift);
  nearest_in_box_and_slab(problem, g.x, g.breaks);
  for (std::size_t j = 0; j < g.a.size(); ++j) {
    if (slope_shift != 0) g.a[j] = std::scalbn(g.a[j], -slope_shift);
    if (shift == 0) continue;
    // What did not move keeps all its digits, also those that the power of two took away.
    const bool moved = g.x[j] != clamped(g.y[j], g.low[j], g.high[j]);
    g.x[j] = moved ? std::scalbn(g.x[j], -shift) : std::numeric_limits<double>::quiet_NaN();
  }
}

// How far direction . x must go so that the first broken row holds; 0: none is broken by rounding.
double missing(const Compiled& c, const Group& group, const Moment& moment, double steps, int attempt) {
  for (const Row& row : group.rows) {
    const Atom& atom = c.atoms[row.atom];
    if (atom.holds(moment) != Truth::kFalse) continue;
    for (std::size_t h = 0; h < atom.halves.size(); ++h) {
      const Half& half = atom.halves[h];
      if (atom.half_holds(h, true, moment) && (atom.comparison != Comparison::kEqual || atom.half_holds(h, false, moment))) continue;
      const double excess = half.left.evaluate(moment) - half.right.evaluate(moment);
      const double size = half.difference.magnitude(moment);
      if (!(std::abs(excess) <= kRounding * size + std::abs(row.factors[h]) * steps)) break;
      // An inequality is met with a growing margin; an equality has its own.
      const double margin = atom.comparison == Comparison::kEqual ? 0 : std::scalbn(kEps * size, std::min(attempt, 10) - 2);
      double need = excess + (attempt == 0 ? 0 : margin);
      if (need == 0) need = std::max(kEps * size, std::numeric_limits<double>::denorm_min());  // a strict one that ends on its edge
      return -need / row.factors[h];
    }
  }
  return 0;
}

// Moves one member so that direction . x changes by `wanted` or as much of it as there is room for.
bool nudge(const Grid& grid, const Group& group, Members& g, double wanted, std::size_t first, std::span<double> value) {
  const std::size_t m = g.a.size();
  std::size_t best = m;
  double most = 0;
  for (std::size_t k = 0; k < m; ++k) {
    const std::size_t j = (first + k) % m;
    if (g.a[j] == 0) continue;
    const double now = value[group.members[j].channel];
    const bool up = wanted / g.a[j] > 0;
    const double room = std::min(std::abs(g.a[j]) * (up ? g.high[j] - now : now - g.low[j]), std::abs(wanted));
    if (!(room > 0)) continue;
    if (best == m || room > most) best = j, most = room;
    if (room == std::abs(wanted)) break;
  }
  if (best == m) return false;
  double& now = value[group.members[best].channel];
  const double by = wanted / g.a[best];
  const double step = by > 0 ? grid.above(now) : grid.below(now);
  // On decimals a short way is shared out among the members, step by step.
  const bool stepwise = !grid.all_doubles() && std::abs(by) <= 4 * static_cast<double>(m) * std::abs(step - now);
  double next = stepwise ? step : grid.nearest(now + by);
  if (next == now || !std::isfinite(next)) next = step;
  now = clamped(next, g.low[best], g.high[best]);
  return true;
}

// The exactness pass: until every row that was broken by rounding holds as the user would test it.
// `asked`: sum of |a y| of the point that was asked for; a huge one takes digits from the projection.
bool make_exact(const Compiled& c, const Group& group, const Moment& moment, Members& g, double asked, std::span<double> value) {
  double steps = std::min(kRounding * asked, std::numeric_limits<double>::max()), top = 0;  // what rounding can have cost direction . x
  for (std::size_t j = 0; j < g.a.size(); ++j) {
    const double now = value[group.members[j].channel];
    if (!c.grid.all_doubles()) steps += std::abs(g.a[j]) * (c.grid.above(now) - now);
    top = std::max(top, std::abs(now));
  }
  const std::size_t attempts = 4 * g.a.size() + 64;
  for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
    const double wanted = missing(c, group, moment, steps, static_cast<int>(attempt));
    if (wanted == 0) return true;
    if (!nudge(c.grid, group, g, wanted, attempt, value)) return false;
  }
  // Among the smallest doubles an equality such as 3 a == 7 b has few solutions; zero is one.
  if (top >= 1e-290) return false;
  for (std::size_t j = 0; j < g.a.size(); ++j) {
    if (g.low[j] <= 0 && g.high[j] >= 0) value[group.members[j].channel] = 0;
  }
  return true;
}

// The members at the point of box and slab that is nearest to what was asked for, no member of it beyond `largest`. True: all rows hold
// that can hold.
bool settled(const Compiled& c, const Group& group, const Moment& moment, std::span<const double> limits, Members& g, double largest,
             std::span<double> value) {
  double asked = 0;
  for (std::size_t j = 0; j < g.a.size(); ++j) {
    g.y[j] = clamped(g.asked[j], -largest, largest);
    asked += std::abs(g.a[j] * g.y[j]);
  }
  project(group, narrowed(c, group, moment, limits, g), g);
  (void)narrowed(c, group, moment, limits, g);  // the ends again, as they were before scaling
  for (std::size_t j = 0; j < g.a.size(); ++j) {
    const double x = std::isfinite(g.x[j]) ? g.x[j] : clamped(g.asked[j], -largest, largest);
    value[group.members[j].channel] = clamped(c.grid.nearest(clamped(x, g.low[j], g.high[j])), g.low[j], g.high[j]);
  }
  return group.weight || make_exact(c, group, moment, g, asked, value);
}

}  // namespace

double slope_of(const Member& member, const Moment& moment) noexcept {
  double slope = member.plain;
  if (member.measured != 0) slope += member.measured / moment.elapsed(member.channel, From::kMeasured);
  if (member.commanded != 0) slope += member.commanded / moment.elapsed(member.channel, From::kCommanded);
  return slope;
}

Range row_range(const Compiled& c, const Row& row, const Moment& moment) noexcept {
  const Atom& atom = c.atoms[row.atom];
  Range range;
  for (std::size_t h = 0; h < atom.halves.size(); ++h) {
    const double edge = -atom.halves[h].difference.rest(c.moves.data(), moment) / row.factors[h];
    if (std::isnan(edge)) return {};
    const bool equal = atom.comparison == Comparison::kEqual;
    if (equal || row.factors[h] > 0) range.high = std::min(range.high, edge);
    if (equal || row.factors[h] < 0) range.low = std::max(range.low, edge);
  }
  return range;
}

void settle(const Compiled& c, const Group& group, const Moment& moment, std::span<double> value, std::span<const double> limits,
            std::span<double> scratch) noexcept {
  const std::size_t m = group.members.size();
  Members g(m, scratch);
  bool slopes = true, inside = true;
  double steepest = 1;
  for (std::size_t j = 0; j < m; ++j) {
    const std::uint32_t channel = group.members[j].channel;
    g.asked[j] = value[channel];
    g.w[j] = c.squared_scale[channel];
    g.a[j] = slope_of(group.members[j], moment);
    slopes = slopes && std::isfinite(g.a[j]);
    steepest = std::max(steepest, std::abs(g.a[j]));
  }
  if (!slopes) {  // no time has passed, or nothing is past: the rows cannot be used
    std::fill(g.a.begin(), g.a.end(), 0);
    steepest = 1;
  }
  (void)narrowed(c, group, moment, limits, g);
  for (std::size_t j = 0; j < m; ++j) {
    inside = inside && g.asked[j] >= g.low[j] && g.asked[j] <= g.high[j] && c.grid.contains(g.asked[j]);
  }
  const auto holds = [&](const Row& row) { return c.atoms[row.atom].holds(moment) != Truth::kFalse; };
  if (inside && std::all_of(group.rows.begin(), group.rows.end(), holds)) return;
  for (double largest = kLargest / (static_cast<double>(m) * steepest);; largest = largest > 2 ? std::sqrt(largest) : 0) {
    if (settled(c, group, moment, limits, g, largest, value) || largest == 0) return;
  }
}

}  // namespace kizzasi::logic
