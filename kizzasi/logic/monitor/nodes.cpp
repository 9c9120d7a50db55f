#include "kizzasi/logic/monitor/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "kizzasi/base/suggest.h"
#include "kizzasi/logic/channel_names.h"
#include "kizzasi/logic/units.h"

namespace kizzasi::logic {
namespace {

constexpr std::size_t kBuckets = 4096;
constexpr std::int64_t kLongestWindow = 10'000'000;  // samples that a bounded operator may hold
constexpr double kProposition = 0.5;

std::size_t bucket_of(const Node& node) {
  std::size_t hash = static_cast<std::size_t>(node.kind);
  for (const std::uint64_t part : {std::uint64_t{node.a}, std::uint64_t{node.b}, static_cast<std::uint64_t>(node.low),
                                   static_cast<std::uint64_t>(node.high), static_cast<std::uint64_t>(node.weak)}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29U;
  }
  return hash % kBuckets;
}

std::int64_t plus(std::int64_t a, std::int64_t b) { return std::min(a + b, kEndless); }

}  // namespace

// Writes one formula into the graph; a failure is remembered once and unwinds through empty results.
class GraphWriter {
 public:
  GraphWriter(GraphBuilder& builder, const Source& source) : builder_(builder), graph_(builder.graph_), source_(source) {}

  Result<std::uint32_t> run(const Formula& formula) {
    const auto root = condition(formula);
    if (!root) return tl::unexpected(*error_);
    graph_.roots.push_back(*root);
    return static_cast<std::uint32_t>(graph_.roots.size() - 1);
  }

 private:
  using Index = std::optional<std::uint32_t>;
  // A number with its unit; an empty one fits any.
  struct Quantity {
    std::uint32_t node = 0;
    std::string unit;
  };
  using Number = std::optional<Quantity>;

  // --- Conditions ---------------------------------------------------------------------------------------------------------------------

  Index condition(const Formula& f) {
    if (!speaks_of_each(f)) return one_condition(f);
    if (f.op != Op::kCompare && f.op != Op::kWithin && f.op != Op::kIn) return one_condition(f);
    Index all;  // `* >= 0` says it of every channel
    for (std::size_t channel = 0; channel < graph_.schema.size(); ++channel) {
      if (graph_.schema.channels[channel].role != Role::kTarget) continue;
      every_ = channel;
      const Index one = one_condition(f);
      if (!one) return {};
      all = all ? two(NodeKind::kAnd, *all, *one) : one;
    }
    every_.reset();
    if (!all) bad(f.offset, "* stands for every predicted channel, and there is none", "a channel that is predicted", "");
    return all;
  }

  Index one_condition(const Formula& f) {
    switch (f.op) {
      case Op::kTrue:
      case Op::kFalse:
        return made({.kind = NodeKind::kTruth, .weak = f.op == Op::kTrue});
      case Op::kProposition: {
        Formula channel = f;
        channel.op = Op::kChannel;
        const Number value = number(channel);
        if (!value) return {};
        return compared(NodeKind::kLessEqual, {constant(kProposition), ""}, *value);
      }
      case Op::kCompare:
        return chain(f);
      case Op::kIn:
        return within(f);
      case Op::kWithin:
        return near(f);
      case Op::kNot:
        return negated(condition(f.operands[0]));
      case Op::kHysteresis:
        return hysteresis(f);
      case Op::kRise:
      case Op::kFall: {
        const Index a = condition(f.operands[0]);
        if (!a) return {};
        // A missing neighbour is neutral: not Y[!] a is true there, Y a is too.
        const Index before = step(NodeKind::kBack, *a, f.op == Op::kFall);
        return f.op == Op::kRise ? two(NodeKind::kAnd, *a, *negated(before)) : two(NodeKind::kAnd, *negated(a), *before);
      }
      case Op::kNext:
      case Op::kPrevious:
        return neighbour(f);
      case Op::kAlways:
        return windowed(f, NodeKind::kAlways);
      case Op::kEventually:
        return windowed(f, NodeKind::kEventually);
      case Op::kHistorically:
        return windowed(f, NodeKind::kHistorically);
      case Op::kOnce:
        return windowed(f, NodeKind::kOnce);
      default:
        return joined(f);
    }
  }

