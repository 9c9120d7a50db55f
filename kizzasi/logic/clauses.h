// From a formula to what enforcement needs of one frame: clauses, each a choice between branches, each branch a list of literals.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::logic {

struct Literal;
using Branch = std::vector<Literal>;  // all of them must hold
using Choice = std::vector<Branch>;   // one of them must hold; none: never

constexpr std::size_t kMostBranches = 64;  // of one clause

// What a condition asks of the frames that come, as an obligation with a deadline. Intervals count samples from the frame that takes it on.
struct Promise {
  enum class Kind : std::uint8_t {
    kReach,  // `goal` at some frame of [low, high], `stay` at every frame before it
    kKeep,   // `goal` at every frame of [low, high], until a frame where `stay` holds sets it free
  };
  Kind kind = Kind::kReach;
  std::int64_t low = 0, high = 0;  // kKeep: high may be kEndless
  bool frees_at_once = false;      // kKeep: the frame that sets free need not obey itself
  Choice goal, stay;
};

struct Literal {
  enum class Kind : std::uint8_t {
    kCompare,  // left < right, left <= right or left == right, two numbers without bends: what moves in them is affine or convex
    kKnown,    // a condition over the frames that were emitted, as it was one frame ago
    kPromise,
  };
  Kind kind = Kind::kCompare;
  Formula formula;       // kCompare: of two operands; kKnown: the condition
  bool apart = false;    // kCompare: and further apart than an equality allows
  bool weak = false;     // kKnown: true where there is no frame before
  bool negated = false;  // kKnown
  std::shared_ptr<const Promise> promise;
  std::size_t offset = 0;
};

// All clauses together say what the formula says at every frame (an `always` in front changes nothing). Negations are gone; abs, min, max,
// norm1, norminf over what moves have become branches, each in the same place of the expression, so that its value in double is the same
// bit for bit; past operators stand for their value now, given their value one frame ago: p since q is q or (p and previous (p since q)).
// Errors: everything that is a mistake (names, units, intervals); more than kMostBranches branches; what nobody can keep who does
// not see the future: goals without a deadline, and goals over the past. Thread: any.
// Real-time: no.
Result<std::vector<Choice>> clauses_of(const Formula& formula, const Schema& schema, const Source& source);

}  // namespace kizzasi::logic
