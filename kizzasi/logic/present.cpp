#include "kizzasi/logic/present.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kizzasi/logic/monitor/arithmetic.h"
#include "kizzasi/logic/monitor/numbers.h"

namespace kizzasi::logic {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool is_window(NodeKind kind) { return kind >= NodeKind::kWindowMean && kind <= NodeKind::kWindowIntegral; }
bool is_unary(NodeKind kind) {
  return kind == NodeKind::kUser || kind == NodeKind::kNegate || kind == NodeKind::kAbs || kind == NodeKind::kRoot ||
         kind == NodeKind::kPrevious || kind == NodeKind::kRate || is_window(kind);
}
bool is_leaf(NodeKind kind) {
  return kind == NodeKind::kConstant || kind == NodeKind::kChannel || kind == NodeKind::kHour || kind == NodeKind::kWeekday ||
         kind == NodeKind::kTruth;
}

// The state of what looks back: how many values were remembered (up to the length of the ring), the place of the next, then the ring.
struct Ring {
  const double* own;
  std::int64_t length;
  std::int64_t held() const noexcept { return static_cast<std::int64_t>(own[0]); }
  double ago(std::int64_t k) const noexcept {  // 1: the newest
    const std::int64_t next = static_cast<std::int64_t>(own[1]);
    return own[2 + (next - k + length) % length];
  }
};

// The i-th oldest of the past of a window, then what the past gives to it, the present being the last of `count`.
void recall_window(const Node& node, const Ring& ring, double step_s, double* out) noexcept {
  const std::int64_t past = std::min(ring.held(), node.low - 1);
  const double count = static_cast<double>(past + 1);
  double sum = 0;
  switch (node.kind) {
    case NodeKind::kWindowMean:
    case NodeKind::kWindowIntegral:
      for (std::int64_t k = past; k >= 1; --k) sum += ring.ago(k);
      out[0] = sum;
      out[1] = node.kind == NodeKind::kWindowMean ? count : step_s;
      break;
    case NodeKind::kWindowLeast:
    case NodeKind::kWindowMost:
      out[0] = past == 0 ? 0 : ring.ago(past);
      for (std::int64_t k = past - 1; k >= 1; --k) {
        out[0] = node.kind == NodeKind::kWindowLeast ? lesser(out[0], ring.ago(k)) : greater(out[0], ring.ago(k));
      }
      out[1] = static_cast<double>(past);
      break;
    case NodeKind::kWindowVariance: {
      for (std::int64_t k = past; k >= 1; --k) sum += ring.ago(k);
      const double mean = past == 0 ? 0 : sum / static_cast<double>(past);
      double square = 0;
      for (std::int64_t k = past; k >= 1; --k) square += (ring.ago(k) - mean) * (ring.ago(k) - mean);
      out[0] = mean;
      out[1] = square;
      out[2] = count;
      break;
    }
    default: {  // the slope of the least-squares line: sum of (place - middle) * value over the sum of (place - middle)^2
      const double middle = static_cast<double>(past) / 2;
      double spread = middle * middle;
      for (std::int64_t k = past; k >= 1; --k) {
        const double place = static_cast<double>(past - k) - middle;
        sum += place * ring.ago(k);
        spread += place * place;
      }
      out[0] = sum;
      out[1] = middle;
      out[2] = past == 0 ? 0 : spread * step_s;
    }
  }
}

}  // namespace

Present::Present(const NodeGraph& graph) : graph_(graph), offset_(graph.nodes.size(), 0) {
  zone_hours_ = zone_hours_of(graph.schema.zone);
  step_s_ = graph.schema.step_ns > 0 ? static_cast<double>(graph.schema.step_ns) / 1e9 : 1;
  std::size_t at = 1;  // the time of the last frame
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!remembers(node)) continue;
    offset_[i] = at;
    at += 2 + static_cast<std::size_t>(is_window(node.kind)           ? std::max<std::int64_t>(1, node.low - 1)
                                       : node.kind == NodeKind::kRate ? 1
                                                                      : node.low);
  }
  state_doubles_ = at;
}

// prev(x, 1) and rate(x) of a channel stand in the guard's past.
bool Present::remembers(const Node& node) const noexcept {
  const bool channel = graph_.nodes[node.a].kind == NodeKind::kChannel;
  if (node.kind == NodeKind::kPrevious) return node.low > 1 || (node.low == 1 && !channel);
  if (node.kind == NodeKind::kRate) return !channel;
  return is_window(node.kind);
}

