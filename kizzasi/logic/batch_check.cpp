#include "kizzasi/logic/batch_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kizzasi/logic/parser.h"

namespace kizzasi {
namespace {

using namespace logic;

constexpr double kWiden = 1e-12;                // of the size of an end: far beyond the rounding of one operation
constexpr double kFarthest = 4503599627370496;  // cells from 0 (2^52): beyond, they have no edges
constexpr std::size_t kBetweenOrders = 256;     // points

}  // namespace

Result<BatchChecker> BatchChecker::make(const Schema& schema, std::span<const ConstraintText> constraints, BatchOptions options) {
  const auto wrong = [](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), "", std::move(expected), ""});
  };
  if (!options.cell.empty() && options.cell.size() != schema.size()) {
    return wrong(fmt::format("{} widths of cells for {} channels", options.cell.size(), schema.size()), "one for each channel, or none");
  }
  for (const double width : options.cell) {
    if (!(width > 0) || std::isinf(width)) return wrong(fmt::format("a cell is {} wide", width), "a number above 0");
  }
  if (!options.cell.empty() && options.cells == 0) return wrong("the cache holds no cell", "1 or more");
  BatchChecker out;
  out.channels_ = schema.size();
  GraphBuilder builder(schema);
  for (const ConstraintText& text : constraints) {
    auto guard = compile_guard(schema, std::span(&text, 1), {});
    if (!guard) return fail(guard.error());
    const Source source = source_of(text);
    const auto formula = parse_formula(source);
    if (!formula) return fail(formula.error());
    const auto root = builder.add(*formula, source);
    if (!root) return fail(root.error());
    One one;
    one.state.resize((*guard)->state_bytes());
    (*guard)->reset(one.state);
    (*guard)->prepare(out.report_);
    one.guard = *std::move(guard);
    one.root = *root;
    out.order_.push_back(static_cast<std::uint32_t>(out.ones_.size()));
    out.ones_.push_back(std::move(one));
  }
  out.graph_ = builder.take();
  out.ends_.resize(out.graph_.nodes.size());
  out.truths_.resize(out.graph_.nodes.size(), Obeys::kUnknown);
  for (One& one : out.ones_) {  // the work of a constraint: the nodes below it, one for each path
    one.root = out.graph_.roots[one.root];
    std::vector<std::uint32_t> open{one.root};
    constexpr double kMostWork = 1000;
    while (!open.empty() && one.work < kMostWork) {
      const Node& node = out.graph_.nodes[open.back()];
      const std::uint32_t own = open.back();
      open.pop_back();
      one.work += 1;
      if (node.kind == NodeKind::kConstant || node.kind == NodeKind::kChannel || node.kind == NodeKind::kTruth) continue;
      for (const std::uint32_t below : {node.a, node.b}) {
        if (below < own) open.push_back(below);
      }
    }
  }
  if (!options.cell.empty()) {
    out.cells_.assign(std::bit_ceil(options.cells), Cell::kEmpty);
    out.keys_.assign(out.cells_.size() * out.channels_, 0);
    out.key_.assign(out.channels_, 0);
  }
  out.options_ = std::move(options);
  return out;
}

bool BatchChecker::check(std::span<const double> points, std::span<Obeys> out) noexcept {
  if (points.size() != out.size() * channels_) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto point = points.subspan(i * channels_, channels_);
    const Cell cell = cells_.empty() ? Cell::kMixed : cell_at(point);
    if (cell == Cell::kInside || cell == Cell::kOutside) {
      ++from_cache_;
      out[i] = cell == Cell::kInside ? Obeys::kYes : Obeys::kNo;
      continue;
    }
    out[i] = evaluate(point);
    if (++points_ % kBetweenOrders != 0) continue;
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const double first = ones_[a].broken / (ones_[a].asked * ones_[a].work), second = ones_[b].broken / (ones_[b].asked * ones_[b].work);
      return first != second ? first > second : a < b;
    });
  }
  return true;
}

Obeys BatchChecker::evaluate(std::span<const double> point) noexcept {
  Obeys answer = Obeys::kYes;
  for (const std::uint32_t i : order_) {
    One& one = ones_[i];
    one.asked += 1;
    ++evaluated_;
    (void)one.guard->check(one.state, 0, point, report_);
    if (report_.broken[0] != 0) {
      one.broken += 1;
      return Obeys::kNo;
    }
    if (report_.unknown[0] != 0) answer = Obeys::kUnknown;
  }
  return answer;
}

BatchChecker::Cell BatchChecker::cell_at(std::span<const double> point) noexcept {
  std::uint64_t hash = 0x9E3779B97F4A7C15U;
  for (std::size_t c = 0; c < channels_; ++c) {
    const double at = std::floor(point[c] / options_.cell[c]);
    if (!(std::abs(at) < kFarthest)) return Cell::kMixed;  // not finite, too
    key_[c] = static_cast<std::int64_t>(at);
    hash = (hash ^ static_cast<std::uint64_t>(key_[c])) * 0xBF58476D1CE4E5B9U;
    hash ^= hash >> 29U;
  }
  const std::size_t slot = hash & (cells_.size() - 1);
  const auto kept = std::span(keys_).subspan(slot * channels_, channels_);
  if (cells_[slot] == Cell::kEmpty || !std::equal(kept.begin(), kept.end(), key_.begin())) {
    std::copy(key_.begin(), key_.end(), kept.begin());
    cells_[slot] = judge_cell();
  }
  return cells_[slot];
}

