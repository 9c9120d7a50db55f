// What the answers of all kinds of problems have in common.
#pragma once

#include <span>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::cli {

// Where there is no answer for another reason than that the problem has none.
Error unsolved(solve::Status status);

// {"id": ...} where the problem has one.
Json begun(const Json& problem);

Json multipliers(std::span<const double> rows, std::span<const double> box);

// What an infeasible program says about why.
void explain(const solve::QuadraticProgram& qp, Json& answer);

}  // namespace kizzasi::cli
