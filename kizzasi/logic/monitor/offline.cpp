#include "kizzasi/logic/monitor/offline.h"

#include <algorithm>

#include "kizzasi/logic/monitor/numbers.h"

namespace kizzasi::logic {
namespace {

// The fold of every window [i, min(i + width, n) - 1] of `in`, by blocks; `fold(left, right)`.
template <typename T, typename Fold>
std::vector<T> windows(const std::vector<T>& in, std::size_t width, const Fold& fold) {
  const std::size_t n = in.size();
  width = std::min(width, std::max<std::size_t>(n, 1));
  std::vector<T> prefix(in), suffix(in), out(in);
  for (std::size_t i = 1; i < n; ++i) {
    if (i % width != 0) prefix[i] = fold(prefix[i - 1], in[i]);
  }
  for (std::size_t i = n; i-- > 1;) {
    if (i % width != 0) suffix[i - 1] = fold(in[i - 1], suffix[i]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t last = std::min(i + width, n) - 1;
    if (i / width != last / width) {
      out[i] = fold(suffix[i], prefix[last]);
    } else {
      out[i] = i % width == 0 ? prefix[last] : suffix[i];  // inside one block the window is a whole prefix or, cut, a whole suffix
    }
  }
  return out;
}

template <typename V>
class Evaluator {
  using L = Lattice<V>;
  using Values = std::vector<V>;

 public:
  // `beyond`: what lies past the computed positions of a trace that goes on.
  Evaluator(const NodeGraph& graph, std::size_t positions, bool goes_on) : graph_(graph), n_(positions), goes_on_(goes_on) {}

  // `atoms`: (nodes) the comparisons, at every position; the rest is filled in.
  void run(std::vector<Values>& at) const {
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (is_condition(node.kind) && at[i].empty()) at[i] = value(node, at);
    }
  }

 private:
  std::size_t clipped(std::int64_t samples) const {
    return static_cast<std::size_t>(std::min<std::int64_t>(samples, static_cast<std::int64_t>(n_)));
  }

  Values value(const Node& node, const std::vector<Values>& at) const {
    switch (node.kind) {
      case NodeKind::kTruth:
        return Values(n_, node.weak ? L::top() : L::bottom());
      case NodeKind::kNot:
        return each(at[node.a], L::complement);
      case NodeKind::kAnd:
        return both(at[node.a], at[node.b], L::meet);
      case NodeKind::kOr:
        return both(at[node.a], at[node.b], L::join);
      case NodeKind::kShift:
        return ahead_one(at[node.a], goes_on_ ? L::unknown() : node.weak ? L::top() : L::bottom());
      case NodeKind::kBack:
        return behind_one(at[node.a], node.weak ? L::top() : L::bottom());
      case NodeKind::kAlways:
        return ahead(node, at[node.a], L::meet, L::top());
      case NodeKind::kEventually:
        return ahead(node, at[node.a], L::join, L::bottom());
      case NodeKind::kHistorically:
        return behind(node, at[node.a], L::meet, L::top());
      case NodeKind::kOnce:
        return behind(node, at[node.a], L::join, L::bottom());
      case NodeKind::kUntil:
        return until(node, at[node.a], at[node.b]);
      default:
        return since(node, at[node.a], at[node.b]);
    }
  }

  template <typename Change>
  Values each(const Values& a, const Change& change) const {
    Values out(n_);
    for (std::size_t t = 0; t < n_; ++t) out[t] = change(a[t]);
    return out;
  }
  template <typename Join>
  Values both(const Values& a, const Values& b, const Join& join) const {
    Values out(n_);
    for (std::size_t t = 0; t < n_; ++t) out[t] = join(a[t], b[t]);
    return out;
  }
  Values ahead_one(const Values& a, V last) const {
    Values out(n_, last);
    for (std::size_t t = 0; t + 1 < n_; ++t) out[t] = a[t + 1];
    return out;
  }
  Values behind_one(const Values& a, V first) const {
    Values out(n_, first);
    for (std::size_t t = 1; t < n_; ++t) out[t] = a[t - 1];
    return out;
  }

  // Does the window of position t, `high` samples ahead, run past the computed positions of a trace that goes on?
  bool runs_past(std::size_t t, std::int64_t high) const {
    return goes_on_ && (high == kEndless || static_cast<std::int64_t>(t) + high > static_cast<std::int64_t>(n_) - 1);
  }

  template <typename Fold>
  Values ahead(const Node& node, const Values& a, const Fold& fold, V empty) const {
    const std::size_t low = clipped(node.low), width = node.high == kEndless ? n_ : clipped(node.high - node.low + 1);
    const Values folded = windows(a, std::max<std::size_t>(width, 1), fold);
    Values out(n_, empty);
    for (std::size_t t = 0; t < n_; ++t) {
      if (t + low < n_) out[t] = folded[t + low];
      if (runs_past(t, node.high)) out[t] = fold(out[t], L::unknown());
    }
    return out;
  }

  template <typename Fold>
  Values behind(const Node& node, const Values& a, const Fold& fold, V empty) const {
    Values turned(a.rbegin(), a.rend());
    const std::size_t low = clipped(node.low), width = node.high == kEndless ? n_ : clipped(node.high - node.low + 1);
    const Values folded = windows(turned, std::max<std::size_t>(width, 1), fold);
    Values out(n_, empty);
    for (std::size_t t = 0; t < n_; ++t) {
      if (t >= low) out[t] = folded[n_ - 1 - (t - low)];
    }
    return out;
  }

  // join over s in [t + i, t + j] of meet(b(s), a on [t, s)): the window's elements are y -> b or (a and y), folded from its end.
  Values until(const Node& node, const Values& a, const Values& b) const {
    std::vector<Clamp<V>> elements(n_);
    for (std::size_t t = 0; t < n_; ++t) elements[t] = join_of(b[t], a[t]);
    const auto compose = [](const Clamp<V>& left, const Clamp<V>& right) { return left.after(right); };
    const std::size_t low = clipped(node.low), width = node.high == kEndless ? n_ : clipped(node.high - node.low + 1);
    const auto folded = windows(elements, std::max<std::size_t>(width, 1), compose);
    const Values before = low == 0 ? Values(n_, L::top()) : windows(a, low, L::meet);
    Values out(n_, L::bottom());
    for (std::size_t t = 0; t < n_; ++t) {
      // Past the end, the rest of the window is unknown: so is what the last element sees.
      const bool past = runs_past(t, node.high);
      const V rest = past ? L::unknown() : L::bottom();
      if (t + low < n_) {
        out[t] = folded[t + low](rest);
        if (low > 0) out[t] = L::meet(out[t], before[t]);
      } else if (past) {
        out[t] = low > 0 ? L::meet(rest, before[t]) : rest;
      }
    }
    return out;
  }

  Values since(const Node& node, const Values& a, const Values& b) const {
    std::vector<Clamp<V>> elements(n_);
    for (std::size_t t = 0; t < n_; ++t) elements[n_ - 1 - t] = join_of(b[t], a[t]);
    const auto compose = [](const Clamp<V>& left, const Clamp<V>& right) { return left.after(right); };
    const std::size_t low = clipped(node.low), width = node.high == kEndless ? n_ : clipped(node.high - node.low + 1);
    const auto folded = windows(elements, std::max<std::size_t>(width, 1), compose);
    const Values turned(a.rbegin(), a.rend());
    const Values after = low == 0 ? Values{} : windows(turned, low, L::meet);
    Values out(n_, L::bottom());
    for (std::size_t t = low; t < n_; ++t) {
      out[t] = folded[n_ - 1 - (t - low)](L::bottom());
      if (low > 0) out[t] = L::meet(out[t], after[n_ - 1 - t]);
    }
    return out;
  }

  const NodeGraph& graph_;
  std::size_t n_;
  bool goes_on_;
};

bool is_comparison(NodeKind kind) { return kind == NodeKind::kLess || kind == NodeKind::kLessEqual || kind == NodeKind::kEqual; }

// Positions of a trace that goes on which past samples can still tell something about, beyond those that are known.
std::size_t beyond(const NodeGraph& graph) {
  std::int64_t most = 2;
  for (const Node& node : graph.nodes) {
    // Endless operators hold bounded ones whose windows reach on: each adds what it spans itself.
    if (!is_condition(node.kind) || node.kind == NodeKind::kTruth) continue;
    if (node.kind == NodeKind::kShift || node.kind == NodeKind::kBack) most += 1;
    if (node.kind >= NodeKind::kAlways) most += node.high == kEndless ? node.low : node.high;
  }
  return static_cast<std::size_t>(most);
}

}  // namespace

std::vector<Judgement> judge(const NodeGraph& graph, std::span<const double> frames, std::span<const std::int64_t> times, TraceEnd end) {
  const std::size_t channels = graph.schema.size(), rows = frames.size() / channels;
  const bool goes_on = end == TraceEnd::kGoesOn;
  const std::size_t positions = rows + (goes_on ? beyond(graph) : 0);
  std::vector<std::vector<Verdict>> truth(graph.nodes.size());
  std::vector<std::vector<Robustness>> robustness(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_comparison(graph.nodes[i].kind)) continue;
    truth[i].assign(positions, Lattice<Verdict>::unknown());
    robustness[i].assign(positions, Lattice<Robustness>::unknown());
  }
  const Numbers numbers(graph);
  std::vector<double> state(numbers.state_doubles()), values(graph.nodes.size());
  numbers.reset(state);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t time = times.empty() ? static_cast<std::int64_t>(row) * graph.schema.step_ns : times[row];
    numbers.step(graph, state, time, frames.subspan(row * channels, channels), values);
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      if (!is_comparison(graph.nodes[i].kind)) continue;
      truth[i][row] = truth_of(graph, i, values);
      robustness[i][row] = robustness_of(graph, i, values);
    }
  }
  if (positions > 0) {
    Evaluator<Verdict>(graph, positions, goes_on).run(truth);
    Evaluator<Robustness>(graph, positions, goes_on).run(robustness);
  }
  std::vector<Judgement> out;
  for (const std::uint32_t root : graph.roots) {
    Judgement one{truth[root], robustness[root]};
    one.truth.resize(rows);
    one.robustness.resize(rows);
    out.push_back(std::move(one));
  }
  return out;
}

Verdict sign_of(const Robustness& robustness) { return robustness.low > 0 ? 1 : robustness.high < 0 ? -1 : 0; }
char letter(Verdict verdict) { return verdict > 0 ? 'T' : verdict < 0 ? 'F' : '?'; }

}  // namespace kizzasi::logic