BatchChecker::Cell BatchChecker::judge_cell() noexcept {
  bound_nodes();
  Cell cell = Cell::kInside;
  for (const One& one : ones_) {
    if (truths_[one.root] == Obeys::kNo) return Cell::kOutside;
    if (truths_[one.root] == Obeys::kUnknown) cell = Cell::kMixed;
  }
  return cell;
}

// Every node over the cell of `key_`. What is not known everywhere is all numbers, or kUnknown.
void BatchChecker::bound_nodes() noexcept {
  const double none = std::numeric_limits<double>::infinity();
  const auto opposite = [](Obeys a) { return a == Obeys::kYes ? Obeys::kNo : a == Obeys::kNo ? Obeys::kYes : a; };
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    const bool leaf = node.kind == NodeKind::kConstant || node.kind == NodeKind::kChannel || node.kind == NodeKind::kTruth;
    const Ends a = leaf ? Ends{} : ends_[node.a], b = leaf ? Ends{} : ends_[node.b];
    Ends out{-none, none};
    truths_[i] = Obeys::kUnknown;
    switch (node.kind) {
      case NodeKind::kConstant:
        out = {node.number, node.number};
        break;
      case NodeKind::kChannel: {  // the quotient that chose the cell was rounded
        const double index = static_cast<double>(key_[node.a]), width = options_.cell[node.a];
        out = {index * width, (index + 1) * width};
        break;
      }
      case NodeKind::kNegate:
        out = {-a.high, -a.low};
        break;
      case NodeKind::kAdd:
        out = {a.low + b.low, a.high + b.high};
        break;
      case NodeKind::kSubtract:
        out = {a.low - b.high, a.high - b.low};
        break;
      case NodeKind::kMultiply:
      case NodeKind::kDivide: {
        const bool divides = node.kind == NodeKind::kDivide;
        if (divides && b.low <= 0 && b.high >= 0) break;
        const double ends[] = {divides ? a.low / b.low : a.low * b.low, divides ? a.low / b.high : a.low * b.high,
                               divides ? a.high / b.low : a.high * b.low, divides ? a.high / b.high : a.high * b.high};
        out = {*std::min_element(std::begin(ends), std::end(ends)), *std::max_element(std::begin(ends), std::end(ends))};
        for (const double end : ends) {
          if (std::isnan(end)) out = {-none, none};
        }
        break;
      }
      case NodeKind::kAbs:
        out = {a.low <= 0 && a.high >= 0 ? 0 : std::min(std::abs(a.low), std::abs(a.high)), std::max(std::abs(a.low), std::abs(a.high))};
        break;
      case NodeKind::kLesser:
        out = {std::min(a.low, b.low), std::min(a.high, b.high)};
        break;
      case NodeKind::kGreater:
        out = {std::max(a.low, b.low), std::max(a.high, b.high)};
        break;
      case NodeKind::kRoot:
        if (a.low >= 0) out = {std::sqrt(a.low), std::sqrt(a.high)};
        if (a.low < 0 && a.high >= 0) out = {0, std::sqrt(a.high)};  // widened: a sum of squares is not below 0
        break;
      case NodeKind::kTruth:
        truths_[i] = node.weak ? Obeys::kYes : Obeys::kNo;
        break;
      case NodeKind::kLess:
      case NodeKind::kLessEqual:
        if (a.high < b.low) truths_[i] = Obeys::kYes;
        if (a.low > b.high) truths_[i] = Obeys::kNo;
        break;
      case NodeKind::kNot:
        truths_[i] = opposite(truths_[node.a]);
        break;
      case NodeKind::kAnd:
      case NodeKind::kOr: {
        const Obeys decides = node.kind == NodeKind::kAnd ? Obeys::kNo : Obeys::kYes, one = truths_[node.a], other = truths_[node.b];
        if (one == decides || other == decides) {
          truths_[i] = decides;
        } else if (one != Obeys::kUnknown && other != Obeys::kUnknown) {
          truths_[i] = opposite(decides);
        }
        break;
      }
      default:  // equalities, and what looks to other frames
        break;
    }
    if (std::isnan(out.low) || std::isnan(out.high)) out = {-none, none};
    if (node.kind != NodeKind::kConstant) {
      const double size = std::max(std::abs(out.low), std::abs(out.high));
      const double by = std::isfinite(size) ? kWiden * size : 0;
      out = {out.low - by, out.high + by};
    }
    ends_[i] = out;
  }
}

}  // namespace kizzasi
