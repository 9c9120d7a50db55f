#include "kizzasi/logic/guard.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kizzasi/logic/compiled.h"
#include "kizzasi/logic/compiler.h"
#include "kizzasi/logic/rows.h"

namespace kizzasi {
namespace {

using namespace logic;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kMostInwardSteps = 256;  // where rounding bends the edge of a condition that names a channel twice

class CompiledGuard final : public Guard {
 public:
  explicit CompiledGuard(Compiled compiled) : c_(std::move(compiled)) {
    for (const Group& group : c_.groups) group_scratch_ = std::max(group_scratch_, group.members.size() * kRowScratch);
  }

  std::size_t state_bytes() const noexcept override { return channels() * kPastBytes + (c_.joint ? c_.joint->state_bytes() : 0); }
  std::size_t scratch_doubles() const noexcept override { return channels() + 2 * c_.boxes.size() + group_scratch_; }
  std::size_t constraints() const noexcept override { return c_.constraints.size(); }
  std::string_view name(std::size_t constraint) const noexcept override { return c_.constraints[constraint].text.name; }

  double emitted(std::span<const std::byte> state, std::size_t channel) const noexcept override {
    return Past{state.data()}.value(channel, From::kCommanded);
  }

  void prepare(GuardReport& report) const override {
    report.active.assign(constraints(), 0);
    report.broken.assign(constraints(), 0);
    report.unknown.assign(constraints(), 0);
    report.slack.assign(constraints(), 0);
  }

  void reset(std::span<std::byte> state) const noexcept override {
    for (std::size_t channel = 0; channel < channels(); ++channel) {
      remember(state, channel, From::kMeasured, kNaN, 0);
      remember(state, channel, From::kCommanded, kNaN, 0);
    }
    if (c_.joint) c_.joint->reset(state.subspan(channels() * kPastBytes));
  }

  GuardStatus propose(std::span<const std::byte> state, std::int64_t time_ns, std::span<double> value, GuardReport& report,
                      std::span<double> scratch) const noexcept override {
    const std::span<double> raw = scratch.subspan(0, channels());
    const std::span<double> ends = scratch.subspan(channels(), 2 * c_.boxes.size());
    const std::span<double> rows = scratch.subspan(channels() + 2 * c_.boxes.size(), group_scratch_);
    std::copy(value.begin(), value.end(), raw.begin());
    const Moment moment = moment_of(state, time_ns, value.data());
    clear(report);

    // What the prediction itself breaks; a target that is not finite obeys nothing that speaks of it.
    bool rejected = false, held = false, clean = ready(value);
    for (std::uint32_t i = 0; i < c_.atoms.size(); ++i) {
      const std::uint32_t constraint = c_.atoms[i].constraint;
      const Truth obeys = raw_truth(i, moment);
      if (obeys == Truth::kUnknown) report.unknown[constraint] = 1;
      if (obeys != Truth::kFalse) continue;
      clean = false;
      report.active[constraint] = 1;
      rejected = rejected || c_.constraints[constraint].policy == Policy::kReject;
      held = held || c_.constraints[constraint].policy == Policy::kHold;
    }
    std::optional<Joint::Look> look;
    if (c_.joint) {
      look.emplace(*c_.joint, joint_state(state), moment.past, time_ns);
      for (std::size_t i = 0; i < c_.joint->constraints().size(); ++i) {
        const std::uint32_t constraint = c_.joint->constraints()[i].index;
        const Truth obeys = raw_truth(*look, i, value);
        if (obeys == Truth::kUnknown) report.unknown[constraint] = 1;
        if (obeys != Truth::kTrue && !c_.constraints[constraint].channels.empty()) clean = false;  // a branch may not need what is missing
        if (obeys != Truth::kFalse) continue;
        clean = false;
        report.active[constraint] = 1;
        rejected = rejected || c_.constraints[constraint].policy == Policy::kReject;
        held = held || c_.constraints[constraint].policy == Policy::kHold;
      }
    }
    if (c_.joint && c_.joint->promises()) clean = false;  // a deadline may ask for more than what is broken now
    if (clean) return report.status;                      // nothing to move: most frames end here
    if (rejected) {
      judge(moment, look, report);
      report.status = GuardStatus::kRejected;
      return report.status;
    }

    make_finite(moment.past, value, report);
    if (held) hold(moment.past, value, report);
    for (std::size_t i = 0; i < c_.boxes.size(); ++i) {
      const Range range = limits_of(c_.boxes[i], moment);
      ends[2 * i] = range.low;
      ends[2 * i + 1] = range.high;
    }
    const auto limits = [&](std::size_t box) { return Range{ends[2 * box], ends[2 * box + 1]}; };
    for (std::size_t channel = 0; channel < channels(); ++channel) {
      if (c_.moves[channel] != 0 && c_.group_of[channel] < 0 && !is_joint(channel))
        value[channel] = settled(channel, value[channel], moment, limits);
    }
    for (const Group& group : c_.groups) settle(c_, group, moment, value, ends, rows);
    if (look) (void)look->settle(value);

    measure(raw, moment.past, value, report);
    judge(moment, look, report);
    for (std::size_t i = 0; i < c_.boxes.size(); ++i) {
      const double x = value[c_.boxes[i].channel];
      if (x == ends[2 * i] || x == ends[2 * i + 1]) report.active[c_.atoms[c_.boxes[i].atom].constraint] = 1;
    }
    for (const Group& group : c_.groups) {
      for (const Row& row : group.rows) {
        if (c_.atoms[row.atom].comparison == Comparison::kEqual) report.active[c_.atoms[row.atom].constraint] = 1;
      }
    }
    report.status = verdict(held, report);
    return report.status;
  }