  Index joined(const Formula& f) {
    if (f.operands.size() != 2) {
      bad(f.offset, fmt::format("'{}' is a number, not a condition", print(f)), "a comparison, such as x <= 3", "");
      return {};
    }
    const Index a = condition(f.operands[0]), b = a ? condition(f.operands[1]) : Index{};
    if (!a || !b) return {};
    switch (f.op) {
      case Op::kAnd:
        return two(NodeKind::kAnd, *a, *b);
      case Op::kOr:
        return two(NodeKind::kOr, *a, *b);
      case Op::kImplies:
        return two(NodeKind::kOr, *negated(a), *b);
      case Op::kIff:
        return two(NodeKind::kOr, *two(NodeKind::kAnd, *a, *b), *two(NodeKind::kAnd, *negated(a), *negated(b)));
      case Op::kXor:
        return two(NodeKind::kOr, *two(NodeKind::kAnd, *a, *negated(b)), *two(NodeKind::kAnd, *negated(a), *b));
      case Op::kUntil:
        return spanned(f, NodeKind::kUntil, *a, *b);
      case Op::kSince:
        return spanned(f, NodeKind::kSince, *a, *b);
      case Op::kRelease:
        return negated(spanned(f, NodeKind::kUntil, *negated(a), *negated(b)));
      case Op::kUnless: {  // a through the whole window, or until
        const auto samples = interval(f);
        if (!samples) return {};
        const Index whole = window(NodeKind::kAlways, *a, {0, samples->high});
        return two(NodeKind::kOr, *whole, *spanned(f, NodeKind::kUntil, *a, *b));
      }
      default:
        bad(f.offset, fmt::format("'{}' is a number, not a condition", print(f)), "a comparison, such as x <= 3", "");
        return {};
    }
  }

  Index chain(const Formula& f) {
    Index all;
    Number left = number(f.operands[0]);
    for (std::size_t i = 0; i < f.comparisons.size(); ++i) {
      if (!left) return {};
      const Number right = number(f.operands[i + 1]);
      if (!right || !same_unit(*left, *right, f.operands[i], f.operands[i + 1])) return {};
      const Comparison sign = f.comparisons[i];
      const bool turned = sign == Comparison::kGreater || sign == Comparison::kGreaterEqual;
      const bool strict = sign == Comparison::kLess || sign == Comparison::kGreater;
      const NodeKind kind = sign == Comparison::kEqual ? NodeKind::kEqual : strict ? NodeKind::kLess : NodeKind::kLessEqual;
      const Index one = compared(kind, turned ? *right : *left, turned ? *left : *right);
      all = all ? two(NodeKind::kAnd, *all, *one) : one;
      left = right;
    }
    return all;
  }

  Index within(const Formula& f) {  // low <= value and value <= high
    const Number value = number(f.operands[0]), low = value ? number(f.operands[1]) : Number{},
                 high = low ? number(f.operands[2]) : Number{};
    if (!value || !low || !high) return {};
    if (!same_unit(*value, *low, f.operands[0], f.operands[1]) || !same_unit(*value, *high, f.operands[0], f.operands[2])) return {};
    return two(NodeKind::kAnd, *compared(NodeKind::kLessEqual, *low, *value), *compared(NodeKind::kLessEqual, *value, *high));
  }

  Index near(const Formula& f) {  // |a - b| <= tolerance
    const Number a = number(f.operands[0]), b = a ? number(f.operands[1]) : Number{}, tolerance = b ? number(f.operands[2]) : Number{};
    if (!a || !b || !tolerance) return {};
    if (!same_unit(*a, *b, f.operands[0], f.operands[1]) || !same_unit(*a, *tolerance, f.operands[0], f.operands[2])) return {};
    const auto gap = arithmetic(NodeKind::kAbs, arithmetic(NodeKind::kSubtract, a->node, b->node), 0);
    return compared(NodeKind::kLessEqual, {gap, ""}, *tolerance);
  }

