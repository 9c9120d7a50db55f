// The training loss of a head: how ill the predicted distributions fit what happened.
#pragma once

#include <string_view>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/error.h"
#include "kizzasi/signal/head.h"

namespace kizzasi {

// What a point head learns: the median (absolute), the mean (squared), or something between (Huber, bend at 1 window unit).
enum class PointLoss { kAbsolute, kHuber, kSquared };
Result<PointLoss> point_loss(std::string_view name);  // "l1", "huber", "l2"

// The weighted mean over n predicted values, one element:
//   point                            |e|, Huber or e^2
//   gaussian, student_t, mixture     negative log likelihood
//   quantiles                        pinball loss, the mean over the levels (half an approximate CRPS)
// params (n, parameters of the head) as signal/head.h lays them out; target, weight (n): constants, weight 0 where the target is missing
// (its value, NaN even, is then not looked at). No weight at all: 0, gradients 0.
// Arithmetic in double. Gradients are finite for all finite parameters: where one would leave +-1e30 it is held there.
template <typename T>
autograd::Var<T> head_loss(const HeadConfig& head, autograd::Var<T> params, autograd::Var<T> target, autograd::Var<T> weight,
                           PointLoss point = PointLoss::kAbsolute);

}  // namespace kizzasi