  GuardStatus check(std::span<const std::byte> state, std::int64_t time_ns, std::span<const double> value,
                    GuardReport& report) const noexcept override {
    clear(report);
    const Moment moment = moment_of(state, time_ns, value.data());
    std::optional<Joint::Look> look;
    if (c_.joint) look.emplace(*c_.joint, joint_state(state), moment.past, time_ns);
    judge(moment, look, report);
    const bool broken = std::any_of(report.broken.begin(), report.broken.end(), [](std::uint8_t flag) { return flag != 0; });
    report.active = report.broken;
    report.status = broken ? GuardStatus::kInfeasible : GuardStatus::kClean;
    return report.status;
  }

  void interval(std::span<const std::byte> state, std::int64_t time_ns, std::size_t channel, double& low,
                double& high) const noexcept override {
    const Moment moment = moment_of(state, time_ns, nullptr);
    if (is_joint(channel)) return joint_interval(state, moment, channel, low, high);
    Range range = bounds_of(channel, moment);
    if (c_.group_of[channel] >= 0) {
      const Group& group = c_.groups[static_cast<std::size_t>(c_.group_of[channel])];
      if (!group.weight) narrow(range, allowance(group, channel, moment), c_.grid);
    }
    low = range.low;
    high = range.high;
  }

  void accept(std::span<std::byte> state, std::int64_t time_ns, std::span<const double> measured,
              std::span<const double> emitted) const noexcept override {
    if (c_.joint) c_.joint->accept(joint_state(state), Past{state.data()}, time_ns, measured, emitted);
    const bool rollout = std::none_of(measured.begin(), measured.end(), [](double x) { return std::isfinite(x); });
    for (std::size_t channel = 0; channel < channels(); ++channel) {
      const double seen = rollout && channel < emitted.size() ? emitted[channel] : channel < measured.size() ? measured[channel] : kNaN;
      if (std::isfinite(seen)) remember(state, channel, From::kMeasured, seen, time_ns);
      if (channel < emitted.size() && std::isfinite(emitted[channel]))
        remember(state, channel, From::kCommanded, emitted[channel], time_ns);
    }
  }

  Json explain() const override { return logic::explain(c_); }

 private:
  std::size_t channels() const noexcept { return c_.schema.size(); }

