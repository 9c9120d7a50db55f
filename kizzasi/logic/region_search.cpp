// Branch and bound over the ways of each decision; a dense program at each node, with planes cut where a convex condition needs them.
#include <algorithm>
#include <cmath>
#include <map>

#include "kizzasi/logic/region.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::logic {
namespace {

constexpr double kTight = 1e-9;         // of the size of a row: what counts as held
constexpr double kRepairMargin = 1e-7;  // by which a repair leaves room inside strict conditions
constexpr double kFlat = 1e-9;          // curvature of what costs nothing: a program needs some
constexpr std::size_t kMostNodes = 4000;
constexpr int kMostCuts = 300;

double size_of(const Demand& d, std::span<const double> x) {
  double size = std::abs(d.bound);
  for (const auto& [v, factor] : d.terms) size += std::abs(factor * x[v]);
  return size;
}

// How far inside its edge a strict condition must be.
double room_of(const Demand& d) {
  double factor = 0;
  for (const auto& [v, by] : d.terms) factor = std::max(factor, std::abs(by));
  return kTight * std::abs(d.bound) + 1e-12 * factor;
}

}  // namespace

struct Region::Search {
  const Region& region;
  std::vector<const Decision*> decisions{};
  bool repairs = false, nearest = false;
  std::size_t nodes = 0;
  bool undecided = false;
  Answer best{};

  std::size_t changes() const { return repairs ? region.limits_.size() : 0; }

  // Value of left - right of a curved demand, and its slopes over the channels of its frame.
  double curve(const Demand& d, std::span<const double> x, std::vector<double>* slopes) const {
    const Present& present = *region.present_;
    const std::size_t nodes_all = present.graph().nodes.size(), channels = region.schema_.size();
    const auto frame = x.subspan(d.frame * channels, channels);
    std::vector<double> recalled(nodes_all * Present::kRecalled, 0), values(nodes_all, 0), adjoint(nodes_all, 0);
    const auto left = present.order_of(d.left), right = present.order_of(d.right);
    present.evaluate(left, recalled, frame, values);
    const double a = values[d.left];
    if (slopes != nullptr) {
      slopes->assign(channels, 0);
      present.add_slopes(d.left, 1, left, recalled, values, adjoint, *slopes);
    }
    present.evaluate(right, recalled, frame, values);
    if (slopes != nullptr) present.add_slopes(d.right, -1, right, recalled, values, adjoint, *slopes);
    return a - values[d.right];
  }

  // By how much a demand is broken at x: > 0.
  double excess(const Demand& d, std::span<const double> x, std::span<const double> change) const {
    double value = d.curved ? curve(d, x, nullptr) : -d.bound;
    for (const auto& [v, factor] : d.terms) value += factor * x[v];
    if (d.limit >= 0 && !change.empty()) value += d.by * change[static_cast<std::size_t>(d.limit)];
    return d.equal ? std::abs(value) : value;
  }

  bool holds(const Demand& d, std::span<const double> x, std::span<const double> change) const {
    const double size = d.curved ? 1 : size_of(d, x), gap = excess(d, x, change);
    return d.strict ? gap <= -room_of(d) : gap <= kTight * size;
  }
  bool holds(const Way& way, std::span<const double> x, std::span<const double> change) const {
    return std::all_of(way.begin(), way.end(), [&](const Demand& d) { return holds(d, x, change); });
  }

  struct Rows {
    std::vector<double> a, lo, hi;
    std::size_t n = 0;
    double* add(double low, double high) {
      a.resize(a.size() + n, 0);
      lo.push_back(low);
      hi.push_back(high);
      return a.data() + a.size() - n;
    }
  };

