#include "kizzasi/logic/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "kizzasi/logic/course_rows.h"
#include "kizzasi/logic/curvature.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/logic/units.h"

namespace kizzasi::logic {
namespace {

constexpr std::int64_t kRowOfNoTime = 1'000'000'000;

bool looks_back(const Node& node) {
  return (node.kind == NodeKind::kPrevious && node.low > 0) || node.kind == NodeKind::kRate ||
         (node.kind >= NodeKind::kWindowMean && node.kind <= NodeKind::kWindowIntegral);
}
bool has_two(NodeKind kind) {
  return kind == NodeKind::kAdd || kind == NodeKind::kSubtract || kind == NodeKind::kMultiply || kind == NodeKind::kDivide ||
         kind == NodeKind::kLesser || kind == NodeKind::kGreater || kind == NodeKind::kArgument;
}
bool is_leaf(NodeKind kind) {
  return kind == NodeKind::kConstant || kind == NodeKind::kChannel || kind == NodeKind::kHour || kind == NodeKind::kWeekday;
}

// How many frames back a number looks, and whether it reads the clock.
std::int64_t reach_of(const NodeGraph& graph, std::uint32_t index, bool& clock) {
  const Node& node = graph.nodes[index];
  if (node.kind == NodeKind::kHour || node.kind == NodeKind::kWeekday) clock = true;
  if (is_leaf(node.kind)) return 0;
  std::int64_t reach = reach_of(graph, node.a, clock);
  if (has_two(node.kind)) reach = std::max(reach, reach_of(graph, node.b, clock));
  if (node.kind == NodeKind::kRate) return reach + 1;
  if (node.kind == NodeKind::kPrevious) return reach + std::max<std::int64_t>(node.low, 0);
  return looks_back(node) ? reach + std::max<std::int64_t>(node.low - 1, 0) : reach;
}

// The number in the text where an operand is nothing else.
const Formula* lone_number(const Formula& f) {
  if (f.op == Op::kNumber) return &f;
  return f.op == Op::kNegate && f.operands[0].op == Op::kNumber ? &f.operands[0] : nullptr;
}

}  // namespace

// Writes conditions as rows, in two passes: all formulas into one graph, then each comparison at each frame.
class Region::Writer {
 public:
  Writer(Region& out, std::span<const double> scale, const Given* given) : out_(out), scale_(scale), given_(given), builder_(out.schema_) {}

  Result<void> run(std::span<const ConstraintText> texts) {
    const std::size_t count = texts.size();
    out_.written_.assign(count, 1);
    out_.denial_written_.assign(count, 1);
    out_.denials_.resize(count);
    struct Made {
      std::size_t constraint = 0;
      bool denies = false;
      std::vector<Choice> clauses;
    };
    std::vector<Made> made;
    std::vector<std::vector<std::uint32_t>> roots;
    for (std::size_t i = 0; i < count; ++i) {
      const Source source = source_of(texts[i]);
      auto formula = parse_formula(source);
      if (!formula) return fail(formula.error());
      *formula = in_common_units(*formula, out_.schema_);  // a change of a limit counts in the unit of its channel
      if (auto graph = build_graph(*formula, out_.schema_, source); !graph) return fail(graph.error());
      for (const bool denies : {false, true}) {
        if (denies && given_ != nullptr) continue;
        Formula said = *formula;
        if (denies) {
          while (said.op == Op::kAlways && !said.interval.given) said = Formula(said.operands[0]);
          Formula denied;
          denied.op = Op::kNot;
          denied.offset = said.offset;
          denied.operands = {said};
          said = denied;
        }
        auto clauses = clauses_of(said, out_.schema_, source);
        if (!clauses) {
          (denies ? out_.denial_written_ : out_.written_)[i] = 0;
          if (!denies) out_.not_written_.push_back({i, clauses.error().what});
          continue;
        }
        std::vector<std::uint32_t> own;
        for (const Choice& choice : *clauses) {
          for (const Branch& branch : choice) {
            for (const Literal& literal : branch) {
              if (literal.kind != Literal::Kind::kCompare) continue;
              const auto root = builder_.add(literal.formula, source);
              if (!root) return fail(root.error());
              own.push_back(*root);
            }
          }
        }
        made.push_back({i, denies, *std::move(clauses)});
        roots.push_back(std::move(own));
      }
      out_.formulas_.push_back(*std::move(formula));
    }
    graph_ = builder_.take();
    set_frames();
    out_.present_ = std::make_shared<const Present>(graph_);
    values_.assign(out_.variables_, std::numeric_limits<double>::quiet_NaN());
    variable_of_.resize(out_.variables_);
    for (std::size_t v = 0; v < out_.variables_; ++v) variable_of_[v] = static_cast<std::int64_t>(v);
    const std::int64_t step = out_.schema_.step_ns == 0 ? kRowOfNoTime : out_.schema_.step_ns;
    for (std::size_t r = 0; r < out_.frames_; ++r) times_.push_back(static_cast<std::int64_t>(r) * step);
    if (given_ != nullptr) hold_given();
    const Course course{values_, times_, 0, variable_of_, {}};
    CourseRows rows(graph_, course);
    for (std::size_t m = 0; m < made.size(); ++m) {
      const std::size_t first = made[m].denies || given_ != nullptr ? out_.frames_ - 1 : 0;
      // The last frame first: what cannot be judged there cannot be judged.
      for (std::size_t r = out_.frames_; r-- > first;) write(made[m].constraint, made[m].denies, made[m].clauses, roots[m], rows, r);
    }
    return {};
  }