  std::span<std::byte> joint_state(std::span<std::byte> state) const noexcept { return state.subspan(channels() * kPastBytes); }
  std::span<const std::byte> joint_state(std::span<const std::byte> state) const noexcept { return state.subspan(channels() * kPastBytes); }
  bool is_joint(std::size_t channel) const noexcept { return c_.joint && c_.joint->group_of(channel) >= 0; }

  static void remember(std::span<std::byte> state, std::size_t channel, From from, double value, std::int64_t time) noexcept {
    std::byte* at = state.data() + channel * kPastBytes + (from == From::kMeasured ? 0 : 16);
    std::memcpy(at, &value, sizeof value);
    std::memcpy(at + 8, &time, sizeof time);
  }

  Moment moment_of(std::span<const std::byte> state, std::int64_t time_ns, const double* value) const noexcept {
    Moment moment;
    moment.value = value;
    moment.past.bytes = state.data();
    moment.time_ns = time_ns;
    moment.timed = c_.timed();
    return moment;
  }

  static void clear(GuardReport& report) noexcept {
    report.status = GuardStatus::kClean;
    report.moved = report.replaced = 0;
    report.distance = 0;
    std::fill(report.active.begin(), report.active.end(), std::uint8_t{0});
    std::fill(report.broken.begin(), report.broken.end(), std::uint8_t{0});
    std::fill(report.unknown.begin(), report.unknown.end(), std::uint8_t{0});
    std::fill(report.slack.begin(), report.slack.end(), 0.0);
  }

  // A bound that was found when compiling needs no program: its two ends are the last numbers that obey.
  Truth truth(std::uint32_t atom, const Moment& moment) const noexcept {
    if (c_.forms[atom] == Form::kBox && c_.atoms[atom].comparison != Comparison::kEqual && !c_.atoms[atom].repeats) {
      const Box& box = c_.boxes[static_cast<std::size_t>(c_.box_of[atom])];
      const double x = moment.now(box.channel);
      if (x >= box.low && x <= box.high) return Truth::kTrue;
    }
    return c_.atoms[atom].holds(moment);
  }

  Truth raw_truth(std::uint32_t i, const Moment& moment) const noexcept {
    const Atom& atom = c_.atoms[i];
    const bool finite = std::none_of(atom.readings.begin(), atom.readings.end(), [&](const Reading& reading) {
      return reading.tense != Tense::kPrevious && c_.moves[reading.channel] != 0 && !std::isfinite(moment.now(reading.channel));
    });
    return finite ? truth(i, moment) : Truth::kFalse;
  }

  Truth raw_truth(Joint::Look& look, std::size_t i, std::span<const double> value) const noexcept {
    double excess = 0;
    const auto& moving = c_.constraints[c_.joint->constraints()[i].index].channels;
    const bool finite = std::all_of(moving.begin(), moving.end(), [&](std::uint32_t channel) { return std::isfinite(value[channel]); });
    return finite ? look.judge(i, value, excess) : Truth::kFalse;
  }

  // Others start from where they stood last.
  void joint_interval(std::span<const std::byte> state, const Moment& moment, std::size_t channel, double& low,
                      double& high) const noexcept {
    Joint::Look look(*c_.joint, joint_state(state), moment.past, moment.time_ns);
    look.interval(channel, [&](std::size_t c) { return c_.moves[c] != 0 ? stand_in(moment.past, c) : kNaN; }, low, high);
  }

  // True where every target is finite and on the emitted grid already.
  bool ready(std::span<const double> value) const noexcept {
    for (std::size_t channel = 0; channel < channels(); ++channel) {
      if (c_.moves[channel] != 0 && !(std::isfinite(value[channel]) && c_.grid.contains(value[channel]))) return false;
    }
    return true;
  }

  // The value that stands for one that is not there.
  static double stand_in(const Past& past, std::size_t channel) noexcept {
    const double emitted = past.value(channel, From::kCommanded), measured = past.value(channel, From::kMeasured);
    return std::isfinite(emitted) ? emitted : std::isfinite(measured) ? measured : 0;
  }

