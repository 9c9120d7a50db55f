#include "kizzasi/logic/monitor/stage.h"

#include <bit>

namespace kizzasi::logic {
namespace {

constexpr std::int64_t kCounters = 2;  // of one window

bool looks_behind(NodeKind kind) { return kind == NodeKind::kHistorically || kind == NodeKind::kOnce || kind == NodeKind::kSince; }
bool is_comparison(NodeKind kind) { return kind == NodeKind::kLess || kind == NodeKind::kLessEqual || kind == NodeKind::kEqual; }
bool is_binary(NodeKind kind) {
  return kind == NodeKind::kAnd || kind == NodeKind::kOr || kind == NodeKind::kUntil || kind == NodeKind::kSince;
}
bool is_meet(NodeKind kind) { return kind == NodeKind::kAlways || kind == NodeKind::kHistorically; }

// A window's state among the values: the running element, then the buffer. T is V or two of them.
template <typename T, typename V, typename Fold>
T pushed(std::span<V> state, std::size_t at, std::int64_t width, std::int64_t* counters, const T& element, const Fold& fold) noexcept {
  T* own = reinterpret_cast<T*>(state.data() + at);
  return BlockWindow<T>{own + 1, own, counters, counters + 1}.push(width, element, fold);
}

}  // namespace

template <typename V>
Stage<V>::Stage(const NodeGraph& graph, std::span<const Reader> readers) : plans_(graph.nodes.size()) {
  std::vector<std::int64_t> held(graph.nodes.size(), 0);  // how far back from its newest value a node is read
  // Negations are read through.
  const auto bare = [&](std::uint32_t node, bool& complement) {
    while (graph.nodes[node].kind == NodeKind::kNot) {
      node = graph.nodes[node].a;
      complement = !complement;
    }
    return node;
  };
  const auto hold = [&](std::uint32_t node, std::int64_t lag) { held[node] = std::max(held[node], lag); };
  for (const Reader& reader : readers) hold(reader.node, reader.lag);
  std::vector<bool> needed(graph.nodes.size(), false);
  for (const std::uint32_t root : graph.roots) needed[root] = graph.nodes[root].horizon != kEndless;
  for (const Reader& reader : readers) needed[reader.node] = true;
  for (std::uint32_t i = static_cast<std::uint32_t>(graph.nodes.size()); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (!needed[i] || node.kind == NodeKind::kTruth || is_comparison(node.kind)) continue;
    bool unused = false;
    needed[bare(node.a, unused)] = true;
    if (is_binary(node.kind)) needed[bare(node.b, unused)] = true;
  }
  std::vector<std::uint32_t> live;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> operands(graph.nodes.size());
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!needed[i]) continue;
    Plan& plan = plans_[i];
    plan.kind = node.kind;
    plan.weak = node.weak;
    plan.horizon = node.horizon;
    plan.low = node.low;
    live.push_back(i);
    if (node.kind == NodeKind::kTruth || is_comparison(node.kind)) continue;
    const std::uint32_t a = bare(node.a, plan.a.complement), b = bare(is_binary(node.kind) ? node.b : node.a, plan.b.complement);
    operands[i] = {a, b};
    plan.newest_a = graph.nodes[a].horizon;
    plan.newest_b = graph.nodes[b].horizon;
    const std::int64_t lag_a = plan.horizon - plan.newest_a, lag_b = plan.horizon - plan.newest_b;  // of position p behind their newest
    switch (node.kind) {
      case NodeKind::kShift:
        hold(a, lag_a - 1);
        break;
      case NodeKind::kBack:
        hold(a, lag_a + 1);
        break;
      case NodeKind::kAlways:
      case NodeKind::kEventually:
        plan.width = node.high - node.low + 1;
        break;
      case NodeKind::kHistorically:
      case NodeKind::kOnce:
        plan.width = node.high == kEndless ? kEndless : node.high - node.low + 1;
        hold(a, lag_a + node.low);
        break;
      case NodeKind::kSince:
        plan.width = node.high == kEndless ? kEndless : node.high - node.low + 1;
        hold(a, lag_a + node.low);
        hold(b, lag_b + node.low);
        break;
      case NodeKind::kUntil:
        plan.width = node.high - node.low;
        hold(a, lag_a);
        hold(b, lag_b);
        break;
      default:
        hold(a, lag_a);
        hold(b, lag_b);
    }
  }
  for (const std::uint32_t i : live) {
    Plan& plan = plans_[i];
    const auto capacity = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(held[i] + 1)));
    plan.ring = values_;
    plan.mask = capacity - 1;
    values_ += static_cast<std::size_t>(capacity);
    memory_ += capacity;
    plan.counter = counters_;
    const bool past = looks_behind(plan.kind);
    const bool spans = plan.kind == NodeKind::kUntil || plan.kind == NodeKind::kSince;
    const std::size_t each = spans ? 2 : 1;
    if (past || plan.kind == NodeKind::kAlways || plan.kind == NodeKind::kEventually || spans) {
      const std::int64_t buffered = plan.width == kEndless ? 0 : plan.width;
      if (values_ % 2 != 0) ++values_;
      plan.window = values_;
      values_ += each * static_cast<std::size_t>(buffered + 1);
      counters_ += kCounters;
      memory_ += 2 * buffered + plan.low;
    }
    if (spans && plan.low > 0) {
      plan.second = values_;
      values_ += static_cast<std::size_t>(plan.low) + 1;
      counters_ += kCounters;
      memory_ += 2 * plan.low;
    }
    if (is_comparison(plan.kind)) continue;
    const auto locate = [&](Operand& operand, std::uint32_t node) {
      operand.ring = plans_[node].ring;
      operand.mask = plans_[node].mask;
    };
    locate(plan.a, operands[i].first);
    locate(plan.b, operands[i].second);
    order_.push_back(plan);
  }
}