 private:
  void hold_given() {
    const std::size_t channels = out_.schema_.size();
    times_.assign(given_->time_ns.begin(), given_->time_ns.end());
    out_.centre_.assign(out_.variables_, 0);
    out_.lower_.assign(out_.variables_, -std::numeric_limits<double>::infinity());
    out_.upper_.assign(out_.variables_, std::numeric_limits<double>::infinity());
    for (std::size_t v = 0; v < out_.variables_; ++v) {
      const double unit = scale_.empty() ? 1 : scale_[v % channels];
      out_.stiffness_.push_back(1 / (unit * unit));
      if (std::isfinite(given_->frames[v])) out_.centre_[v] = given_->frames[v];
      if (given_->free[v] != 0) continue;
      values_[v] = given_->frames[v];
      variable_of_[v] = -1;
      out_.lower_[v] = out_.upper_[v] = out_.centre_[v];
    }
  }

  void set_frames() {
    if (given_ != nullptr) {
      out_.frames_ = given_->time_ns.size();
      out_.variables_ = given_->frames.size();
      return;
    }
    std::int64_t reach = 1;  // two frames in a row, at least
    bool clock = false;
    for (const std::uint32_t root : graph_.roots) {
      const Node& node = graph_.nodes[root];
      reach = std::max({reach, reach_of(graph_, node.a, clock), reach_of(graph_, node.b, clock)});
    }
    const std::size_t channels = std::max<std::size_t>(out_.schema_.size(), 1);
    const std::size_t room = std::max<std::size_t>(kMostVariables / channels, 1);
    out_.frames_ = std::min({static_cast<std::size_t>(reach) + 1, kMostFrames, room});
    out_.variables_ = out_.frames_ * out_.schema_.size();
  }

  void write(std::size_t constraint, bool denies, const std::vector<Choice>& clauses, const std::vector<std::uint32_t>& roots,
             CourseRows& rows, std::size_t frame) {
    std::size_t at = 0;
    for (const Choice& choice : clauses) {
      Decision decision;
      decision.constraint = constraint;
      bool open = false;  // a way that asks nothing
      for (const Branch& branch : choice) {
        Way way;
        for (const Literal& literal : branch) {
          if (literal.kind != Literal::Kind::kCompare) {
            miss(constraint, denies, literal.kind == Literal::Kind::kKnown ? "it asks what was true before" : "it is about frames to come");
            continue;
          }
          Demand demand = written(constraint, denies, literal, roots[at++], rows, frame);
          if (demand.judged) way.push_back(std::move(demand));
        }
        open = open || way.empty();
        decision.ways.push_back(std::move(way));
      }
      if (!open) (denies ? out_.denials_[constraint] : out_.decisions_).push_back(std::move(decision));
    }
  }

  void miss(std::size_t constraint, bool denies, std::string why) {
    std::uint8_t& flag = (denies ? out_.denial_written_ : out_.written_)[constraint];
    if (flag == 0) return;
    flag = 0;
    if (!denies) out_.not_written_.push_back({constraint, std::move(why)});
  }

  Demand written(std::size_t constraint, bool denies, const Literal& literal, std::uint32_t root, CourseRows& rows, std::size_t frame) {
    const Node& node = graph_.nodes[graph_.roots[root]];
    Demand demand;
    demand.frame = static_cast<std::uint32_t>(frame);
    demand.equal = node.kind == NodeKind::kEqual;
    demand.strict = node.kind == NodeKind::kLess || literal.apart;
    bool clock = false;
    const auto reach = static_cast<std::size_t>(std::max(reach_of(graph_, node.a, clock), reach_of(graph_, node.b, clock)));
    demand.reach = static_cast<std::uint32_t>(std::min<std::size_t>(reach, kMostFrames));
    demand.rate = compares_rate(literal.formula);
    const Affine left = rows.at(node.a, frame), right = rows.at(node.b, frame);
    demand.judged = !clock && left.known && right.known;
    if (demand.judged) {
      const Affine difference = combined(left, -1, right);
      demand.terms = difference.terms;
      demand.bound = 0 - difference.constant;
    } else if (!clock && reach == 0 && !demand.equal && is_convex(node.a, node.b)) {
      demand.judged = demand.curved = true;
      demand.left = node.a;
      demand.right = node.b;
    } else if (clock) {
      miss(constraint, denies, "it depends on the time of day");
    } else if (reach >= out_.frames_) {
      miss(constraint, denies, fmt::format("it looks back {} frames", reach));
    } else if (frame + 1 == out_.frames_) {
      miss(constraint, denies, "it is no linear condition, norm or convex quadratic form");
    }
    if (demand.judged && !denies) name_limit(constraint, literal, demand);
    return demand;
  }

