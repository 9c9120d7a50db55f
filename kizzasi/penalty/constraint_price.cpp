#include "kizzasi/penalty/constraint_price.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/logic/monitor/numbers.h"
#include "kizzasi/logic/monitor/offline.h"
#include "kizzasi/logic/monitor/smooth.h"

namespace kizzasi {

using logic::kEndless;
using logic::Node;
using logic::NodeGraph;
using logic::NodeKind;

struct ConstraintPrice::Parts {
  struct Condition {
    std::string label;
    std::uint32_t node = 0;
    std::vector<std::uint8_t> reads;  // (channels)
    double unit = 1;
  };
  struct Constraint {
    NodeGraph graph;                   // its roots are the conditions
    std::vector<std::uint8_t> moving;  // (nodes) those that read a predicted channel
    std::size_t first = 0, count = 0;
    double weight = 1;
    double k = 1;
  };
  std::vector<Constraint> constraints;
  std::vector<Condition> conditions;
  std::vector<double> scale;
  double sharpness = 1;
  std::size_t past = 1;

  template <typename Visit>
  void each_position(const NodeGraph& graph, const Condition& condition, std::size_t rows, std::size_t known, const Visit& visit) const {
    const std::int64_t horizon = graph.nodes[condition.node].horizon;
    if (horizon == kEndless || static_cast<std::size_t>(horizon) >= rows) {
      const std::size_t end = horizon == kEndless ? rows : std::min(rows, known + 1);
      for (std::size_t t = known; t < end; ++t) visit(t);
      return;
    }
    const auto ahead = static_cast<std::size_t>(horizon);
    for (std::size_t t = known - std::min(known, ahead); t + ahead < rows; ++t) visit(t);
  }
};

namespace {

constexpr double kRounding = 1e-6;
constexpr double kHard = 1e12;  // sharpness of true minima and maxima

// What must hold together, each by itself.
void take_apart(const NodeGraph& graph, std::uint32_t node, std::vector<std::uint32_t>& out) {
  const Node& n = graph.nodes[node];
  if (n.kind == NodeKind::kAnd) {
    take_apart(graph, n.a, out);
    take_apart(graph, n.b, out);
  } else if (n.kind == NodeKind::kAlways && n.low == 0 && n.high == kEndless) {
    take_apart(graph, n.a, out);
  } else if (!(n.kind == NodeKind::kTruth && n.weak) && std::find(out.begin(), out.end(), node) == out.end()) {
    out.push_back(node);
  }
}

bool is_leaf(NodeKind kind) {
  return kind == NodeKind::kChannel || kind == NodeKind::kConstant || kind == NodeKind::kHour || kind == NodeKind::kWeekday ||
         kind == NodeKind::kTruth;
}

bool has_two(NodeKind kind) {
  switch (kind) {
    case NodeKind::kAdd:
    case NodeKind::kSubtract:
    case NodeKind::kMultiply:
    case NodeKind::kDivide:
    case NodeKind::kLesser:
    case NodeKind::kGreater:
    case NodeKind::kArgument:
    case NodeKind::kLess:
    case NodeKind::kLessEqual:
    case NodeKind::kEqual:
    case NodeKind::kAnd:
    case NodeKind::kOr:
    case NodeKind::kUntil:
    case NodeKind::kSince:
      return true;
    default:
      return false;
  }
}

// The channels that each node reads: (nodes, channels).
std::vector<std::uint8_t> readers(const NodeGraph& graph) {
  const std::size_t channels = graph.schema.size();
  std::vector<std::uint8_t> reads(graph.nodes.size() * channels, 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (n.kind == NodeKind::kChannel) reads[i * channels + n.a] = 1;
    if (is_leaf(n.kind)) continue;
    for (std::size_t c = 0; c < channels; ++c) {
      const bool first = reads[n.a * channels + c] != 0, second = has_two(n.kind) && reads[n.b * channels + c] != 0;
      if (first || second) reads[i * channels + c] = 1;
    }
  }
  return reads;
}

bool looks_back_for_ever(const NodeGraph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) {
    const bool past = n.kind == NodeKind::kHistorically || n.kind == NodeKind::kOnce || n.kind == NodeKind::kSince;
    return past && n.high == kEndless;
  });
}

}  // namespace

