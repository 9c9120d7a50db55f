#include "kizzasi/logic/monitor/smooth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kizzasi/logic/monitor/numbers.h"

namespace kizzasi::logic {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A tape of scalars: each value with the values it was made of and their weights.
class Tape {
 public:
  struct Entry {
    double value = 0, adjoint = 0;
    std::size_t first = 0, count = 0;  // into parents_
  };
  using Ref = std::uint32_t;

  Ref leaf(double value) { return push(value, {}); }
  Ref one(double value, Ref a, double weight) {
    const Parent parent[] = {{a, weight}};
    return push(value, parent);
  }
  Ref two(double value, Ref a, double wa, Ref b, double wb) {
    const Parent parents[] = {{a, wa}, {b, wb}};
    return push(value, parents);
  }
  Ref many(double value, std::span<const Ref> of, std::span<const double> weights) {
    std::vector<Parent> parents;
    for (std::size_t i = 0; i < of.size(); ++i) parents.push_back({of[i], weights[i]});
    return push(value, parents);
  }
  double value(Ref at) const { return entries_[at].value; }
  double adjoint(Ref at) const { return entries_[at].adjoint; }

  // The smooth maximum of `sign` times each, times sign.
  Ref smooth(std::vector<Ref> items, double sign, SmoothKind kind, double k) {
    double top = -kInf;
    for (const Ref item : items) top = std::max(top, sign * value(item));
    if (items.empty() || std::isinf(top)) return leaf(items.empty() ? sign * -kInf : sign * top);
    double total = 0, weighted = 0;
    std::vector<Parent> parents;
    for (const Ref item : items) {
      const double x = sign * value(item), share = std::exp(k * (x - top));
      parents.push_back({item, share});
      total += share;
      if (share > 0) weighted += share * x;
    }
    const double mean = weighted / total;
    for (Parent& parent : parents) {
      const double share = parent.weight / total;
      parent.weight = share == 0 ? 0 : kind == SmoothKind::kLogSumExp ? share : share * (1 + k * (sign * value(parent.of) - mean));
    }
    const double value = kind == SmoothKind::kLogSumExp ? top + std::log(total) / k : mean;
    return push(sign * value, parents);
  }

  void add_adjoint(Ref at, double weight) { entries_[at].adjoint += weight; }
  void backward() {
    for (std::size_t i = entries_.size(); i-- > 0;) {
      const Entry& entry = entries_[i];
      if (entry.adjoint == 0) continue;
      for (std::size_t p = entry.first; p < entry.first + entry.count; ++p)
        entries_[parents_[p].of].adjoint += parents_[p].weight * entry.adjoint;
    }
  }

 private:
  struct Parent {
    Ref of = 0;
    double weight = 0;
  };
  Ref push(double value, std::span<const Parent> parents) {
    entries_.push_back({value, 0, parents_.size(), parents.size()});
    parents_.insert(parents_.end(), parents.begin(), parents.end());
    return static_cast<Ref>(entries_.size() - 1);
  }
  std::vector<Entry> entries_;
  std::vector<Parent> parents_;
};

}  // namespace

class SmoothTrace::Smoother {
 public:
  Smoother(const NodeGraph& graph, std::span<const double> frames, std::span<const std::int64_t> times, SmoothKind kind, double k,
           std::span<const std::uint8_t> moving)
      : graph_(graph),
        frames_(frames),
        times_(times),
        moving_(moving),
        zone_hours_(times.empty() ? 0 : zone_hours_of(graph.schema.zone)),
        channels_(graph.schema.size()),
        rows_(frames.size() / channels_),
        kind_(kind),
        k_(k),
        made_(graph.nodes.size() * rows_, kNone) {
    for (const double x : frames) leaves_.push_back(tape.leaf(x));
  }

  Tape tape;

  // The value of a node at a position, made once.
  Tape::Ref at(std::uint32_t node, std::size_t t) {
    Tape::Ref& slot = made_[node * rows_ + t];
    if (slot == kNone) {
      const bool is_number = !is_condition(graph_.nodes[node].kind);
      Tape::Ref ref = is_number ? number(graph_.nodes[node], t) : condition(graph_.nodes[node], t);
      if (!is_number && !moving_.empty() && moving_[node] == 0) ref = truth(graph_.nodes[node], tape.value(ref));
      slot = ref;
    }
    return slot;
  }
  Tape::Ref leaf(std::size_t at) const { return leaves_[at]; }  // (rows, channels)