  // True from `on` until down to `off`: (x > off) since (x >= on), and the mirror image where on < off.
  Index hysteresis(const Formula& f) {
    const Number x = number(f.operands[0]), on = x ? number(f.operands[1]) : Number{}, off = on ? number(f.operands[2]) : Number{};
    if (!x || !on || !off) return {};
    if (!same_unit(*x, *on, f.operands[0], f.operands[1]) || !same_unit(*x, *off, f.operands[0], f.operands[2])) return {};
    const Node &first = graph_.nodes[on->node], &last = graph_.nodes[off->node];
    const bool falling = first.kind == NodeKind::kConstant && last.kind == NodeKind::kConstant && first.number < last.number;
    const Index starts = falling ? compared(NodeKind::kLessEqual, *x, *on) : compared(NodeKind::kLessEqual, *on, *x);
    const Index stays = falling ? compared(NodeKind::kLess, *x, *off) : compared(NodeKind::kLess, *off, *x);
    return made({.kind = NodeKind::kSince, .a = *stays, .b = *starts, .low = 0, .high = kEndless});
  }

  Index neighbour(const Formula& f) {
    const Index a = condition(f.operands[0]);
    if (!a) return {};
    if (f.interval.given) {  // next[a, b] is no operator of the language
      bad(f.interval.offset, fmt::format("{} takes no interval", word(f.op)), fmt::format("{} alone, or always[1,1]", word(f.op)), "");
      return {};
    }
    return step(f.op == Op::kNext ? NodeKind::kShift : NodeKind::kBack, *a, !f.strong);
  }

  Index windowed(const Formula& f, NodeKind kind) {
    const Index a = condition(f.operands[0]);
    const auto samples = a ? interval(f) : std::nullopt;
    if (!samples) return {};
    return window(kind, *a, *samples);
  }

  Index window(NodeKind kind, std::uint32_t a, SampleInterval samples) {
    return made({.kind = kind, .a = a, .low = samples.low, .high = samples.high});
  }

  Index spanned(const Formula& f, NodeKind kind, std::uint32_t a, std::uint32_t b) {
    const auto samples = interval(f);
    if (!samples) return {};
    return made({.kind = kind, .a = a, .b = b, .low = samples->low, .high = samples->high});
  }

  std::optional<SampleInterval> interval(const Formula& f) {
    if (!f.interval.given) return SampleInterval{0, kEndless};
    const auto samples = sample_interval(f.interval, graph_.schema.step_ns, source_);
    if (!samples) {
      if (!error_) error_ = samples.error();
      return {};
    }
    if (samples->low > kLongestWindow || (samples->high != kEndless && samples->high > kLongestWindow)) {
      bad(f.interval.offset, fmt::format("the interval spans {} samples", samples->high == kEndless ? samples->low : samples->high),
          fmt::format("at most {}", kLongestWindow), "Without an end, an interval takes no memory: [a:].");
      return {};
    }
    return *samples;
  }

  // --- Numbers ------------------------------------------------------------------------------------------------------------------------

  Number number(const Formula& f) {
    switch (f.op) {
      case Op::kNumber:
        return Quantity{constant(f.number), f.text};
      case Op::kChannel:
      case Op::kEveryChannel: {
        const auto channel = f.op == Op::kEveryChannel ? every_ : named(f);
        if (!channel) return {};
        return Quantity{*made({.kind = NodeKind::kChannel, .a = static_cast<std::uint32_t>(*channel)}),
                        graph_.schema.channels[*channel].unit};
      }
      case Op::kNegate: {
        const Number a = number(f.operands[0]);
        if (!a) return {};
        return Quantity{arithmetic(NodeKind::kNegate, a->node, 0), a->unit};
      }
      case Op::kAdd:
      case Op::kSubtract:
        return sum_of(f, f.op == Op::kAdd ? NodeKind::kAdd : NodeKind::kSubtract);
      case Op::kMultiply:
      case Op::kDivide: {
        const Number a = number(f.operands[0]), b = a ? number(f.operands[1]) : Number{};
        if (!a || !b) return {};
        const bool times = f.op == Op::kMultiply;
        // A product of units fits any.
        const std::string unit = b->unit.empty() ? a->unit : times && a->unit.empty() ? b->unit : "";
        return Quantity{arithmetic(times ? NodeKind::kMultiply : NodeKind::kDivide, a->node, b->node), unit};
      }
      case Op::kCall:
        return call(f);
      case Op::kUser:
        return own_call(f);
      default:
        bad(f.offset, fmt::format("'{}' is true or false, not a number", print(f)), "a number", "Join conditions with and, or, not.");
        return {};
    }
  }