ConstraintPrice::ConstraintPrice(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ConstraintPrice::ConstraintPrice(ConstraintPrice&&) noexcept = default;
ConstraintPrice& ConstraintPrice::operator=(ConstraintPrice&&) noexcept = default;
ConstraintPrice::~ConstraintPrice() = default;

Result<ConstraintPrice> ConstraintPrice::compile(const Schema& schema, std::span<const ConstraintText> constraints,
                                                 std::span<const double> channel_scale, std::size_t most_past, double sharpness) {
  auto parts = std::make_unique<Parts>();
  parts->scale.assign(channel_scale.begin(), channel_scale.end());
  parts->sharpness = sharpness;
  for (const ConstraintText& text : constraints) {
    const logic::Source source = logic::source_of(text);
    const auto formula = logic::parse_formula(source);
    if (!formula) return fail(formula.error());
    auto graph = logic::build_graph(*formula, schema, source);
    if (!graph) return fail(graph.error());
    if (text.otherwise == "warn") continue;
    std::vector<std::uint32_t> nodes;
    take_apart(*graph, graph->roots.front(), nodes);
    const std::size_t first = parts->conditions.size();
    const std::vector<std::uint8_t> reads = readers(*graph);
    const auto target = [&](std::size_t c) { return schema.channels[c].role == Role::kTarget; };
    std::vector<std::uint8_t> moving(graph->nodes.size(), 0);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (reads[i] != 0 && target(i % schema.size())) moving[i / schema.size()] = 1;
    }
    std::int64_t reach = 0;
    for (const std::uint32_t node : nodes) {
      if (moving[node] == 0) continue;  // no prediction can keep or break it
      const auto own = reads.begin() + static_cast<std::ptrdiff_t>(node * schema.size());
      Parts::Condition condition{text.name.empty() ? text.that : text.name, node, {own, own + static_cast<std::ptrdiff_t>(schema.size())}};
      if (nodes.size() > 1) condition.label += fmt::format(" [{}]", parts->conditions.size() - first + 1);
      const Node& n = graph->nodes[node];
      const bool endless = looks_back_for_ever(*graph);
      const auto most = static_cast<std::int64_t>(std::max<std::size_t>(most_past, 1));
      reach = std::max(reach, std::min(n.reach + (n.horizon == kEndless ? 0 : n.horizon), most * 64) + (endless ? most : 0));
      parts->conditions.push_back(std::move(condition));
    }
    if (parts->conditions.size() == first) continue;
    const auto memory = static_cast<std::size_t>(std::max<std::int64_t>(logic::Numbers(*graph).memory(), 1));
    parts->past = std::max(parts->past, memory + static_cast<std::size_t>(reach));
    graph->roots.clear();
    for (std::size_t i = first; i < parts->conditions.size(); ++i) graph->roots.push_back(parts->conditions[i].node);
    parts->constraints.push_back({std::move(*graph), std::move(moving), first, parts->conditions.size() - first, text.weight, sharpness});
  }
  return ConstraintPrice(std::move(parts));
}

