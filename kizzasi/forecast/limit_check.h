// Limits of a forecast as a backtest counts their breaches.
#pragma once

#include "kizzasi/forecast/backtest.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi {

// Counts the values that the constraints would have to move, step by step along each forecast, the row before the origin known.
// The guard must outlive the check. Thread: any.
LimitCheck guard_check(const Guard& guard);

}  // namespace kizzasi