  Number sum_of(const Formula& f, NodeKind kind) {
    const Number a = number(f.operands[0]), b = a ? number(f.operands[1]) : Number{};
    if (!a || !b || !same_unit(*a, *b, f.operands[0], f.operands[1])) return {};
    return Quantity{arithmetic(kind, a->node, b->node), a->unit.empty() ? b->unit : a->unit};
  }

  Number own_call(const Formula& f) {
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < f.operands.size(); ++i) {
      const Number argument = number(f.operands[i]);
      if (!argument) return {};
      const std::uint32_t a = argument->node;
      last = *made({.kind = NodeKind::kArgument, .a = a, .b = i == 0 ? a : last});
    }
    auto& known = graph_.functions;
    const auto found = std::find(known.begin(), known.end(), f.function);
    const auto index = found - known.begin();
    if (found == known.end()) known.push_back(f.function);
    return Quantity{*made({.kind = NodeKind::kUser, .a = last, .low = index, .high = static_cast<std::int64_t>(f.operands.size())}),
                    f.function->unit};
  }

  Number call(const Formula& f) {
    if (f.text == "hour" || f.text == "weekday") {
      if (graph_.schema.step_ns == 0) {
        bad(f.offset, fmt::format("{}() needs times, but rows are counted", f.text), "a signal with a time column", "");
        return {};
      }
      return Quantity{*made({.kind = f.text == "hour" ? NodeKind::kHour : NodeKind::kWeekday}), ""};
    }
    if (f.text == "rate" || f.text == "accel" || f.text == "derivative") return derivative(f);
    if (f.text == "prev") return previous(f);
    if (const auto samples = window_of(f)) return windowed_number(f, *samples);
    if (error_) return {};
    if (f.text == "integral" || f.text == "variance" || f.text == "trend") {
      bad(f.operands[1].offset, fmt::format("'{}' is no window", print(f.operands[1])), "a time such as 10s, or 10 [samples]", "");
      return {};
    }
    return combined(f);
  }

  // abs, min, max, sum, mean and the norms of a list.
  Number combined(const Formula& f) {
    Number all;
    const std::vector<Formula> parts = every_ ? f.operands : listed(f, graph_.schema);
    for (const Formula& part : parts) {
      Number next = number(part);
      if (!next) return {};
      if (f.text == "norm") next->node = arithmetic(NodeKind::kMultiply, next->node, next->node);
      if (f.text == "norm1" || f.text == "norminf" || f.text == "abs") next->node = arithmetic(NodeKind::kAbs, next->node, 0);
      if (!all) {
        all = next;
        continue;
      }
      if (!same_unit(*all, *next, parts.front(), part)) return {};
      const NodeKind kind = f.text == "min"                          ? NodeKind::kLesser
                            : f.text == "max" || f.text == "norminf" ? NodeKind::kGreater
                                                                     : NodeKind::kAdd;
      all->node = arithmetic(kind, all->node, next->node);
      if (all->unit.empty()) all->unit = next->unit;
    }
    if (!all) {
      bad(f.offset, "there is no predicted channel to add", "a channel", "");
      return {};
    }
    if (f.text == "mean") all->node = arithmetic(NodeKind::kDivide, all->node, constant(static_cast<double>(parts.size())));
    if (f.text == "norm") all->node = arithmetic(NodeKind::kRoot, all->node, 0);
    return all;
  }

  // rate(x) = derivative(x, 1), accel(x) = derivative(x, 2): differences over the time passed, taken one after another.
  Number derivative(const Formula& f) {
    constexpr double kHighestOrder = 8;
    double order = f.text == "accel" ? 2 : 1;
    if (f.text == "derivative") {
      const Formula& given = f.operands[1];
      if (given.op != Op::kNumber || given.number != std::floor(given.number) || given.number < 1 || given.number > kHighestOrder) {
        bad(given.offset, fmt::format("'{}' is no order of a derivative", print(given)), "a whole number from 1 to 8", "");
        return {};
      }
      order = given.number;
    }
    Number x = number(f.operands[0]);
    if (!x) return {};
    const char* per = graph_.schema.step_ns == 0 ? "row" : "s";
    for (int i = 0; i < static_cast<int>(order); ++i) x->node = *made({.kind = NodeKind::kRate, .from = f.from, .a = x->node});
    x->unit = order == 1 ? fmt::format("{}/{}", x->unit.empty() ? "*" : x->unit, per)
                         : fmt::format("{}/{}{}", x->unit.empty() ? "*" : x->unit, per, static_cast<int>(order));
    return x;
  }