 private:
  static constexpr Tape::Ref kNone = std::numeric_limits<Tape::Ref>::max();

  Tape::Ref lowest(std::vector<Tape::Ref> items) { return tape.smooth(std::move(items), -1, kind_, k_); }
  Tape::Ref highest(std::vector<Tape::Ref> items) { return tape.smooth(std::move(items), 1, kind_, k_); }
  Tape::Ref negated(Tape::Ref a) { return tape.one(-tape.value(a), a, -1); }
  Tape::Ref truth(const Node& node, double value) {
    if (std::isnan(value)) return tape.leaf(value);
    return constant(node.kind == NodeKind::kLess ? value > 0 : value >= 0);
  }
  Tape::Ref constant(bool top) { return tape.leaf(top ? kInf : -kInf); }

  Tape::Ref condition(const Node& node, std::size_t t) {
    switch (node.kind) {
      case NodeKind::kTruth:
        return constant(node.weak);
      case NodeKind::kLess:
      case NodeKind::kLessEqual:
        return difference(at(node.b, t), at(node.a, t));
      case NodeKind::kEqual:
        return negated(absolute(difference(at(node.a, t), at(node.b, t))));
      case NodeKind::kNot:
        return negated(at(node.a, t));
      case NodeKind::kAnd:
        return lowest({at(node.a, t), at(node.b, t)});
      case NodeKind::kOr:
        return highest({at(node.a, t), at(node.b, t)});
      case NodeKind::kShift:
        return t + 1 < rows_ ? at(node.a, t + 1) : constant(node.weak);
      case NodeKind::kBack:
        return t > 0 ? at(node.a, t - 1) : constant(node.weak);
      case NodeKind::kAlways:
        return lowest(range(node.a, ahead(node, t)));
      case NodeKind::kEventually:
        return highest(range(node.a, ahead(node, t)));
      case NodeKind::kHistorically:
        return lowest(range(node.a, behind(node, t)));
      case NodeKind::kOnce:
        return highest(range(node.a, behind(node, t)));
      default:
        return spanned(node, t);
    }
  }

  struct Span {
    std::size_t begin = 0, end = 0;  // half open
  };
  Span ahead(const Node& node, std::size_t t) const {
    const std::size_t begin = std::min(t + static_cast<std::size_t>(node.low), rows_);
    const std::size_t end = node.high == kEndless ? rows_ : std::min(t + static_cast<std::size_t>(node.high) + 1, rows_);
    return {begin, std::max(begin, end)};
  }
  Span behind(const Node& node, std::size_t t) const {
    const auto low = static_cast<std::size_t>(node.low);
    if (t < low) return {};
    const std::size_t begin =
        node.high == kEndless || t < static_cast<std::size_t>(node.high) ? 0 : t - static_cast<std::size_t>(node.high);
    return {begin, t - low + 1};
  }
  std::vector<Tape::Ref> range(std::uint32_t node, Span span) {
    std::vector<Tape::Ref> out;
    for (std::size_t s = span.begin; s < span.end; ++s) out.push_back(at(node, s));
    return out;
  }

  Tape::Ref spanned(const Node& node, std::size_t t) {
    const bool until = node.kind == NodeKind::kUntil;
    const Span span = until ? ahead(node, t) : behind(node, t);
    std::vector<Tape::Ref> witnesses;
    for (std::size_t s = span.begin; s < span.end; ++s) {
      std::vector<Tape::Ref> all = range(node.a, until ? Span{t, s} : Span{s + 1, t + 1});
      all.insert(all.begin(), at(node.b, s));
      witnesses.push_back(lowest(std::move(all)));
    }
    return highest(std::move(witnesses));
  }

  Tape::Ref difference(Tape::Ref a, Tape::Ref b) { return tape.two(tape.value(a) - tape.value(b), a, 1, b, -1); }
  Tape::Ref absolute(Tape::Ref a) {
    const double x = tape.value(a);
    return tape.one(std::abs(x), a, x > 0 ? 1 : x < 0 ? -1 : 0);
  }