  void make_finite(const Past& past, std::span<double> value, GuardReport& report) const noexcept {
    for (std::size_t channel = 0; channel < channels(); ++channel) {
      if (c_.moves[channel] == 0 || std::isfinite(value[channel])) continue;
      value[channel] = stand_in(past, channel);
      ++report.replaced;
    }
  }

  // The channels of every broken `hold` constraint go back to what was emitted last; without any past they are projected.
  void hold(const Past& past, std::span<double> value, const GuardReport& report) const noexcept {
    for (std::size_t i = 0; i < constraints(); ++i) {
      if (c_.constraints[i].policy != Policy::kHold || report.active[i] == 0) continue;
      for (const std::uint32_t channel : c_.constraints[i].channels) {
        const double emitted = past.value(channel, From::kCommanded);
        if (std::isfinite(emitted)) value[channel] = emitted;
      }
    }
  }

  Range limits_of(const Box& box, const Moment& moment) const noexcept {
    if (box.fixed) return {box.low, box.high};
    return range_of(c_.atoms[box.atom], box.channel, c_.moves.data(), moment, c_.grid);
  }

  // One uncoupled channel: soft bounds pull, hard ones decide.
  template <typename Limits>
  double settled(std::size_t channel, double x, const Moment& moment, const Limits& limits) const noexcept {
    if (!c_.soft[channel].empty()) x = softened(channel, x, limits);
    Range range;
    for (const std::uint32_t box : c_.hard[channel]) narrow(range, limits(box), c_.grid);
    x = std::clamp(c_.grid.nearest(x), range.low, range.high);
    for (const std::uint32_t box : c_.hard[channel]) {
      if (c_.atoms[c_.boxes[box].atom].repeats) x = inward(c_.atoms[c_.boxes[box].atom], channel, x, range, moment);
    }
    return x;
  }

  // Minimises (x - y)^2 / scale^2 + sum of weight * (distance to the soft range)^2: convex and piecewise quadratic in one unknown, so that
  // Newton steps from piece to piece end after at most one step a piece.
  template <typename Limits>
  double softened(std::size_t channel, double y, const Limits& limits) const noexcept {
    const double stiffness = 1 / c_.squared_scale[channel];
    double x = y;
    for (std::size_t turn = 0; turn < 2 * c_.soft[channel].size() + 2; ++turn) {
      double pull = stiffness * y, total = stiffness;
      for (const std::uint32_t box : c_.soft[channel]) {
        const Range range = limits(box);
        if (x >= range.low && x <= range.high) continue;
        const double weight = c_.constraint_of(c_.boxes[box].atom).text.weight;
        pull += weight * (x < range.low ? range.low : range.high);
        total += weight;
      }
      const double next = pull / total;
      if (next == x || !std::isfinite(next)) break;
      x = next;
    }
    return x;
  }

  // Where a channel stands twice in a condition, rounding may break it a few steps inside its edge.
  double inward(const Atom& atom, std::size_t channel, double x, const Range& range, Moment moment) const noexcept {
    moment.tried_channel = channel;
    moment.tried = x;
    if (atom.holds(moment) != Truth::kFalse) return x;
    for (const bool up : {false, true}) {
      double y = x;
      for (int step = 0; step < kMostInwardSteps; ++step) {
        y = up ? c_.grid.above(y) : c_.grid.below(y);
        if (y < range.low || y > range.high) break;
        moment.tried = y;
        if (atom.holds(moment) == Truth::kTrue) return y;
      }
    }
    return x;
  }

  // All hard bounds of one channel, the sum of its group left aside.
  Range bounds_of(std::size_t channel, const Moment& moment) const noexcept {
    Range range;
    for (const std::uint32_t box : c_.hard[channel]) narrow(range, limits_of(c_.boxes[box], moment), c_.grid);
    return range;
  }