  Number previous(const Formula& f) {
    const Number x = number(f.operands[0]);
    if (!x) return {};
    std::int64_t samples = 1;
    if (f.operands.size() == 2) {
      const auto count = samples_of(f.operands[1], true);
      if (!count) return {};
      samples = *count;
    }
    return Quantity{*made({.kind = NodeKind::kPrevious, .from = f.from, .a = x->node, .low = samples}), x->unit};
  }

  // mean(x, 10s): the window, where the last argument is a time.
  std::optional<std::int64_t> window_of(const Formula& f) {
    const bool can =
        f.text == "mean" || f.text == "min" || f.text == "max" || f.text == "integral" || f.text == "variance" || f.text == "trend";
    if (!can || f.operands.size() != 2 || f.operands[1].op != Op::kNumber) return {};
    const bool count = f.text == "integral" || f.text == "variance" || f.text == "trend";
    const std::string& unit = f.operands[1].text;
    if (!nanoseconds(unit) && unit != "samples" && !(count && unit.empty())) return {};
    return samples_of(f.operands[1], false);
  }

  std::optional<std::int64_t> samples_of(const Formula& f, bool zero_is_fine) {
    if (f.op != Op::kNumber) {
      bad(f.offset, fmt::format("'{}' is no number of samples", print(f)), "a whole number, or a time such as 10s", "");
      return {};
    }
    Interval span;
    span.given = true;
    span.low = span.high = f.number;
    span.low_unit = span.high_unit = f.text;
    span.offset = f.offset;
    const auto samples = sample_interval(span, graph_.schema.step_ns, source_);
    if (!samples) {
      if (!error_) error_ = samples.error();
      return {};
    }
    if (samples->high > kLongestWindow || (samples->high == 0 && !zero_is_fine)) {
      bad(f.offset, fmt::format("{} samples", samples->high), fmt::format("1 to {}", kLongestWindow), "");
      return {};
    }
    return samples->high;
  }

  Number windowed_number(const Formula& f, std::int64_t samples) {
    const Number x = number(f.operands[0]);
    if (!x) return {};
    const NodeKind kind = f.text == "mean"       ? NodeKind::kWindowMean
                          : f.text == "min"      ? NodeKind::kWindowLeast
                          : f.text == "max"      ? NodeKind::kWindowMost
                          : f.text == "variance" ? NodeKind::kWindowVariance
                          : f.text == "trend"    ? NodeKind::kWindowTrend
                                                 : NodeKind::kWindowIntegral;
    std::string unit = x->unit;
    const char* per = graph_.schema.step_ns == 0 ? "row" : "s";
    if (kind == NodeKind::kWindowTrend) unit = fmt::format("{}/{}", unit.empty() ? "*" : unit, per);
    if (kind == NodeKind::kWindowVariance || kind == NodeKind::kWindowIntegral) unit.clear();
    return Quantity{*made({.kind = kind, .a = x->node, .low = samples}), unit};
  }

  std::optional<std::size_t> named(const Formula& f) {
    auto channel = channel_named(f.text, graph_.schema, source_, f.offset);
    if (channel) return *channel;
    if (!error_) error_ = std::move(channel.error());
    return {};
  }

  bool same_unit(const Quantity& a, const Quantity& b, const Formula& left, const Formula& right) {
    if (units_fit(a.unit, b.unit)) return true;
    const bool constant_left = graph_.nodes[a.node].kind == NodeKind::kConstant;
    bad(right.offset,
        fmt::format("the units differ: '{}' is in {}, '{}' is in {}", print(left), unit_named(a.unit), print(right), unit_named(b.unit)),
        fmt::format("both in {}", unit_named(constant_left ? b.unit : a.unit)), "Only units that measure the same are converted.");
    return false;
  }

  // --- Nodes --------------------------------------------------------------------------------------------------------------------------