  Tape::Ref number(const Node& node, std::size_t t) {
    switch (node.kind) {
      case NodeKind::kConstant:
        return tape.leaf(node.number);
      case NodeKind::kChannel:
        return leaf(t * channels_ + node.a);
      case NodeKind::kNegate:
        return negated(at(node.a, t));
      case NodeKind::kAbs:
        return absolute(at(node.a, t));
      case NodeKind::kRoot: {
        const Tape::Ref a = at(node.a, t);
        const double root = std::sqrt(tape.value(a));
        return tape.one(root, a, root > 0 ? 0.5 / root : 0);
      }
      case NodeKind::kAdd:
      case NodeKind::kSubtract:
      case NodeKind::kMultiply:
      case NodeKind::kDivide:
      case NodeKind::kLesser:
      case NodeKind::kGreater:
        return arithmetic(node, at(node.a, t), at(node.b, t));
      case NodeKind::kUser: {
        std::vector<Tape::Ref> arguments(static_cast<std::size_t>(node.high));
        std::vector<double> x(arguments.size()), slopes(arguments.size());
        std::uint32_t argument = node.a;
        for (std::size_t i = arguments.size(); i-- > 0; argument = graph_.nodes[argument].b) {
          arguments[i] = at(graph_.nodes[argument].a, t);
          x[i] = tape.value(arguments[i]);
        }
        const double value = graph_.functions[static_cast<std::size_t>(node.low)]->value(x, slopes);
        return tape.many(value, arguments, slopes);
      }
      case NodeKind::kPrevious:
        return t >= static_cast<std::size_t>(node.low) ? at(node.a, t - static_cast<std::size_t>(node.low)) : tape.leaf(missing());
      case NodeKind::kRate: {
        if (t == 0) return tape.leaf(missing());
        const Tape::Ref change = difference(at(node.a, t), at(node.a, t - 1));
        return tape.one(tape.value(change) / step(), change, 1 / step());
      }
      case NodeKind::kHour:
        return tape.leaf(times_.empty() ? missing() : std::fmod(week_hours(times_[t], zone_hours_), 24.0));
      case NodeKind::kWeekday:
        return tape.leaf(times_.empty() ? missing() : std::floor(week_hours(times_[t], zone_hours_) / 24) + 1);
      default:
        return windowed(node, t);
    }
  }

  Tape::Ref arithmetic(const Node& node, Tape::Ref a, Tape::Ref b) {
    const double x = tape.value(a), y = tape.value(b);
    switch (node.kind) {
      case NodeKind::kAdd:
        return tape.two(x + y, a, 1, b, 1);
      case NodeKind::kSubtract:
        return difference(a, b);
      case NodeKind::kMultiply:
        return tape.two(x * y, a, y, b, x);
      case NodeKind::kDivide:
        return tape.two(x / y, a, 1 / y, b, -x / (y * y));
      case NodeKind::kLesser:
        return tape.two(std::min(x, y), a, x <= y ? 1 : 0, b, x <= y ? 0 : 1);
      default:
        return tape.two(std::max(x, y), a, x >= y ? 1 : 0, b, x >= y ? 0 : 1);
    }
  }

  static double missing() { return std::numeric_limits<double>::quiet_NaN(); }
  double step() const { return graph_.schema.step_ns > 0 ? static_cast<double>(graph_.schema.step_ns) / 1e9 : 1; }