void ConstraintPrice::measure(std::span<const PricedBlock> samples) {
  const std::size_t channels = parts_->scale.size();
  std::vector<double> gradient;
  for (Parts::Constraint& constraint : parts_->constraints) {
    double largest = 0;
    for (std::size_t i = constraint.first; i < constraint.first + constraint.count; ++i) {
      Parts::Condition& condition = parts_->conditions[i];
      double total = 0;
      std::size_t n = 0;
      for (const PricedBlock& block : samples) {
        const std::size_t rows = block.times.size();
        std::size_t seen = 0;
        parts_->each_position(constraint.graph, condition, rows, block.past, [&](std::size_t t) {
          if (seen++ > 0) return;  // one a block
          logic::SmoothTrace trace(constraint.graph, block.frames, block.times, logic::SmoothKind::kLogSumExp, kHard, constraint.moving);
          if (!std::isfinite(trace.value(condition.node, t))) return;
          gradient.assign(rows * channels, 0.0);
          trace.add(condition.node, t, 1);
          trace.gradient(1, gradient);
          double square = 0;
          for (std::size_t j = 0; j < gradient.size(); ++j) {
            const double slope = gradient[j] * parts_->scale[j % channels];
            square += slope * slope;
          }
          if (std::isfinite(square)) total += std::sqrt(square), ++n;
        });
      }
      condition.unit = n > 0 && total > 0 ? total / static_cast<double>(n) : 1;
      largest = std::max(largest, condition.unit);
    }
    constraint.k = parts_->sharpness / largest;
  }
}

std::size_t ConstraintPrice::conditions() const noexcept { return parts_->conditions.size(); }
const std::string& ConstraintPrice::label(std::size_t condition) const noexcept { return parts_->conditions[condition].label; }
double ConstraintPrice::unit(std::size_t condition) const noexcept { return parts_->conditions[condition].unit; }
std::size_t ConstraintPrice::past() const noexcept { return parts_->past; }

double ConstraintPrice::price(const PenaltyConfig& config, const PricedBlock& block, std::span<const double> weights,
                              std::span<const double> multipliers, std::span<const std::uint8_t> about, std::span<double> gradient,
                              std::span<ConditionSum> sums) const {
  const PenaltyKind kind = config.kind();
  double total = 0;
  for (const Parts::Constraint& constraint : parts_->constraints) {
    logic::SmoothTrace trace(constraint.graph, block.frames, block.times, logic::SmoothKind::kLogSumExp, constraint.k, constraint.moving);
    bool slopes = false;
    for (std::size_t i = constraint.first; i < constraint.first + constraint.count; ++i) {
      const Parts::Condition& condition = parts_->conditions[i];
      bool asked = about.empty();
      for (std::size_t c = 0; c < about.size(); ++c) asked |= about[c] != 0 && condition.reads[c] != 0;
      if (!asked) continue;
      parts_->each_position(constraint.graph, condition, block.times.size(), block.past, [&](std::size_t t) {
        const double g = -trace.value(condition.node, t) / condition.unit;
        if (!std::isfinite(g)) return;
        double slope = 0;
        total += constraint.weight * price_of(kind, config.penalty_width, weights[i], multipliers[i], g + config.penalty_margin, slope);
        if (slope != 0 && !gradient.empty()) {
          trace.add(condition.node, t, -constraint.weight * slope / condition.unit);
          slopes = true;
        }
        if (sums.empty()) return;
        sums[i].violation += std::max(g, 0.0);
        ++sums[i].checks;
        sums[i].broken += g > kRounding;
      });
    }
    if (slopes) trace.gradient(1, gradient);
  }
  return total;
}

void ConstraintPrice::judge(const PricedBlock& block, std::span<ConditionSum> sums) const {
  for (const Parts::Constraint& constraint : parts_->constraints) {
    const auto judged = logic::judge(constraint.graph, block.frames, block.times, logic::TraceEnd::kEnds);
    logic::SmoothTrace trace(constraint.graph, block.frames, block.times, logic::SmoothKind::kLogSumExp, kHard, constraint.moving);
    for (std::size_t i = 0; i < constraint.count; ++i) {
      const std::size_t at = constraint.first + i;
      const Parts::Condition& condition = parts_->conditions[at];
      parts_->each_position(constraint.graph, condition, block.times.size(), block.past, [&](std::size_t t) {
        if (judged[i].truth[t] == 0) return;  // it reads a missing value
        ++sums[at].checks;
        const double g = -trace.value(condition.node, t) / condition.unit;
        if (judged[i].truth[t] > 0 || !std::isfinite(g)) return;  // infinite: nothing that is predicted decides
        sums[at].violation += std::max(g, 0.0);
        sums[at].broken += g > kRounding;
      });
    }
  }
}

}  // namespace kizzasi
