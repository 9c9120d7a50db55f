#include "kizzasi/logic/monitor/numbers.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kizzasi/logic/monitor/arithmetic.h"
#include "kizzasi/logic/monitor/block_window.h"
#include "kizzasi/logic/predicate.h"

namespace kizzasi::logic {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Count, means, and sums of squared deviations of the values and of their places; joined as in Chan, Golub and LeVeque (1983).
struct Moments {
  double count = 0, mean = 0, square = 0, place = 0, place_square = 0, product = 0;
};
constexpr std::int64_t kMomentsDoubles = sizeof(Moments) / sizeof(double);

Moments joined(const Moments& a, const Moments& b) noexcept {
  const double count = a.count + b.count, share = a.count * b.count / count;
  const double value = b.mean - a.mean, place = b.place - a.place;
  return {count,
          a.mean + value * b.count / count,
          a.square + b.square + value * value * share,
          a.place + place * b.count / count,
          a.place_square + b.place_square + place * place * share,
          a.product + b.product + value * place * share};
}

bool is_window(NodeKind kind) { return kind >= NodeKind::kWindowMean && kind <= NodeKind::kWindowIntegral; }
bool is_extreme(NodeKind kind) { return kind == NodeKind::kWindowLeast || kind == NodeKind::kWindowMost; }

// Counters live among the doubles, so that the whole state is one span of them.
std::int64_t counter(const double& at) noexcept {
  std::int64_t value = 0;
  std::memcpy(&value, &at, sizeof value);
  return value;
}
void store(double& at, std::int64_t value) noexcept { std::memcpy(&at, &value, sizeof value); }

// Two counters, the running element, then the buffer.
template <typename T, typename Fold>
T push(double* state, std::int64_t width, const T& element, const Fold& fold) noexcept {
  std::int64_t at = counter(state[0]), full = counter(state[1]);
  T running;
  std::memcpy(static_cast<void*>(&running), state + 2, sizeof running);
  T* buffer = reinterpret_cast<T*>(state + 2 + sizeof(T) / sizeof(double));
  const T out = BlockWindow<T>{buffer, &running, &at, &full}.push(width, element, fold);
  store(state[0], at);
  store(state[1], full);
  std::memcpy(state + 2, static_cast<const void*>(&running), sizeof running);
  return out;
}

double windowed(const Node& node, double* state, double value, double step_s) noexcept {
  if (node.kind == NodeKind::kWindowLeast) return push(state, node.low, value, lesser);
  if (node.kind == NodeKind::kWindowMost) return push(state, node.low, value, greater);
  // Places count from the start of the block before last, so that they stay small for ever.
  double& place = state[2 + kMomentsDoubles + node.low * kMomentsDoubles];
  const Moments m = push(state, node.low, Moments{1, value, 0, place, 0, 0}, joined);
  place += 1;
  if (counter(state[0]) == 0) {  // a block has ended: its suffixes and what follows move back by one width
    place -= static_cast<double>(node.low);
    Moments* buffer = reinterpret_cast<Moments*>(state + 2 + kMomentsDoubles);
    for (std::int64_t i = 0; i < node.low; ++i) buffer[i].place -= static_cast<double>(node.low);
  }
  switch (node.kind) {
    case NodeKind::kWindowMean:
      return m.mean;
    case NodeKind::kWindowVariance:
      return m.square / m.count;
    case NodeKind::kWindowIntegral:
      return m.mean * m.count * step_s;
    default:  // one sample has no slope
      return m.count < 2 ? (std::isnan(m.mean) ? kNaN : 0) : m.product / m.place_square / step_s;
  }
}

// On what scale a number is exact: the sum of the sizes of its terms.
double magnitude(const NodeGraph& graph, std::uint32_t index, std::span<const double> values) noexcept {
  const Node& node = graph.nodes[index];
  switch (node.kind) {
    case NodeKind::kAdd:
    case NodeKind::kSubtract:
      return magnitude(graph, node.a, values) + magnitude(graph, node.b, values);
    case NodeKind::kMultiply:
      return magnitude(graph, node.a, values) * magnitude(graph, node.b, values);
    case NodeKind::kDivide:
      return magnitude(graph, node.a, values) / std::abs(values[node.b]);
    case NodeKind::kNegate:
    case NodeKind::kAbs:
      return magnitude(graph, node.a, values);
    default:
      return std::abs(values[index]);
  }
}

}  // namespace

double zone_hours_of(std::string_view zone) {
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return 0;
  const double hours = std::atof(std::string(zone.substr(1, 2)).c_str()) + std::atof(std::string(zone.substr(4, 2)).c_str()) / 60;
  return zone[0] == '-' ? -hours : hours;
}

double week_hours(std::int64_t time_ns, double zone_hours) noexcept {
  constexpr std::int64_t kWeek = std::int64_t{7} * 24 * 3600 * 1'000'000'000, kThursday = std::int64_t{3} * 24 * 3600 * 1'000'000'000;
  const std::int64_t shifted = (time_ns % kWeek + kThursday + static_cast<std::int64_t>(zone_hours * 3600e9) + 2 * kWeek) % kWeek;
  return static_cast<double>(shifted) / 3600e9;
}

