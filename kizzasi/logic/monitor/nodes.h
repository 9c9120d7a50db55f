// Formulas as one graph of nodes over a stream: names are channels, times are samples, and what several formulas share stands once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::logic {

enum class NodeKind : std::uint8_t {
  // Numbers, each evaluated in the order in which it was written.
  kConstant,
  kChannel,
  kHour,     // of the day, 0 to 24, in the zone of the schema
  kWeekday,  // 1 Monday to 7 Sunday
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kAbs,
  kLesser,
  kGreater,
  kRoot,      // square root: of norm
  kPrevious,  // `low` samples ago
  kRate,      // change since the last sample over the time passed
  // Over the last `low` samples, as far as there are so many.
  kWindowMean,
  kWindowLeast,
  kWindowMost,
  kWindowVariance,  // over n, not n - 1
  kWindowTrend,     // slope of the least-squares line, per second (per row where rows are counted)
  kWindowIntegral,  // sum of value * step
  kArgument,        // a, after the argument b of the same call; the first: after itself
  kUser,            // a function of the caller's own, `low`, of the arguments that end with a
  // Conditions.
  kTruth,      // constant: +inf or -inf
  kLess,       // a < b: b - a
  kLessEqual,  // a <= b: b - a
  kEqual,      // a == b: -|a - b|
  kNot,
  kAnd,
  kOr,
  kShift,         // value at the next sample (next), `weak` where there is none
  kBack,          // value at the sample before
  kAlways,        // [low, high] ahead
  kEventually,    // [low, high] ahead
  kHistorically,  // [low, high] behind
  kOnce,          // [low, high] behind
  kUntil,         // a until[low, high] b
  kSince,         // a since[low, high] b
};

constexpr bool is_condition(NodeKind kind) { return kind >= NodeKind::kTruth; }

struct Node {
  NodeKind kind = NodeKind::kConstant;
  bool weak = false;           // kShift, kBack: true where there is no neighbour. kTruth: true
  From from = From::kDefault;  // kPrevious, kRate: which past they look back to. A monitor sees one trace: to it all are the same
  std::uint32_t a = 0, b = 0;
  double number = 0;               // kConstant
  std::int64_t low = 0, high = 0;  // samples; high kEndless: to the end of the stream
  std::int64_t horizon = 0;        // samples of the future that decide it; kEndless where no number of them does
  std::int64_t reach = 0;          // samples of the past that bounded operators below it look back

  bool same(const Node& o) const {
    return kind == o.kind && weak == o.weak && from == o.from && a == o.a && b == o.b && low == o.low && high == o.high &&
           (number == o.number || (number != number && o.number != o.number));
  }
};

// Operands stand before what uses them, so one pass in order evaluates all.
struct NodeGraph {
  Schema schema;
  std::vector<Node> nodes;
  std::vector<std::uint32_t> roots;  // one for each formula
  std::vector<std::shared_ptr<const UserFunction>> functions;

  std::int64_t horizon() const;
  // Of a kUser node, from the values of all nodes. With `slopes` (its arguments, the first first) also its derivatives.
  double call(const Node& node, std::span<const double> values, std::span<double> slopes = {}) const noexcept;
};

// Semantics (discrete time, closed intervals in samples, windows cut to the trace; Donze and Maler 2010, Fainekos and Pappas 2009):
// and = min, or = max, not = minus; a until[i,j] b at t: the largest over s in [t+i, t+j] of min(b(s), a on [t, s)); since likewise
// backwards, a on (s, t]; release is the dual of until, unless is always or until; next and previous are true where there is no
// neighbour, X[!] and Y[!] false. An empty window is +inf under always, -inf under eventually. A channel that stands alone is `>= 0.5`.
// A value that is NaN leaves its comparison unknown: [-inf, inf].
// Errors name the place: unknown channels, units that differ, times that are no whole number of samples. Thread: any. Real-time: no.
class GraphBuilder {
 public:
  explicit GraphBuilder(Schema schema);
  Result<std::uint32_t> add(const Formula& formula, const Source& source);  // the number of its root
  NodeGraph take() { return std::move(graph_); }

 private:
  NodeGraph graph_;
  std::vector<std::vector<std::uint32_t>> by_hash_;  // where equal nodes are looked up
  friend class GraphWriter;
};

// One formula over these channels.
Result<NodeGraph> build_graph(const Formula& formula, const Schema& schema, const Source& source);

}  // namespace kizzasi::logic
