// From a formula to conditions over the channels of a schema: names and units are settled, every condition is linear, and what this version
// cannot hold is refused with the place marked.
#pragma once

#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/logic/predicate.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::logic {

// One constraint that needs no choice and looks back no further than one frame, bound: all of its atoms must hold. `*` has become one atom
// for each channel that is predicted (role target).
struct BoundConstraint {
  Formula formula;
  std::vector<Atom> atoms;
};

// Names: a channel's own, or c1, c2, ... by position where none has that name. Units are compared as text; a side without one fits any.
// Errors: unknown channel (names the nearest), units that differ (names both), and every form beyond linear conditions on the present, the
// frame before and rates: `beyond`, where given, tells whether it is this, which clauses.h may still read. Thread: any. Real-time: no.
Result<BoundConstraint> bind(const Formula& formula, const Schema& schema, const Source& source, bool* beyond = nullptr);

}  // namespace kizzasi::logic