Numbers::Numbers(const NodeGraph& graph, const std::vector<bool>& skipped) : offset_(graph.nodes.size(), 0) {
  zone_hours_ = zone_hours_of(graph.schema.zone);
  std::size_t at = 1;  // the time of the last sample
  std::int64_t longest_chain = 0;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (is_condition(node.kind) || (!skipped.empty() && skipped[i])) continue;
    order_.push_back(i);
    offset_[i] = at;
    if (node.kind == NodeKind::kPrevious) at += static_cast<std::size_t>(node.low) + 1;
    if (node.kind == NodeKind::kRate) at += 1;
    if (is_window(node.kind)) {
      at += is_extreme(node.kind) ? static_cast<std::size_t>(3 + node.low) : static_cast<std::size_t>(3 + kMomentsDoubles * (node.low + 1));
    }
    longest_chain += node.kind == NodeKind::kRate ? 1 : node.kind == NodeKind::kPrevious || is_window(node.kind) ? 2 * node.low : 0;
  }
  state_doubles_ = at;
  memory_ = longest_chain;
}

void Numbers::reset(std::span<double> state) const noexcept {
  std::fill(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(state_doubles_), 0.0);
}

void Numbers::step(const NodeGraph& graph, std::span<double> state, std::int64_t time_ns, std::span<const double> frame,
                   std::span<double> values) const noexcept {
  const bool timed = graph.schema.step_ns > 0;
  const double step_s = timed ? static_cast<double>(graph.schema.step_ns) / 1e9 : 1;
  const std::int64_t before = counter(state[0]);
  if (order_.empty()) {
    store(state[0], time_ns);
    return;
  }
  const double passed = !timed ? 1 : static_cast<double>(static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(before)) / 1e9;
  for (const std::uint32_t i : order_) {
    const Node& node = graph.nodes[i];
    double* own = state.data() + offset_[i];
    double& out = values[i];
    switch (node.kind) {
      case NodeKind::kConstant:
        out = node.number;
        break;
      case NodeKind::kChannel:
        out = frame[node.a];
        break;
      case NodeKind::kHour:
        out = std::fmod(week_hours(time_ns, zone_hours_), 24.0);
        break;
      case NodeKind::kWeekday:
        out = std::floor(week_hours(time_ns, zone_hours_) / 24) + 1;
        break;
      case NodeKind::kNegate:
      case NodeKind::kAdd:
      case NodeKind::kSubtract:
      case NodeKind::kMultiply:
      case NodeKind::kDivide:
      case NodeKind::kAbs:
      case NodeKind::kLesser:
      case NodeKind::kGreater:
      case NodeKind::kRoot:
        out = arithmetic(node.kind, values[node.a], values[node.b]);
        break;
      case NodeKind::kArgument:
        out = values[node.a];
        break;
      case NodeKind::kUser:
        out = graph.call(node, values);
        break;
      case NodeKind::kPrevious: {
        const std::int64_t seen = counter(own[0]);
        if (node.low == 0) {
          out = values[node.a];
          break;
        }
        double& slot = own[1 + seen % node.low];
        out = seen < node.low ? kNaN : slot;
        slot = values[node.a];
        store(own[0], seen + 1 >= 2 * node.low ? seen + 1 - node.low : seen + 1);  // stays small, keeps its place in the ring
        break;
      }
      case NodeKind::kRate: {
        // The state holds the value's bits turned over, so that a state of zeros means "none yet".
        const std::int64_t last = ~counter(own[0]);
        double previous = kNaN;
        if (last != -1) std::memcpy(&previous, &last, sizeof previous);
        const double now = values[node.a];
        out = passed == 0 && now == previous ? 0 : (now - previous) / passed;  // in no time nothing may move
        std::int64_t bits = 0;
        std::memcpy(&bits, &now, sizeof bits);
        store(own[0], ~bits);
        break;
      }
      default:
        out = windowed(node, own, values[node.a], step_s);
    }
  }
  store(state[0], time_ns);
}

Verdict truth_of(const NodeGraph& graph, std::uint32_t index, std::span<const double> values) noexcept {
  const Node& node = graph.nodes[index];
  const double a = values[node.a], b = values[node.b];
  if (std::isnan(a) || std::isnan(b)) return 0;
  if (node.kind == NodeKind::kLess) return a < b ? 1 : -1;
  if (node.kind == NodeKind::kLessEqual) return a <= b ? 1 : -1;
  if (a == b) return 1;
  const double gap = std::abs(a - b);
  return std::isfinite(gap) && gap <= kEqualityEps * (magnitude(graph, node.a, values) + magnitude(graph, node.b, values)) ? 1 : -1;
}

Robustness robustness_of(const NodeGraph& graph, std::uint32_t index, std::span<const double> values) noexcept {
  const Node& node = graph.nodes[index];
  const double a = values[node.a], b = values[node.b];
  const double margin = node.kind == NodeKind::kEqual ? -std::abs(a - b) : b - a;
  if (std::isnan(margin)) return Lattice<Robustness>::unknown();
  return {margin, margin};
}

}  // namespace kizzasi::logic
