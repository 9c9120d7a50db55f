// Constraints that follow from the others.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/consistency.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

struct Redundancy {
  struct Follows {
    std::size_t constraint = 0;
    std::vector<std::size_t> from;  // it follows from these together, and from no part of them; none: it is true by itself
  };
  std::vector<Follows> follows;    // all of them may be left out at once: none follows from another that is listed
  std::vector<Unjudged> unjudged;  // neither shown to follow nor shown to add something
};

// Leaves out one constraint after another, the last first, where no course obeys the rest and breaks it at its last frame (the question of
// check_consistency, with its negation). The negation of a norm or a quadratic form is no convex set and is not judged; nor is what
// check_consistency does not judge. Soft constraints are left alone. Of a set that is not consistent everything follows: ask that first.
// Errors: those of parser, names and units. Thread: any. Real-time: no.
Result<Redundancy> find_redundant(const Schema& schema, std::span<const ConstraintText> constraints);

}  // namespace kizzasi
