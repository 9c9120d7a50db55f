// Coupled channels: the nearest point of box and slab, then the exactness pass.
#pragma once

#include <span>

#include "kizzasi/logic/compiled.h"

namespace kizzasi::logic {

constexpr std::size_t kRowScratch = 9;  // doubles for each member of a group

// Moves the members of `group` in `value` to the nearest point that obeys its boxes and rows; `limits` holds the two ends of every box now.
// Where not all can hold, the order of the group decides. Afterwards each row that can hold does hold as its atom evaluates it.
// `moment.value` is `value`. Real-time: yes.
void settle(const Compiled& compiled, const Group& group, const Moment& moment, std::span<double> value, std::span<const double> limits,
            std::span<double> scratch) noexcept;

// The bounds that a row sets on direction . x now; unlimited where something that it reads is missing.
Range row_range(const Compiled& compiled, const Row& row, const Moment& moment) noexcept;
// What member multiplies in the direction now.
double slope_of(const Member& member, const Moment& moment) noexcept;

}  // namespace kizzasi::logic
