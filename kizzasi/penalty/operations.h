// Limits as operations on the tape: their price, the nearest allowed point as a last layer, and the robustness of a formula.
#pragma once

#include <span>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/error.h"
#include "kizzasi/logic/monitor/smooth.h"
#include "kizzasi/penalty/config.h"

namespace kizzasi {

// Elementwise price of a violation g: allowed where g <= 0. A linear limit a x <= b has g = sub(linear(x, a), b).
// The margin is added to g; the weight is left out, multipliers are 1. At the bend of the hinge the derivative is 0. Exact in T.
template <typename T>
autograd::Var<T> penalty(const PenaltyConfig& config, autograd::Var<T> violation);

// The sum over the channels of the penalties of value - high and low - value. value (..., channels), low and high (channels), in the same
// units; infinite: no limit. -> (...)
template <typename T>
autograd::Var<T> bound_penalty(const PenaltyConfig& config, autograd::Var<T> value, std::span<const double> low,
                               std::span<const double> high);

// The point x nearest to y, sum weight (x - y)^2, with lo <= rows x <= hi; bounds are rows with a single 1, an equality has lo = hi.
// y (..., n), rows (m, n), lo and hi (m), infinite: no limit; weight (n), above 0, empty: all 1. -> x (..., n). Each of the four may want a
// gradient: that of the optimality conditions (Amos and Kolter 2017), for a row that holds x that of the side at which it stands. Where a
// row holds x with multiplier 0, x has a bend and the side of "held" is taken. A y that obeys is x, bit for bit, and has gradient 1.
// Worked out in double. Errors: sizes, no point obeys, numbers that are not finite, with the number of the point.
template <typename T>
Result<autograd::Var<T>> nearest(autograd::Var<T> y, autograd::Var<T> rows, autograd::Var<T> lo, autograd::Var<T> hi,
                                 std::span<const double> weight = {});

// smooth_robustness of the first formula of `graph` at `position` of each trace. frames (..., rows, channels) -> (...). The graph is read
// now. Errors: as there. Computed in double.
template <typename T>
Result<autograd::Var<T>> robustness(const logic::NodeGraph& graph, autograd::Var<T> frames, std::size_t position, logic::SmoothKind kind,
                                    double k);

}  // namespace kizzasi
