#include "kizzasi/logic/trajectory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/logic/clauses.h"
#include "kizzasi/logic/course_rows.h"
#include "kizzasi/logic/curvature.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/solve/banded_program.h"

namespace kizzasi {

using namespace logic;

struct Trajectory::Parts {
  struct Condition {
    std::uint32_t left = 0, right = 0;  // nodes
    bool equal = false, soft = false;
    double weight = 1;
  };
  Schema schema;
  std::vector<double> squared_scale;
  std::unique_ptr<Guard> guard;
  NodeGraph graph;
  std::vector<Condition> conditions;
  std::vector<std::string> together, step_by_step;
};

namespace {

constexpr double kMostWork = 4e10;                    // multiplications of one factor
constexpr double kMargin = 1e-13;                     // of the size of what a condition compares
constexpr std::int64_t kRowOfNoTime = 1'000'000'000;  // what stands between two rows where they are only counted

bool affine(const NodeGraph& graph, std::uint32_t node) {
  const Curve curve = curve_of(graph, node);
  return curve == Curve::kStill || curve == Curve::kAffine;
}

// Nothing that looks back may bend: it moves with the course, too.
bool straight(const NodeGraph& graph, std::uint32_t node) {
  switch (graph.nodes[node].kind) {
    case NodeKind::kConstant:
    case NodeKind::kChannel:
    case NodeKind::kHour:
    case NodeKind::kWeekday:
      return true;
    case NodeKind::kAdd:
    case NodeKind::kSubtract:
    case NodeKind::kMultiply:
    case NodeKind::kDivide:
      return straight(graph, graph.nodes[node].a) && straight(graph, graph.nodes[node].b);
    case NodeKind::kNegate:
    case NodeKind::kPrevious:
    case NodeKind::kRate:
    case NodeKind::kWindowMean:
    case NodeKind::kWindowIntegral:
    case NodeKind::kWindowTrend:
      return straight(graph, graph.nodes[node].a);
    default:
      return false;
  }
}

Error wrong(std::string what, std::string expected, std::string hint = "") {
  return {Fault::kBadInput, std::move(what), "trajectory", std::move(expected), std::move(hint)};
}

}  // namespace

Trajectory::Trajectory(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Trajectory::Trajectory(Trajectory&&) noexcept = default;
Trajectory& Trajectory::operator=(Trajectory&&) noexcept = default;
Trajectory::~Trajectory() = default;
const Guard& Trajectory::guard() const { return *parts_->guard; }
std::span<const std::string> Trajectory::together() const { return parts_->together; }
std::span<const std::string> Trajectory::step_by_step() const { return parts_->step_by_step; }

Result<Trajectory> Trajectory::compile(const Schema& schema, std::span<const ConstraintText> constraints, EmittedGrid grid,
                                       std::span<const double> scale) {
  auto parts = std::make_unique<Parts>();
  auto guard = compile_guard(schema, constraints, grid, scale);
  if (!guard) return fail(guard.error());
  parts->guard = std::move(*guard);
  parts->schema = schema;
  for (std::size_t c = 0; c < schema.size(); ++c) parts->squared_scale.push_back(scale.empty() ? 1 : scale[c] * scale[c]);
  GraphBuilder builder(schema);
  struct Comparison {
    std::uint32_t root = 0;
    std::size_t constraint = 0;
  };
  std::vector<Comparison> comparisons;
  std::vector<std::uint8_t> common(constraints.size(), 0);
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const ConstraintText& text = constraints[i];
    if (text.otherwise != "project") continue;
    const Source source = source_of(text);
    const auto formula = parse_formula(source);
    if (!formula) return fail(formula.error());
    const auto clauses = clauses_of(*formula, schema, source);
    if (!clauses) continue;  // the guard has read it already: it takes forms that are no clauses
    for (const Choice& choice : *clauses) {
      if (choice.size() != 1) continue;
      for (const Literal& literal : choice[0]) {
        if (literal.kind != Literal::Kind::kCompare || literal.apart) continue;
        const auto root = builder.add(literal.formula, source);
        if (!root) return fail(root.error());
        comparisons.push_back({*root, i});
        common[i] = 1;
      }
      if (std::any_of(choice[0].begin(), choice[0].end(), [](const Literal& l) { return l.kind != Literal::Kind::kCompare || l.apart; })) {
        common[i] = 2;
      }
    }
    if (std::any_of(clauses->begin(), clauses->end(), [](const Choice& c) { return c.size() != 1; })) common[i] = 2;
  }
  parts->graph = builder.take();
  for (const Comparison& comparison : comparisons) {
    const Node& node = parts->graph.nodes[parts->graph.roots[comparison.root]];
    const ConstraintText& text = constraints[comparison.constraint];
    const bool fits = (node.kind == NodeKind::kLess || node.kind == NodeKind::kLessEqual || node.kind == NodeKind::kEqual) &&
                      affine(parts->graph, node.a) && affine(parts->graph, node.b) && straight(parts->graph, node.a) &&
                      straight(parts->graph, node.b);
    if (!fits) {
      common[comparison.constraint] = 2;
      continue;
    }
    parts->conditions.push_back({node.a, node.b, node.kind == NodeKind::kEqual, text.soft, text.weight});
  }
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    if (constraints[i].otherwise == "warn") continue;
    (common[i] == 1 ? parts->together : parts->step_by_step).push_back(std::string(parts->guard->name(i)));
  }
  return Trajectory(std::move(parts));
}

