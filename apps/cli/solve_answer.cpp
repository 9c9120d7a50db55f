#include "apps/cli/solve_answer.h"

#include <fmt/format.h>

namespace kizzasi::cli {

using namespace solve;

Error unsolved(Status status) {
  return {Fault::kBadInput, fmt::format("no answer: {}", name(status)), "", "finite numbers and a convex problem", ""};
}

Json begun(const Json& problem) {
  Json answer = Json::object();
  if (const Json* id = problem.find("id")) answer["id"] = *id;
  return answer;
}

Json multipliers(std::span<const double> rows, std::span<const double> box) {
  Json json = Json::object();
  json["rows"] = Json::list(rows);
  json["box"] = Json::list(box);
  return json;
}

// What an infeasible program says about why.
void explain(const QuadraticProgram& qp, Json& answer) {
  if (qp.inverted() != QuadraticProgram::kNone) {
    const bool row = qp.inverted() < qp.rows();
    answer["why"] =
        fmt::format("{} {} has its lower end above its upper end", row ? "row" : "bound", row ? qp.inverted() : qp.inverted() - qp.rows());
    return;
  }
  answer["certificate"] = multipliers(qp.certificate_rows(), qp.certificate_box());
}

}  // namespace kizzasi::cli