template <typename V>
void Stage<V>::step(std::int64_t n, std::span<V> state, std::span<std::int64_t> counters) const noexcept {
  V* const values = state.data();
  for (const Plan& plan : order_) {
    const std::int64_t p = n - plan.horizon;
    V* const slot = values + plan.ring + static_cast<std::size_t>(p & plan.mask);
    if (p >= 0 && plan.kind == NodeKind::kAnd) {
      *slot = L::meet(read(plan.a, p, values), read(plan.b, p, values));
    } else if (p >= 0 && plan.kind == NodeKind::kOr) {
      *slot = L::join(read(plan.a, p, values), read(plan.b, p, values));
    } else {
      const V out = value(plan, n, p, state, counters);  // windows fill before the first position is decided
      if (p >= 0) *slot = out;
    }
  }
}

template <typename V>
V Stage<V>::value(const Plan& plan, std::int64_t n, std::int64_t p, std::span<V> state, std::span<std::int64_t> counters) const noexcept {
  const auto meet = [](const V& older, const V& newer) { return L::meet(older, newer); };
  const auto join = [](const V& older, const V& newer) { return L::join(older, newer); };
  switch (plan.kind) {
    case NodeKind::kTruth:
      return plan.weak ? L::top() : L::bottom();
    case NodeKind::kAlways:
    case NodeKind::kEventually: {
      const std::int64_t newest = n - plan.newest_a;  // = p + high
      if (newest < 0) return L::unknown();
      const V element = read(plan.a, newest, state.data());
      return is_meet(plan.kind) ? pushed(state, plan.window, plan.width, &counters[plan.counter], element, meet)
                                : pushed(state, plan.window, plan.width, &counters[plan.counter], element, join);
    }
    case NodeKind::kUntil:
      return until(plan, p, state, counters);
    default:
      break;
  }
  if (p < 0) return L::unknown();
  switch (plan.kind) {
    case NodeKind::kNot:
      return L::complement(read(plan.a, p, state.data()));
    case NodeKind::kShift:
      return read(plan.a, p + 1, state.data());
    case NodeKind::kBack:
      return p == 0 ? (plan.weak ? L::top() : L::bottom()) : read(plan.a, p - 1, state.data());
    case NodeKind::kSince:
      return since(plan, p, state, counters);
    default: {  // historically, once
      const V empty = is_meet(plan.kind) ? L::top() : L::bottom();
      if (p < plan.low) return empty;
      const V element = read(plan.a, p - plan.low, state.data());
      if (plan.width == kEndless) {
        V& all = state[plan.window];
        all = p == plan.low ? element : is_meet(plan.kind) ? L::meet(all, element) : L::join(all, element);
        return all;
      }
      return is_meet(plan.kind) ? pushed(state, plan.window, plan.width, &counters[plan.counter], element, meet)
                                : pushed(state, plan.window, plan.width, &counters[plan.counter], element, join);
    }
  }
}

// b(p + low) or (a(p + low) and (b(p + low + 1) or ...)), all of it and a on [p, p + low). The elements of the window end at s = p + high:
// y -> a(s - 1) and (b(s) or y), so that a is needed one sample less far ahead than b.
template <typename V>
V Stage<V>::until(const Plan& plan, std::int64_t p, std::span<V> state, std::span<std::int64_t> counters) const noexcept {
  const std::int64_t s = p + plan.low + plan.width;
  V out = L::bottom();
  if (plan.width > 0 && s >= 1) {
    const auto compose = [](const Clamp<V>& left, const Clamp<V>& right) { return left.after(right); };
    const Clamp<V> element = meet_of(read(plan.a, s - 1, state.data()), read(plan.b, s, state.data()));
    out = pushed(state, plan.window, plan.width, &counters[plan.counter], element, compose)(L::bottom());
  }
  const std::int64_t before = p + plan.low - 1;
  V whole = L::top();
  if (plan.low > 0 && before >= 0) {
    whole = pushed(state, plan.second, plan.low, &counters[plan.counter + kCounters], read(plan.a, before, state.data()),
                   [](const V& x, const V& y) { return L::meet(x, y); });
  }
  if (p < 0) return L::unknown();
  return L::meet(L::join(read(plan.b, p + plan.low, state.data()), out), whole);
}

// join over s in [p - high, p - low] of meet(b(s), a on (s, p]).
template <typename V>
V Stage<V>::since(const Plan& plan, std::int64_t p, std::span<V> state, std::span<std::int64_t> counters) const noexcept {
  V whole = L::top();
  if (plan.low > 0) {
    whole = pushed(state, plan.second, plan.low, &counters[plan.counter + kCounters], read(plan.a, p, state.data()),
                   [](const V& x, const V& y) { return L::meet(x, y); });
  }
  const std::int64_t s = p - plan.low;
  if (s < 0) return L::bottom();
  const Clamp<V> element = join_of(read(plan.b, s, state.data()), read(plan.a, s, state.data()));
  if (plan.width == kEndless) {
    V& all = state[plan.window];
    all = element(s == 0 ? L::bottom() : all);
    return L::meet(all, whole);
  }
  const auto compose = [](const Clamp<V>& older, const Clamp<V>& newer) { return newer.after(older); };
  return L::meet(pushed(state, plan.window, plan.width, &counters[plan.counter], element, compose)(L::bottom()), whole);
}

template class Stage<Verdict>;
template class Stage<Robustness>;

}  // namespace kizzasi::logic
