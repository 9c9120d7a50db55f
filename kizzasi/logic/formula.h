// Formulas of the constraint language as a tree: what the parser makes, the printer prints and the compiler reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/signal/user_function.h"

namespace kizzasi::logic {

enum class Op : std::uint8_t {
  // Numbers.
  kNumber,        // number, text = its unit
  kChannel,       // text = its name
  kEveryChannel,  // *
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kCall,  // text = the function
  kUser,  // text = its name, function: one of the caller's own
  // Conditions.
  kCompare,  // a chain: operands e0 c0 e1 c1 e2 ...
  kWithin,   // e0 == e1 +- e2
  kIn,       // e0 in [e1, e2]
  kNot,
  kAnd,
  kXor,
  kOr,
  kImplies,
  kIff,
  kNext,
  kPrevious,
  kAlways,
  kEventually,
  kHistorically,
  kOnce,
  kUntil,
  kRelease,
  kSince,
  kUnless,
  kProposition,  // text = a channel that stands alone: true from one half upwards
  kTrue,
  kFalse,
  kRise,        // true now, false one sample ago
  kFall,        // false now, true one sample ago
  kHysteresis,  // of e0: true once it reaches e1, until it comes down to e2
};

enum class Comparison : std::uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual };

// Which past value `rate`, `accel` and `prev` look back to; kDefault: nothing was said.
enum class From : std::uint8_t { kDefault, kMeasured, kCommanded };

// The closed interval of a temporal operator, as written: numbers with units ("" counts samples). Its end may be infinite.
struct Interval {
  bool given = false;
  double low = 0, high = 0;
  std::string low_unit, high_unit;
  std::size_t offset = 0;
  friend bool operator==(const Interval& a, const Interval& b) {  // where it stands in the text is no part of what it says
    return a.given == b.given && a.low == b.low && a.high == b.high && a.low_unit == b.low_unit && a.high_unit == b.high_unit;
  }
};

struct Formula {
  Op op = Op::kNumber;
  std::size_t offset = 0;  // byte in the text where it begins, for messages
  double number = 0;
  std::string text;
  std::vector<Formula> operands;
  std::vector<Comparison> comparisons;
  Interval interval;
  From from = From::kDefault;
  bool strong = false;                             // X[!], Y[!]
  int depth = 1;                                   // of the tree
  std::shared_ptr<const UserFunction> function{};  // kUser

  friend bool operator==(const Formula& a, const Formula& b) {
    return a.op == b.op && a.number == b.number && a.text == b.text && a.operands == b.operands && a.comparisons == b.comparisons &&
           a.interval == b.interval && a.from == b.from && a.strong == b.strong;
  }
};

// True for what is true or false, false for what is a number.
bool is_condition(Op op);
const char* to_string(Comparison comparison);
// "always", "and", "+": the word or sign that stands for the operator.
const char* word(Op op);

// The text with the fewest brackets; parsing it gives the same tree again.
std::string print(const Formula& formula);
// Every condition in brackets, so that one sees how it was read: "((x < 2) -> (always[0,2] (y > 1)))".
std::string bracketed(const Formula& formula);
// A channel's name as it must be written: in quotes where it is no plain word or is a word of the language.
std::string quoted_name(std::string_view name);
// The shortest digits that read back to the same number.
std::string number_text(double number);

}  // namespace kizzasi::logic