  // Solves for what was chosen. Variables: x, then the changes of limits. `room`: strict conditions keep off their edge.
  Answer solve(const std::vector<const Demand*>& chosen, bool room) const {
    const std::size_t x_size = region.variables_, extra = changes();
    Rows rows;
    rows.n = x_size + extra;
    const auto put = [&](const Demand& d, double* row) {
      for (const auto& [v, factor] : d.terms) row[v] += factor;
      if (repairs && d.limit >= 0) row[x_size + static_cast<std::size_t>(d.limit)] += d.by;
    };
    std::vector<const Demand*> curved, of_row;
    for (const Demand* d : chosen) {
      if (d->curved) {
        curved.push_back(d);
        continue;
      }
      double sizes = 0;
      for (const auto& [v, factor] : d->terms) sizes = std::max(sizes, std::abs(factor));
      if (sizes == 0 && !(repairs && d->limit >= 0)) {  // numbers alone
        const bool fine = d->equal ? d->bound == 0 : d->strict ? d->bound > 0 : d->bound >= 0;
        if (!fine) return {Found::kNothing, {}, {}, 0};
        continue;
      }
      const double inside = !d->strict ? 0 : repairs ? kRepairMargin * std::max(1.0, std::abs(d->bound)) : room ? 2 * room_of(*d) : 0;
      of_row.push_back(d);
      put(*d, rows.add(d->equal ? d->bound : -solve::kNoBound, d->bound - inside));
    }
    std::vector<double> h(rows.n, 1), g(rows.n, 0), lower(rows.n, -solve::kNoBound), upper(rows.n, solve::kNoBound);
    if (repairs) {
      std::fill(h.begin(), h.begin() + static_cast<std::ptrdiff_t>(x_size), kFlat);
      for (std::size_t k = 0; k < changes(); ++k) h[x_size + k] = 1 / (region.limits_[k].unit * region.limits_[k].unit);
    }
    if (nearest) {
      h = region.stiffness_;
      lower = region.lower_;
      upper = region.upper_;
    }
    const std::span<const double> centre = nearest ? std::span<const double>(region.centre_) : std::span<const double>{};
    for (int cut = 0; cut <= kMostCuts; ++cut) {
      solve::QuadraticProgram program;
      program.prepare(rows.n, rows.lo.size());
      if (program.set_diagonal(h) >= solve::Curvature::kNotConvex || !program.set_rows(rows.a, rows.lo.size())) return {};
      const solve::Status status =
          program.solve({nearest ? std::span<const double>{} : std::span<const double>(g), centre, rows.lo, rows.hi, lower, upper});
      if (status == solve::Status::kInfeasible) return {Found::kNothing, {}, {}, 0};
      if (status != solve::Status::kOptimal) return {};
      Answer answer{Found::kPoint, {program.x().begin(), program.x().begin() + static_cast<std::ptrdiff_t>(x_size)}, {}, 0};
      if (repairs) {
        answer.change.assign(program.x().begin() + static_cast<std::ptrdiff_t>(x_size), program.x().end());
        answer.cost = 0;
        for (std::size_t k = 0; k < changes(); ++k) {
          const double by = answer.change[k] / region.limits_[k].unit;
          answer.cost += by * by;
        }
      }
      bool clean = true;
      for (const Demand* d : curved) {
        if (excess(*d, answer.x, answer.change) <= kTight) continue;
        clean = false;
        std::vector<double> slopes;
        const double value = curve(*d, answer.x, &slopes);
        double bound = -value;
        const std::size_t first = d->frame * region.schema_.size();
        for (std::size_t c = 0; c < slopes.size(); ++c) bound += slopes[c] * answer.x[first + c];
        if (std::all_of(slopes.begin(), slopes.end(), [](double s) { return s == 0; }) && !(repairs && d->limit >= 0)) {
          return {Found::kNothing, {}, {}, 0};  // the lowest point of the bowl lies too high
        }
        const double inside = repairs && d->strict ? kRepairMargin * std::max(1.0, std::abs(bound)) : 0;
        of_row.push_back(d);
        double* row = rows.add(-solve::kNoBound, bound - inside);
        for (std::size_t c = 0; c < slopes.size(); ++c) row[first + c] = slopes[c];
        put(*d, row);
      }
      if (!clean) continue;
      if (nearest) {
        answer.cost = 0;
        for (std::size_t v = 0; v < x_size; ++v) {
          const double by = answer.x[v] - region.centre_[v];
          answer.cost += region.stiffness_[v] * by * by;
        }
        for (std::size_t r = 0; r < of_row.size(); ++r) {
          const double pull = program.row_multipliers()[r];
          if (pull == 0) continue;
          double gap = pull > 0 ? -rows.hi[r] : -rows.lo[r];
          for (std::size_t v = 0; v < x_size; ++v) gap += rows.a[r * rows.n + v] * region.centre_[v];
          answer.pulls.push_back({of_row[r], 0, pull, gap});
        }
      }
      return answer;
    }
    return {};
  }