void Present::reset(std::span<double> state) const noexcept {
  std::fill(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(state_doubles_), 0.0);
}

void Present::recall(std::span<const double> state, const Past& past, std::int64_t time_ns, std::span<double> recalled) const noexcept {
  Moment moment;
  moment.past = past;
  moment.time_ns = time_ns;
  moment.timed = graph_.schema.step_ns > 0;
  std::int64_t last = 0;
  std::memcpy(&last, state.data(), sizeof last);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    double* out = recalled.data() + i * kRecalled;
    const double* own = state.data() + offset_[i];
    const From from = node.from == From::kCommanded ? From::kCommanded : From::kMeasured;
    if (node.kind == NodeKind::kHour) out[0] = std::fmod(week_hours(time_ns, zone_hours_), 24.0);
    if (node.kind == NodeKind::kWeekday) out[0] = std::floor(week_hours(time_ns, zone_hours_) / 24) + 1;
    if (node.kind == NodeKind::kPrevious) {
      const Ring ring{own, node.low};
      if (!remembers(node))
        out[0] = node.low == 0 ? kNaN : past.value(graph_.nodes[node.a].a, from);
      else
        out[0] = ring.held() < node.low ? kNaN : ring.ago(node.low);
    }
    if (node.kind == NodeKind::kRate) {
      if (!remembers(node)) {
        out[0] = past.value(graph_.nodes[node.a].a, from);
        out[1] = moment.elapsed(graph_.nodes[node.a].a, from);
      } else {
        const Ring ring{own, 1};
        out[0] = ring.held() == 0 ? kNaN : ring.ago(1);
        out[1] = !moment.timed     ? 1
                 : time_ns <= last ? 0
                                   : static_cast<double>(static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(last)) / 1e9;
      }
    }
    if (is_window(node.kind)) recall_window(node, {own, std::max<std::int64_t>(1, node.low - 1)}, step_s_, out);
  }
}

void Present::evaluate(std::span<const std::uint32_t> order, std::span<const double> recalled, std::span<const double> frame,
                       std::span<double> values) const noexcept {
  for (const std::uint32_t i : order) {
    const Node& node = graph_.nodes[i];
    const double* past = recalled.data() + i * kRecalled;
    const double a = values[node.a], b = values[node.b];
    double& out = values[i];
    switch (node.kind) {
      case NodeKind::kConstant:
        out = node.number;
        break;
      case NodeKind::kChannel:
        out = frame[node.a];
        break;
      case NodeKind::kHour:
      case NodeKind::kWeekday:
        out = past[0];
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
        out = arithmetic(node.kind, a, b);
        break;
      case NodeKind::kArgument:
        out = a;
        break;
      case NodeKind::kUser:
        out = graph_.call(node, values);
        break;
      case NodeKind::kPrevious:
        out = node.low == 0 ? a : past[0];
        break;
      case NodeKind::kRate:  // in no time nothing may move
        out = past[1] == 0 && a == past[0] ? 0 : (a - past[0]) / past[1];
        break;
      case NodeKind::kWindowMean:
        out = (past[0] + a) / past[1];
        break;
      case NodeKind::kWindowIntegral:
        out = (past[0] + a) * past[1];
        break;
      case NodeKind::kWindowLeast:
        out = past[1] == 0 ? a : lesser(past[0], a);
        break;
      case NodeKind::kWindowMost:
        out = past[1] == 0 ? a : greater(past[0], a);
        break;
      case NodeKind::kWindowVariance:
        out = past[2] == 1 ? a - a : (past[1] + (a - past[0]) * (a - past[0]) * ((past[2] - 1) / past[2])) / past[2];
        break;
      case NodeKind::kWindowTrend:
        out = past[2] == 0 ? a - a : (past[0] + past[1] * a) / past[2];
        break;
      default:
        break;
    }
  }
}