  std::uint32_t constant(double value) { return *made({.kind = NodeKind::kConstant, .number = value}); }
  std::uint32_t arithmetic(NodeKind kind, std::uint32_t a, std::uint32_t b) { return *made({.kind = kind, .a = a, .b = b}); }
  Index compared(NodeKind kind, const Quantity& a, const Quantity& b) { return made({.kind = kind, .a = a.node, .b = b.node}); }
  Index two(NodeKind kind, std::uint32_t a, std::uint32_t b) { return made({.kind = kind, .a = a, .b = b}); }
  Index step(NodeKind kind, std::uint32_t a, bool weak) { return made({.kind = kind, .weak = weak, .a = a}); }
  Index negated(Index a) {
    if (!a) return {};
    if (graph_.nodes[*a].kind == NodeKind::kNot) return graph_.nodes[*a].a;
    return made({.kind = NodeKind::kNot, .a = *a});
  }

  // The node, or the equal one that is there already.
  Index made(Node node) {
    measure(node);
    std::vector<std::uint32_t>& bucket = builder_.by_hash_[bucket_of(node)];
    for (const std::uint32_t index : bucket) {
      if (graph_.nodes[index].same(node)) return index;
    }
    const auto index = static_cast<std::uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back(node);
    bucket.push_back(index);
    return index;
  }

  void measure(Node& node) const {
    if (!is_condition(node.kind) || node.kind == NodeKind::kTruth || node.kind == NodeKind::kLess || node.kind == NodeKind::kLessEqual ||
        node.kind == NodeKind::kEqual) {
      return;
    }
    const bool binary =
        node.kind == NodeKind::kAnd || node.kind == NodeKind::kOr || node.kind == NodeKind::kUntil || node.kind == NodeKind::kSince;
    const Node& a = graph_.nodes[node.a];
    const Node& b = binary ? graph_.nodes[node.b] : a;
    node.horizon = std::max(a.horizon, b.horizon);
    node.reach = std::max(a.reach, b.reach);
    if (node.kind == NodeKind::kShift) node.horizon = plus(a.horizon, 1);
    if (node.kind == NodeKind::kAlways || node.kind == NodeKind::kEventually) node.horizon = plus(a.horizon, node.high);
    if (node.kind == NodeKind::kUntil) {
      node.horizon = plus(b.horizon, node.high);
      if (node.high > 0) node.horizon = std::max(node.horizon, plus(a.horizon, node.high - 1));
    }
    if (node.kind == NodeKind::kBack) node.reach += 1;
    if (node.kind == NodeKind::kHistorically || node.kind == NodeKind::kOnce || node.kind == NodeKind::kSince) {
      node.reach += node.high == kEndless ? node.low : node.high;
    }
  }

  void bad(std::size_t offset, std::string what, std::string expected, std::string hint) {
    if (!error_) error_ = Error{Fault::kBadInput, std::move(what), source_.place(offset), std::move(expected), std::move(hint)};
  }

  GraphBuilder& builder_;
  NodeGraph& graph_;
  const Source& source_;
  std::optional<std::size_t> every_;
  std::optional<Error> error_;
};

std::int64_t NodeGraph::horizon() const {
  std::int64_t most = 0;
  for (const std::uint32_t root : roots) most = std::max(most, nodes[root].horizon);
  return most;
}

double NodeGraph::call(const Node& node, std::span<const double> values, std::span<double> slopes) const noexcept {
  std::array<double, kMostUserArguments> x{};
  const auto count = static_cast<std::size_t>(node.high);
  std::uint32_t argument = node.a;
  for (std::size_t i = count; i-- > 0; argument = nodes[argument].b) x[i] = values[nodes[argument].a];
  return functions[static_cast<std::size_t>(node.low)]->value({x.data(), count}, slopes);
}

GraphBuilder::GraphBuilder(Schema schema) : by_hash_(kBuckets) { graph_.schema = std::move(schema); }

Result<std::uint32_t> GraphBuilder::add(const Formula& formula, const Source& source) {
  return GraphWriter(*this, source).run(in_common_units(formula, graph_.schema));
}

Result<NodeGraph> build_graph(const Formula& formula, const Schema& schema, const Source& source) {
  GraphBuilder builder(schema);
  if (auto root = builder.add(formula, source); !root) return tl::unexpected(root.error());
  return builder.take();
}

}  // namespace kizzasi::logic
