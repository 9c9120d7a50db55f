// One problem of `kizzasi solve`, as docs/solve.md describes it, and its answer.
#pragma once

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi::cli {

// The fields that are present say which problem it is: "steps" a sequence of quadratic programs, "H" one, "horizon" a predictive control
// problem, "u_nominal" a barrier filter, "y" a nearest point. The answer repeats "id" where there is one.
// `timed`: answers of quadratic programs tell how long they take, from nothing ("cold_us") and from their own active set ("warm_us").
Result<Json> solve_line(const Json& problem, bool timed = false);

}  // namespace kizzasi::cli