  Tape::Ref windowed(const Node& node, std::size_t t) {
    const auto width = static_cast<std::size_t>(node.low);
    const std::size_t begin = t + 1 >= width ? t + 1 - width : 0;
    const std::vector<Tape::Ref> items = range(node.a, {begin, t + 1});
    const auto count = static_cast<double>(items.size());
    if (node.kind == NodeKind::kWindowLeast || node.kind == NodeKind::kWindowMost) {
      const double sign = node.kind == NodeKind::kWindowMost ? 1 : -1;
      const auto best = std::max_element(items.begin(), items.end(),
                                         [&](Tape::Ref a, Tape::Ref b) { return sign * tape.value(a) < sign * tape.value(b); });
      return tape.one(tape.value(*best), *best, 1);
    }
    double mean = 0;
    for (const Tape::Ref item : items) mean += tape.value(item) / count;
    // Each of the rest is a sum of weight(i) * item(i), or a square of one.
    double value = 0, square = 0;
    std::vector<double> weights(items.size(), 0.0);
    const double middle = (count - 1) / 2, spread = count * (count * count - 1) / 12;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const double x = tape.value(items[i]), place = static_cast<double>(i) - middle;
      switch (node.kind) {
        case NodeKind::kWindowMean:
          weights[i] = 1 / count;
          break;
        case NodeKind::kWindowIntegral:
          weights[i] = step();
          break;
        case NodeKind::kWindowTrend:
          weights[i] = count < 2 ? 0 : place / spread / step();
          break;
        default:
          weights[i] = 2 * (x - mean) / count;
          square += (x - mean) * (x - mean) / count;
      }
      value += weights[i] * x;
    }
    Tape::Ref sum = tape.leaf(node.kind == NodeKind::kWindowVariance ? square - value : 0);
    for (std::size_t i = 0; i < items.size(); ++i) {
      sum = tape.two(tape.value(sum) + weights[i] * tape.value(items[i]), sum, 1, items[i], weights[i]);
    }
    return sum;
  }

  const NodeGraph& graph_;
  std::span<const double> frames_;
  std::span<const std::int64_t> times_;
  std::span<const std::uint8_t> moving_;
  double zone_hours_;
  std::size_t channels_, rows_;
  SmoothKind kind_;
  double k_;
  std::vector<Tape::Ref> leaves_, made_;
};

SmoothTrace::SmoothTrace(const NodeGraph& graph, std::span<const double> frames, std::span<const std::int64_t> times, SmoothKind kind,
                         double k, std::span<const std::uint8_t> moving)
    : smoother_(std::make_unique<Smoother>(graph, frames, times, kind, k, moving)) {}
SmoothTrace::SmoothTrace(SmoothTrace&&) noexcept = default;
SmoothTrace::~SmoothTrace() = default;

double SmoothTrace::value(std::uint32_t node, std::size_t position) { return smoother_->tape.value(smoother_->at(node, position)); }

void SmoothTrace::add(std::uint32_t node, std::size_t position, double weight) {
  smoother_->tape.add_adjoint(smoother_->at(node, position), weight);
}

void SmoothTrace::gradient(double factor, std::span<double> gradient) {
  smoother_->tape.backward();
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += factor * smoother_->tape.adjoint(smoother_->leaf(i));
}

Result<double> smooth_robustness(const NodeGraph& graph, std::span<const double> frames, std::size_t position, SmoothKind kind, double k,
                                 std::span<double> gradient) {
  const std::size_t channels = graph.schema.size(), rows = frames.size() / channels;
  if (!(k > 0) || !std::isfinite(k)) return fail({Fault::kBadUse, fmt::format("k = {}", k), "smooth robustness", "a number above 0", ""});
  if (position >= rows) {
    return fail({Fault::kBadUse, fmt::format("position {} of a trace of {} samples", position, rows), "smooth robustness",
                 fmt::format("0 to {}", rows == 0 ? 0 : rows - 1), ""});
  }
  const auto bad = std::find_if(frames.begin(), frames.end(), [](double x) { return !std::isfinite(x); });
  if (bad != frames.end()) {
    const auto at = static_cast<std::size_t>(bad - frames.begin());
    return fail({Fault::kBadInput,
                 fmt::format("the value of '{}' at sample {} is {}", graph.schema.channels[at % channels].name, at / channels, *bad),
                 "smooth robustness", "finite values", "Fill or leave out what is missing."});
  }
  SmoothTrace trace(graph, frames, {}, kind, k, {});
  const std::uint32_t root = graph.roots.front();
  const double value = trace.value(root, position);
  if (std::isnan(value)) {
    return fail({Fault::kBadInput, fmt::format("the formula has no value at sample {}: it looks back to before the start", position),
                 "smooth robustness", "a later position, or an interval that begins later", ""});
  }
  if (gradient.empty()) return value;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  trace.add(root, position, 1);
  trace.gradient(1, gradient);
  return value;
}

}  // namespace kizzasi::logic