  // What the group's sum leaves to one member, the others anywhere inside their own bounds.
  Range allowance(const Group& group, std::size_t channel, const Moment& moment) const noexcept {
    Range sum, others{0, 0};
    for (const Row& row : group.rows) {
      const Range by = row_range(c_, row, moment);
      sum = {std::max(sum.low, by.low), std::min(sum.high, by.high)};
    }
    double own = 0;
    for (const Member& member : group.members) {
      const double a = slope_of(member, moment);
      if (member.channel == channel) {
        own = a;
      } else if (a != 0) {
        const Range range = bounds_of(member.channel, moment);
        others.low += a * (a > 0 ? range.low : range.high);
        others.high += a * (a > 0 ? range.high : range.low);
      }
    }
    const double one = (sum.low - others.high) / own, two = (sum.high - others.low) / own;
    if (own == 0 || std::isnan(one) || std::isnan(two) || !std::isfinite(own)) return {};
    const Range range{c_.grid.ceil(std::min(one, two)), c_.grid.floor(std::max(one, two))};
    return range;
  }

  void measure(std::span<const double> raw, const Past& past, std::span<const double> value, GuardReport& report) const noexcept {
    for (std::size_t channel = 0; channel < channels(); ++channel) {
      if (c_.moves[channel] == 0) continue;
      const double from = std::isfinite(raw[channel]) ? raw[channel] : stand_in(past, channel);
      const double rounded = c_.grid.nearest(from);
      if (value[channel] != rounded || !std::isfinite(raw[channel])) ++report.moved;
      if (value[channel] != rounded) report.distance = std::hypot(report.distance, value[channel] - from);
    }
  }

  void judge(const Moment& moment, std::optional<Joint::Look>& look, GuardReport& report) const noexcept {
    for (std::uint32_t i = 0; i < c_.atoms.size(); ++i) {
      const Truth held = truth(i, moment);
      const std::uint32_t constraint = c_.atoms[i].constraint;
      if (held == Truth::kUnknown) report.unknown[constraint] = 1;
      if (held != Truth::kFalse) continue;
      report.broken[constraint] = 1;
      report.slack[constraint] = std::max(report.slack[constraint], c_.atoms[i].excess(moment));
    }
    for (std::size_t i = 0; look && i < c_.joint->constraints().size(); ++i) {
      const std::uint32_t constraint = c_.joint->constraints()[i].index;
      double excess = 0;
      const Truth held = look->judge(i, {moment.value, channels()}, excess);
      if (held == Truth::kUnknown) report.unknown[constraint] = 1;
      if (held != Truth::kFalse) continue;
      report.broken[constraint] = 1;
      report.slack[constraint] = excess;
    }
  }

  GuardStatus verdict(bool held, const GuardReport& report) const noexcept {
    bool warned = false;
    for (std::size_t i = 0; i < constraints(); ++i) {
      const CompiledConstraint& constraint = c_.constraints[i];
      if (report.broken[i] == 0 || constraint.text.soft) continue;
      if (constraint.policy == Policy::kWarn) {
        warned = true;
      } else if (!constraint.channels.empty()) {
        return GuardStatus::kInfeasible;
      }
    }
    if (held) return GuardStatus::kHeld;
    if (warned) return GuardStatus::kWarned;
    return report.moved > 0 ? GuardStatus::kMoved : GuardStatus::kClean;
  }

  Compiled c_;
  std::size_t group_scratch_ = 0;
};

}  // namespace

const char* to_string(GuardStatus status) {
  switch (status) {
    case GuardStatus::kClean:
      return "clean";
    case GuardStatus::kMoved:
      return "moved";
    case GuardStatus::kWarned:
      return "warned";
    case GuardStatus::kHeld:
      return "held";
    case GuardStatus::kRejected:
      return "rejected";
    case GuardStatus::kInfeasible:
      return "infeasible";
  }
  return "";
}

Result<std::unique_ptr<Guard>> compile_guard(const Schema& schema, std::span<const ConstraintText> constraints, EmittedGrid grid,
                                             std::span<const double> scale) {
  auto compiled = compile(schema, constraints, grid, scale);
  if (!compiled) return tl::unexpected(compiled.error());
  return std::unique_ptr<Guard>(std::make_unique<CompiledGuard>(*std::move(compiled)));
}

}  // namespace kizzasi