void Present::add_slopes(std::uint32_t of, double factor, std::span<const std::uint32_t> order, std::span<const double> recalled,
                         std::span<const double> values, std::span<double> adjoint, std::span<double> slopes) const noexcept {
  for (const std::uint32_t i : order) adjoint[i] = 0;
  adjoint[of] = factor;
  for (std::size_t k = order.size(); k-- > 0;) {
    const std::uint32_t i = order[k];
    const Node& node = graph_.nodes[i];
    const double* past = recalled.data() + i * kRecalled;
    const double by = adjoint[i];
    if (by == 0) continue;
    double& a = adjoint[node.a];
    double& b = adjoint[node.b];
    switch (node.kind) {
      case NodeKind::kChannel:
        slopes[node.a] += by;
        break;
      case NodeKind::kNegate:
        a -= by;
        break;
      case NodeKind::kAdd:
        a += by;
        b += by;
        break;
      case NodeKind::kSubtract:
        a += by;
        b -= by;
        break;
      case NodeKind::kMultiply:
        a += by * values[node.b];
        b += by * values[node.a];
        break;
      case NodeKind::kDivide:
        a += by / values[node.b];
        break;
      case NodeKind::kAbs:
        a += values[node.a] < 0 ? -by : by;
        break;
      case NodeKind::kLesser:
        (values[node.a] <= values[node.b] ? a : b) += by;
        break;
      case NodeKind::kGreater:
        (values[node.a] >= values[node.b] ? a : b) += by;
        break;
      case NodeKind::kRoot:
        if (values[i] > 0) a += by / (2 * values[i]);
        break;
      case NodeKind::kUser: {  // past its chain of arguments, to what they are
        std::array<double, kMostUserArguments> inner{};
        const auto count = static_cast<std::size_t>(node.high);
        (void)graph_.call(node, values, std::span(inner).first(count));
        std::uint32_t argument = node.a;
        for (std::size_t n = count; n-- > 0; argument = graph_.nodes[argument].b) adjoint[graph_.nodes[argument].a] += by * inner[n];
        break;
      }
      case NodeKind::kPrevious:
        if (node.low == 0) a += by;
        break;
      case NodeKind::kRate:
        a += by / past[1];
        break;
      case NodeKind::kWindowMean:
        a += by / past[1];
        break;
      case NodeKind::kWindowIntegral:
        a += by * past[1];
        break;
      case NodeKind::kWindowLeast:
      case NodeKind::kWindowMost:
        if (values[i] == values[node.a]) a += by;
        break;
      case NodeKind::kWindowVariance:
        a += by * 2 * (values[node.a] - past[0]) * ((past[2] - 1) / past[2]) / past[2];
        break;
      case NodeKind::kWindowTrend:
        if (past[2] != 0) a += by * past[1] / past[2];
        break;
      default:
        break;
    }
  }
}

void Present::accept(std::span<double> state, std::int64_t time_ns, std::span<const double> seen,
                     std::span<const double> sent) const noexcept {
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (!remembers(node)) continue;
    double* own = state.data() + offset_[i];
    const std::int64_t length = is_window(node.kind)           ? std::max<std::int64_t>(1, node.low - 1)
                                : node.kind == NodeKind::kRate ? 1
                                                               : node.low;
    const std::int64_t next = static_cast<std::int64_t>(own[1]);
    own[2 + next] = (node.from == From::kCommanded ? sent : seen)[node.a];
    own[1] = static_cast<double>(next + 1 == length ? 0 : next + 1);
    if (own[0] < static_cast<double>(length)) own[0] += 1;
  }
  std::memcpy(state.data(), &time_ns, sizeof time_ns);
}

std::vector<std::uint32_t> Present::order_of(std::uint32_t root) const {
  std::vector<bool> used(graph_.nodes.size(), false);
  used[root] = true;
  for (std::uint32_t i = root + 1; i-- > 0;) {
    const Node& node = graph_.nodes[i];
    if (!used[i] || is_leaf(node.kind)) continue;
    used[node.a] = true;
    if (!is_unary(node.kind)) used[node.b] = true;
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i <= root; ++i) {
    if (used[i] && !is_condition(graph_.nodes[i].kind)) order.push_back(i);
  }
  return order;
}

double Present::magnitude(std::uint32_t index, std::span<const double> values) const noexcept {
  const Node& node = graph_.nodes[index];
  switch (node.kind) {
    case NodeKind::kAdd:
    case NodeKind::kSubtract:
      return magnitude(node.a, values) + magnitude(node.b, values);
    case NodeKind::kMultiply:
      return magnitude(node.a, values) * magnitude(node.b, values);
    case NodeKind::kDivide:
      return magnitude(node.a, values) / std::abs(values[node.b]);
    case NodeKind::kNegate:
    case NodeKind::kAbs:
      return magnitude(node.a, values);
    default:
      return std::abs(values[index]);
  }
}

}  // namespace kizzasi::logic
