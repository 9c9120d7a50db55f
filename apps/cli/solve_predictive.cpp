#include "apps/cli/solve_predictive.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "apps/cli/problem_fields.h"
#include "apps/cli/solve_answer.h"
#include "kizzasi/solve/banded_predictive.h"
#include "kizzasi/solve/model_predictive.h"

namespace kizzasi::cli {

using namespace solve;

namespace {

constexpr std::size_t kMostPlanned = 4000;      // inputs over a horizon: beyond that one dense program is the wrong tool
constexpr std::size_t kMostBanded = 4'000'000;  // inputs, states and slack over a horizon

Json table(std::span<const double> values, std::size_t columns) {
  Json rows = Json::array();
  for (std::size_t i = 0; i + columns <= values.size(); i += columns) rows.push_back(Json::list(values.subspan(i, columns)));
  return rows;
}

Result<Json> solve_banded(Json answer, PredictiveProblem p, std::span<const double> x0, std::span<const double> reference,
                          std::span<const double> previous, bool soft) {
  const std::size_t states = p.states, inputs = p.inputs;
  auto controller = BandedPredictive::prepare(std::move(p));
  if (!controller) return fail(controller.error());
  const Status status = controller->solve(x0, reference, previous);
  if (status == Status::kBadInput || status == Status::kIterationLimit) return fail(unsolved(status));
  answer["status"] = name(status);
  if (status != Status::kOptimal) return answer;
  answer["u"] = table(controller->inputs(), inputs);
  answer["x"] = table(controller->states(), states);
  answer["slack"] = soft ? table(controller->slack(), states) : Json();
  answer["cost"] = controller->cost();
  return answer;
}

}  // namespace

Result<Json> solve_predictive(const Json& problem) {
  ProblemFields fields(problem);
  PredictiveProblem p;
  const std::vector<double> x0 = fields.list("x0");
  p.states = std::max<std::size_t>(x0.size(), 1);
  p.horizon = fields.count("horizon");
  p.control_horizon = fields.has("control_horizon") ? fields.count("control_horizon") : 0;
  p.a = fields.matrix("A", p.states, p.states);
  const Json* b = problem.find("B");
  p.inputs = b != nullptr && b->is_array() && !b->items().empty() && b->items()[0].is_array() ? b->items()[0].items().size() : 1;
  p.b = fields.matrix("B", p.states, p.inputs);
  p.q = fields.matrix("Q", p.states, p.states);
  p.r = fields.matrix("R", p.inputs, p.inputs);
  p.p = fields.has("P") ? fields.matrix("P", p.states, p.states) : p.q;
  p.u_min = fields.list("u_min", p.inputs, false);
  p.u_max = fields.list("u_max", p.inputs, false);
  p.du_max = fields.list("du_max", p.inputs, false);
  p.x_min = fields.list("x_min", p.states, false);
  p.x_max = fields.list("x_max", p.states, false);
  if (fields.truth("terminal_equality")) p.terminal.assign(p.states, 0);
  const auto reference = fields.has("reference") ? fields.list("reference", p.states) : std::vector<double>(p.states, 0);
  const auto previous = fields.list("u_previous", p.inputs, !p.du_max.empty());
  const bool soft = fields.has("soft");
  if (soft) {
    ProblemFields prices(*problem.find("soft"), "soft.");
    p.soft_l1 = prices.number("l1", 0);
    p.soft_l2 = prices.number("l2", 0);
    if (prices.error()) return fail(*prices.error());
  }
  const std::size_t moves = p.control_horizon == 0 ? p.horizon : p.control_horizon;
  const bool banded = fields.truth("banded");
  if (banded && p.horizon > kMostBanded / (p.inputs + 2 * p.states)) {
    fields.complain("horizon", fmt::format("{} steps of {} inputs and states are too many", p.horizon, p.inputs + p.states),
                    fmt::format("at most {} numbers together", kMostBanded));
  }
  if (!banded && (moves > kMostPlanned / p.inputs || p.horizon > 100 * kMostPlanned)) {
    fields.complain("horizon", fmt::format("{} inputs over {} steps are too many for one dense program", p.inputs, moves),
                    fmt::format("at most {} together; a control_horizon shortens the plan, \"banded\" has no such bound", kMostPlanned));
  }
  if (fields.error()) return fail(*fields.error());
  if (banded) return solve_banded(begun(problem), std::move(p), x0, reference, previous, soft);
  const std::size_t states = p.states, inputs = p.inputs;
  auto controller = ModelPredictive::prepare(std::move(p));
  if (!controller) return fail(controller.error());
  const Status status = controller->solve(x0, reference, previous);
  if (status == Status::kBadInput) return fail(unsolved(status));
  Json answer = begun(problem);
  answer["status"] = name(status);
  if (status == Status::kInfeasible) explain(controller->program(), answer);
  if (status != Status::kOptimal) return answer;
  answer["u"] = table(controller->inputs(), inputs);
  answer["x"] = table(controller->states(), states);
  answer["slack"] = soft ? table(controller->slack(), states) : Json();
  answer["active"] = Json::list(controller->active_names());
  answer["cost"] = controller->cost();
  return answer;
}

}  // namespace kizzasi::cli