  // Feasible for what was chosen, strict conditions and all.
  Answer settle(const std::vector<const Demand*>& chosen) const {
    Answer answer = solve(chosen, false);
    if (answer.found != Found::kPoint || repairs) return answer;
    if (std::all_of(chosen.begin(), chosen.end(), [&](const Demand* d) { return !d->strict || holds(*d, answer.x, {}); })) return answer;
    return solve(chosen, true);
  }

  // True: stop, a point was found (while repairing all are compared).
  bool descend(std::vector<const Demand*>& chosen, std::vector<std::uint8_t>& decided) {
    if (++nodes > kMostNodes) {
      undecided = true;
      return true;
    }
    const Answer answer = settle(chosen);
    if (answer.found == Found::kUndecided) undecided = true;
    if (answer.found != Found::kPoint) return false;
    if ((repairs || nearest) && answer.cost >= best.cost * (1 - 1e-12)) return false;
    std::size_t open = decisions.size();
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      if (decided[i] != 0) continue;
      const auto& ways = decisions[i]->ways;
      if (std::any_of(ways.begin(), ways.end(), [&](const Way& way) { return holds(way, answer.x, answer.change); })) continue;
      if (open == decisions.size() || ways.size() < decisions[open]->ways.size()) open = i;
    }
    if (open == decisions.size()) {
      best = answer;
      return !repairs && !nearest;
    }
    decided[open] = 1;
    bool stop = false;
    for (const Way& way : decisions[open]->ways) {
      for (const Demand& d : way) chosen.push_back(&d);
      stop = descend(chosen, decided);
      chosen.resize(chosen.size() - way.size());
      if (stop) break;
    }
    decided[open] = 0;
    return stop;
  }

  Answer run() {
    std::vector<const Demand*> chosen;
    std::vector<std::uint8_t> decided(decisions.size(), 0);
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      if (decisions[i]->ways.empty()) return {Found::kNothing, {}, {}, 0};
      if (decisions[i]->ways.size() > 1) continue;
      decided[i] = 1;
      for (const Demand& d : decisions[i]->ways[0]) chosen.push_back(&d);
    }
    (void)descend(chosen, decided);
    if (best.found == Found::kPoint) return best;
    return {undecided ? Found::kUndecided : Found::kNothing, {}, {}, 0};
  }
};

Region::Answer Region::find(std::span<const std::uint8_t> asked, std::size_t denied) const {
  Search search{*this};
  for (const Decision& d : decisions_) {
    if (asked[d.constraint] != 0) search.decisions.push_back(&d);
  }
  if (denied != kNobody) {
    for (const Decision& d : denials_[denied]) search.decisions.push_back(&d);
  }
  return search.run();
}

Region::Answer Region::repair(std::span<const std::uint8_t> asked) const {
  Search search{*this};
  search.repairs = true;
  for (const Decision& d : decisions_) {
    if (asked[d.constraint] != 0) search.decisions.push_back(&d);
  }
  return search.run();
}

Region::Answer Region::nearest(std::span<const std::uint8_t> asked) const {
  Search search{*this};
  search.nearest = true;
  std::map<const Demand*, std::size_t> constraint_of;
  for (const Decision& d : decisions_) {
    if (asked[d.constraint] == 0) continue;
    search.decisions.push_back(&d);
    for (const Way& way : d.ways) {
      for (const Demand& demand : way) constraint_of[&demand] = d.constraint;
    }
  }
  Answer answer = search.run();
  for (Pull& pull : answer.pulls) pull.constraint = constraint_of[pull.demand];
  return answer;
}

}  // namespace kizzasi::logic