Result<bool> Trajectory::solve(std::span<double> frames, std::span<const std::int64_t> times, std::size_t past,
                               std::span<const double> sent) const {
  const std::size_t channels = parts_->schema.size(), rows = channels == 0 ? 0 : frames.size() / channels;
  // Variables step by step: its targets, then the slack of soft conditions, so that what belongs together stands together.
  std::vector<std::int64_t> variable_of(frames.size(), -1);
  solve::BandedProblem problem;
  std::vector<double> g, lo, hi, inside;  // inside: by how much an answer stays off the edge of a row
  std::vector<std::size_t> place_of;
  std::size_t soft = 0;
  for (const Parts::Condition& c : parts_->conditions) soft += c.soft ? 1 : 0;
  std::vector<std::size_t> slack_at(rows, 0);
  for (std::size_t r = past; r < rows; ++r) {
    for (std::size_t c = 0; c < channels; ++c) {
      if (parts_->schema.channels[c].role != Role::kTarget) continue;
      const auto v = static_cast<std::uint32_t>(problem.variables++);
      variable_of[r * channels + c] = v;
      const double weight = 1 / parts_->squared_scale[c];
      problem.hessian.push_back({v, v, weight});
      g.push_back(-weight * frames[r * channels + c]);
      place_of.push_back(r * channels + c);
    }
    slack_at[r] = problem.variables;
    problem.variables += soft;
    g.resize(problem.variables, 0);
    place_of.resize(problem.variables, static_cast<std::size_t>(-1));
  }
  if (place_of.empty()) return true;
  const Course course{frames, times, past, variable_of, sent};
  CourseRows written(parts_->graph, course);
  for (std::size_t r = past; r < rows; ++r) {
    std::size_t slack = slack_at[r];
    for (const Parts::Condition& condition : parts_->conditions) {
      const auto s = static_cast<std::uint32_t>(slack);
      if (condition.soft) {
        problem.hessian.push_back({s, s, condition.weight});
        ++slack;
      }
      const Affine left = written.at(condition.left, r), right = written.at(condition.right, r);
      const Affine difference = combined(left, -1, right);
      if (!difference.known || difference.terms.empty()) continue;
      solve::SparseRow row;
      for (const auto& [v, factor] : difference.terms) {
        row.index.push_back(v);
        row.value.push_back(factor);
      }
      const double constant = 0 - difference.constant;
      double size = std::abs(left.constant) + std::abs(right.constant);
      for (std::size_t k = 0; k < row.index.size(); ++k) size += std::abs(row.value[k] * frames[place_of[row.index[k]]]);
      if (condition.soft) {
        row.index.push_back(s);
        row.value.push_back(-1);
      }
      problem.rows.push_back(std::move(row));
      problem.equality.push_back(condition.equal ? 1 : 0);
      lo.push_back(condition.equal ? constant : -solve::kNoBound);
      hi.push_back(constant);
      inside.push_back(condition.equal || condition.soft ? 0 : kMargin * size);
    }
  }
  auto program = solve::BandedProgram::prepare(std::move(problem));
  if (!program) return fail(program.error());
  const double width = static_cast<double>(program->bandwidth());
  if (static_cast<double>(g.size()) * width * width > kMostWork) {
    return fail(wrong(
        fmt::format("{} values, of which conditions tie {} in a row, are too many for one system", g.size(), program->bandwidth() + 1),
        "shorter windows, or fewer rows", "Cut the course into pieces."));
  }
  // A little inside, so that rounding leaves the guard room between conditions that meet; on the edge where there is nothing inside.
  std::vector<double> within = hi;
  for (std::size_t r = 0; r < hi.size(); ++r) within[r] -= inside[r];
  if (program->solve(g, lo, within) != solve::Status::kOptimal && program->solve(g, lo, hi) != solve::Status::kOptimal) return false;
  for (std::size_t v = 0; v < place_of.size(); ++v) {
    if (place_of[v] == static_cast<std::size_t>(-1)) continue;
    double& value = frames[place_of[v]];
    if (std::abs(program->x()[v] - value) > kMargin * std::max(1.0, std::abs(value))) value = program->x()[v];  // else nothing moved it
  }
  return true;
}

