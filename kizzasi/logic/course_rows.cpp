#include "kizzasi/logic/course_rows.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/logic/monitor/arithmetic.h"
#include "kizzasi/logic/monitor/numbers.h"

namespace kizzasi::logic {
namespace {

Affine number(double value) { return {{}, value, !std::isnan(value)}; }
Affine unknown() { return {{}, 0, false}; }

Affine times(const Affine& a, double factor) { return a.known ? combined(number(0), factor, a) : a; }

bool looks_back(NodeKind kind) {
  return kind == NodeKind::kPrevious || kind == NodeKind::kRate || (kind >= NodeKind::kWindowMean && kind <= NodeKind::kWindowIntegral);
}

}  // namespace

Affine combined(const Affine& a, double factor, const Affine& b) {
  if (!a.known || !b.known) return unknown();
  Affine out;
  out.constant = a.constant + factor * b.constant;
  std::size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const bool left = j == b.terms.size() || (i < a.terms.size() && a.terms[i].first <= b.terms[j].first);
    const bool right = i == a.terms.size() || (j < b.terms.size() && b.terms[j].first <= a.terms[i].first);
    const std::uint32_t variable = left ? a.terms[i].first : b.terms[j].first;
    const double coefficient = (left ? a.terms[i++].second : 0) + (right ? factor * b.terms[j++].second : 0);
    if (coefficient != 0) out.terms.emplace_back(variable, coefficient);
  }
  return out;
}

CourseRows::CourseRows(const NodeGraph& graph, const Course& course)
    : graph_(graph), course_(course), kept_(graph.nodes.size()), keeps_(graph.nodes.size(), 0) {
  zone_hours_ = zone_hours_of(graph.schema.zone);
  step_s_ = graph.schema.step_ns > 0 ? static_cast<double>(graph.schema.step_ns) / 1e9 : 1;
  for (const Node& node : graph.nodes) {
    if (looks_back(node.kind)) keeps_[node.a] = 1;
  }
}

double CourseRows::seconds(std::size_t from, std::size_t to) const {
  if (graph_.schema.step_ns == 0) return 1;
  return static_cast<double>(course_.times[to] - course_.times[from]) / 1e9;
}

Affine CourseRows::at(std::uint32_t node, std::size_t row) {
  if (keeps_[node] == 0) return evaluate(node, row);
  std::vector<Affine>& kept = kept_[node];
  while (kept.size() <= row) {
    Affine next = evaluate(node, kept.size());
    kept.push_back(std::move(next));
  }
  return kept[row];
}

Affine CourseRows::evaluate(std::uint32_t index, std::size_t row) {
  const Node& node = graph_.nodes[index];
  const std::size_t channels = graph_.schema.size();
  const auto steps_back = static_cast<std::size_t>(std::max<std::int64_t>(node.low, 0));
  switch (node.kind) {
    case NodeKind::kConstant:
      return number(node.number);
    case NodeKind::kChannel: {
      const std::size_t at = row * channels + node.a;
      if (course_.variable_of[at] >= 0) return {{{static_cast<std::uint32_t>(course_.variable_of[at]), 1.0}}, 0, true};
      return number(course_.frames[at]);
    }
    case NodeKind::kHour:
      return number(std::fmod(week_hours(course_.times[row], zone_hours_), 24.0));
    case NodeKind::kWeekday:
      return number(std::floor(week_hours(course_.times[row], zone_hours_) / 24) + 1);
    case NodeKind::kNegate:
      return times(at(node.a, row), -1);
    case NodeKind::kAdd:
      return combined(at(node.a, row), 1, at(node.b, row));
    case NodeKind::kSubtract:
      return combined(at(node.a, row), -1, at(node.b, row));
    case NodeKind::kMultiply:
    case NodeKind::kDivide: {
      const Affine a = at(node.a, row), b = at(node.b, row);
      if (!a.known || !b.known) return unknown();
      if (b.terms.empty()) {
        const double factor = node.kind == NodeKind::kMultiply ? b.constant : 1 / b.constant;
        return std::isfinite(factor) ? times(a, factor) : unknown();
      }
      return node.kind == NodeKind::kMultiply && a.terms.empty() ? times(b, a.constant) : unknown();
    }
    case NodeKind::kAbs:
    case NodeKind::kLesser:
    case NodeKind::kGreater:
    case NodeKind::kRoot: {  // of given values only
      const Affine a = at(node.a, row);
      const bool two = node.kind == NodeKind::kLesser || node.kind == NodeKind::kGreater;
      const Affine b = two ? at(node.b, row) : number(0);
      if (!a.known || !b.known || !a.terms.empty() || !b.terms.empty()) return unknown();
      return number(arithmetic(node.kind, a.constant, b.constant));
    }
    case NodeKind::kPrevious:
    case NodeKind::kRate: {
      const bool rate = node.kind == NodeKind::kRate, channel = graph_.nodes[node.a].kind == NodeKind::kChannel;
      const std::size_t back = rate ? 1 : steps_back;
      if (row < back) return unknown();
      std::size_t from = row - back;
      Affine before = at(node.a, from);
      while (channel && back == 1 && !before.known && from > 0) before = at(node.a, --from);
      if (channel && node.from == From::kCommanded && !course_.sent.empty() && from + 1 == course_.past) {
        before = number(course_.sent[graph_.nodes[node.a].a]);
      }
      if (!rate || back == 0) return before;
      const double elapsed = seconds(from, row);
      return elapsed > 0 ? times(combined(at(node.a, row), -1, before), 1 / elapsed) : unknown();
    }
    case NodeKind::kWindowMean:
    case NodeKind::kWindowIntegral:
    case NodeKind::kWindowTrend: {
      const std::size_t count = std::min(row + 1, std::max<std::size_t>(steps_back, 1));
      const double middle = static_cast<double>(count - 1) / 2;
      Affine total = number(0);
      double spread = 0;
      for (std::size_t k = 0; k < count; ++k) {
        const double place = static_cast<double>(k) - middle;
        spread += place * place;
        total = combined(total, node.kind == NodeKind::kWindowTrend ? place : 1, at(node.a, row + 1 - count + k));
      }
      if (node.kind == NodeKind::kWindowTrend) return count == 1 ? number(0) : times(total, 1 / (spread * step_s_));
      return times(total, node.kind == NodeKind::kWindowMean ? 1 / static_cast<double>(count) : step_s_);
    }
    default:
      return unknown();
  }
}

}  // namespace kizzasi::logic
