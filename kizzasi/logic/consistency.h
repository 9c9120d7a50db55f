// Can a set of constraints be obeyed at all, what stands in the way where it cannot, and which change of its limits lets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

// A constraint, or a part of one, that the check takes as true since it cannot write it as a linear or convex condition.
struct Unjudged {
  std::size_t constraint = 0;
  std::string why;  // "it depends on the time of day"
};

struct Repair {
  std::size_t constraint = 0;
  std::string that;  // the new text, as the printer of the language writes it
};

struct Consistency {
  enum class Verdict : std::uint8_t {
    kHolds,      // `example` obeys all that could be judged
    kConflict,   // nothing obeys all; what was not judged changes nothing about that
    kUndecided,  // the search came to its bound before an answer
  };
  Verdict verdict = Verdict::kUndecided;
  std::size_t frames = 0;             // so many in a row were asked for
  std::vector<double> example;        // (frames, channels)
  std::vector<std::size_t> conflict;  // rising; together they cannot hold, and any one left out, the others can
  std::vector<Repair> repairs;        // of all constraints together: with these texts some course obeys. Empty: none was found
  double cost = 0;                    // sum of squares of the changes in units
  std::vector<Unjudged> unjudged;
};

// Asks for a course of frames, all values free, at each frame of which every constraint holds: two frames, or as many as the constraints
// look back (at most 32). Nothing is asked of a frame for which a constraint would look back before the first. Channels that are given
// count as free, too. Soft constraints are not asked: they give way.
// Linear conditions in any choice are decided by quadratic programs and branch and bound, norms and convex quadratic forms by cutting
// planes, up to 1e-9 of what a condition compares. `unjudged` lists what is taken as true.
// A conflict is made minimal by leaving out one constraint after another (Chinneck 2008, deletion filter). The repair minimises the sum of
// squares of the changes of numbers that stand alone on one side of a comparison; a change that moves the edge by one `scale` (channels;
// empty: 1) counts as 1. Changes are rounded to six digits to the loose side.
// Errors: those of parser, names and units. Thread: any. Real-time: no.
Result<Consistency> check_consistency(const Schema& schema, std::span<const ConstraintText> constraints,
                                      std::span<const double> scale = {});

}  // namespace kizzasi