Result<TrajectoryReport> Trajectory::project(std::span<double> frames, std::span<const std::int64_t> given_times, std::size_t past) const {
  const std::size_t channels = parts_->schema.size(), rows = channels == 0 ? 0 : frames.size() / channels;
  if (channels == 0 || frames.size() % channels != 0)
    return fail(wrong(fmt::format("{} numbers", frames.size()), fmt::format("rows of {}", channels)));
  if (past > rows) return fail(wrong(fmt::format("{} of {} rows have happened", past, rows), "no more than there are"));
  if (!given_times.empty() && given_times.size() != rows)
    return fail(wrong(fmt::format("{} times for {} rows", given_times.size(), rows), "one for each row"));
  const std::int64_t step = parts_->schema.step_ns == 0 ? kRowOfNoTime : parts_->schema.step_ns;
  std::vector<std::int64_t> times(given_times.begin(), given_times.end());
  for (std::size_t r = times.size(); r < rows; ++r) times.push_back(static_cast<std::int64_t>(r) * step);
  for (std::size_t r = 1; r < rows; ++r) {
    if (times[r] <= times[r - 1]) return fail(wrong(fmt::format("the time of row {} is not after the one before", r + 1), "rising times"));
  }

  TrajectoryReport report;
  std::vector<double> wish(frames.begin(), frames.end());
  for (std::size_t c = 0; c < channels; ++c) {
    if (parts_->schema.channels[c].role != Role::kTarget) continue;
    double last = 0;
    for (std::size_t r = rows; r-- > 0;) {
      if (std::isfinite(wish[r * channels + c])) last = wish[r * channels + c];
    }
    for (std::size_t r = 0; r < rows; ++r) {
      double& value = wish[r * channels + c];
      if (!std::isfinite(value) && r >= past) {
        value = last;
        ++report.replaced;
      }
      if (std::isfinite(value)) last = value;
    }
  }

  // The guard, over `course`; true: it moved nothing.
  const Guard& guard = *parts_->guard;
  std::vector<std::byte> state(guard.state_bytes());
  std::vector<double> scratch(guard.scratch_doubles()), frame(channels);
  GuardReport said;
  guard.prepare(said);
  const auto pass = [&](std::vector<double>& course) {
    report.steps.clear();
    report.after = 0;
    guard.reset(state);
    bool clean = true;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = std::span(course).subspan(r * channels, channels);
      if (r >= past) {
        frame.assign(row.begin(), row.end());
        const GuardStatus status = guard.propose(state, times[r], frame, said, scratch);
        clean = clean && status == GuardStatus::kClean;
        report.steps.push_back(status);
        for (std::size_t c = 0; c < channels; ++c) {
          if (std::isfinite(frame[c]) && std::isfinite(row[c])) report.after = std::max(report.after, std::abs(frame[c] - row[c]));
        }
        if (status != GuardStatus::kRejected) std::copy(frame.begin(), frame.end(), row.begin());
        if (status == GuardStatus::kRejected) continue;
      }
      guard.accept(state, times[r], {}, row);
    }
    return clean;
  };

  std::vector<double> course = wish;
  bool common = true;
  if (!pass(course)) {
    course = wish;
    const auto solved = solve(course, times, past);
    if (!solved) return fail(solved.error());
    common = *solved;
    pass(course);
  }
  double squared = 0;
  for (std::size_t r = past; r < rows; ++r) {
    bool moved = false;
    for (std::size_t c = 0; c < channels; ++c) {
      const double by = course[r * channels + c] - wish[r * channels + c];
      if (!(std::abs(by) > 0)) continue;
      moved = true;
      ++report.moved;
      squared += by * by;
    }
    GuardStatus& status = report.steps[r - past];
    if (moved && status == GuardStatus::kClean) status = GuardStatus::kMoved;
    if (status != GuardStatus::kClean && report.status == GuardStatus::kClean) report.status = status;
    if (status == GuardStatus::kInfeasible || status == GuardStatus::kRejected) report.status = status;
  }
  if (!common) report.status = GuardStatus::kInfeasible;
  report.distance = std::sqrt(squared);
  std::copy(course.begin(), course.end(), frames.begin());
  return report;
}

}  // namespace kizzasi