  static bool compares_rate(const Formula& f) {
    const auto rate = [](const Formula& side) {
      const Formula& own = side.op == Op::kNegate ? side.operands[0] : side;
      return own.op == Op::kCall && own.text == "rate" && own.operands[0].op == Op::kChannel;
    };
    return (rate(f.operands[0]) && lone_number(f.operands[1]) != nullptr) || (rate(f.operands[1]) && lone_number(f.operands[0]) != nullptr);
  }

  // left - right, over channels of one frame.
  bool is_convex(std::uint32_t left, std::uint32_t right) const {
    const Curve a = curve_of(graph_, left), b = curve_of(graph_, right);
    const bool flat_right = b == Curve::kStill || b == Curve::kAffine;
    if (flat_right && a == Curve::kQuadratic) return is_bowl(left);
    if (flat_right) return a == Curve::kConvex || a == Curve::kSquares;
    return b == Curve::kConcave && a != Curve::kConcave && a != Curve::kOther && a != Curve::kQuadratic;
  }

  // Slopes of a quadratic form at the unit points are its Hessian.
  bool is_bowl(std::uint32_t node) const {
    const Present present(graph_);
    const std::size_t n = graph_.schema.size();
    const auto order = present.order_of(node);
    std::vector<double> recalled(graph_.nodes.size() * Present::kRecalled, 0), values(graph_.nodes.size()), adjoint(graph_.nodes.size());
    std::vector<double> frame(n, 0), origin(n, 0), hessian(n * n, 0);
    present.evaluate(order, recalled, frame, values);
    present.add_slopes(node, 1, order, recalled, values, adjoint, origin);
    for (std::size_t i = 0; i < n; ++i) {
      std::fill(frame.begin(), frame.end(), 0);
      frame[i] = 1;
      const auto row = std::span(hessian).subspan(i * n, n);
      present.evaluate(order, recalled, frame, values);
      present.add_slopes(node, 1, order, recalled, values, adjoint, row);
      for (std::size_t j = 0; j < n; ++j) row[j] -= origin[j];
    }
    return is_positive_semidefinite(hessian, n);
  }

  void name_limit(std::size_t constraint, const Literal& literal, Demand& demand) {
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const Formula* number = lone_number(literal.formula.operands[side]);
      if (number == nullptr || lone_number(literal.formula.operands[1 - side]) != nullptr) continue;
      const auto [found, fresh] = number_of_.try_emplace({constraint, number->offset}, out_.limits_.size());
      if (fresh) {
        Limit limit;
        limit.constraint = constraint;
        limit.offset = number->offset;
        limit.value = number == &literal.formula.operands[side] ? number->number : -number->number;
        double squared = 0;
        const std::size_t channels = out_.schema_.size();
        for (const auto& [v, factor] : demand.terms) {
          const double unit = factor * (scale_.empty() ? 1 : scale_[v % channels]);
          squared += unit * unit;
        }
        limit.unit = squared > 0 ? std::sqrt(squared) : 1;
        out_.limits_.push_back(limit);
      }
      demand.limit = static_cast<std::int64_t>(found->second);
      demand.by = side == 1 ? -1 : 1;
      Limit& limit = out_.limits_[found->second];
      const bool both = demand.equal || (limit.loosens != 0 && limit.loosens != -demand.by);
      limit.loosens = -demand.by;
      limit.two_ways = limit.two_ways || both;
      return;
    }
  }

  Region& out_;
  std::span<const double> scale_;
  const Given* given_;
  GraphBuilder builder_;
  NodeGraph graph_;
  std::vector<double> values_;
  std::vector<std::int64_t> times_, variable_of_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> number_of_;
};

Result<Region> Region::build(const Schema& schema, std::span<const ConstraintText> constraints, std::span<const double> scale,
                             const Given* given) {
  if (!scale.empty() && scale.size() != schema.size()) {
    return fail({Fault::kBadUse, fmt::format("{} scales for {} channels", scale.size(), schema.size()), "", "one for each channel", ""});
  }
  const std::size_t channels = schema.size();
  if (given != nullptr &&
      (given->time_ns.empty() || given->frames.size() != given->time_ns.size() * channels || given->free.size() != given->frames.size())) {
    return fail(
        {Fault::kBadUse, "frames, times and what may move do not fit together", "", "a value and a flag for each row and channel", ""});
  }
  Region out;
  out.schema_ = schema;
  Writer writer(out, scale, given);
  if (auto done = writer.run(constraints); !done) return fail(done.error());
  return out;
}

}  // namespace kizzasi::logic
