// Sorts bound constraints into the cheapest forms that are exact, and refuses what cannot be held.
#pragma once

#include <span>

#include "kizzasi/logic/compiled.h"

namespace kizzasi::logic {

// Errors: those of the parser and the binder; a word of `otherwise` that is none; bounds that leave no value; several coupled constraints
// over one channel; a soft bound on a coupled channel; an equality that the emitted decimals cannot express. Real-time: no.
Result<Compiled> compile(const Schema& schema, std::span<const ConstraintText> constraints, EmittedGrid grid,
                         std::span<const double> scale);

}  // namespace kizzasi::logic
