// A problem of predictive control of `kizzasi solve`.
#pragma once

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi::cli {

// The fields are those of docs/solve.md; "banded" true takes the form for long horizons.
Result<Json> solve_predictive(const Json& problem);

}  // namespace kizzasi::cli
