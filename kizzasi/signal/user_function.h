// Functions of a caller's own that texts of constraints and formulas may name.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

// What is known of a function over all of its arguments. A function that is called affine, convex or concave must be that: the guard cuts
// its sets out by planes, which is only right if it is.
enum class FunctionShape { kAny, kAffine, kConvex, kConcave };

inline constexpr std::size_t kMostUserArguments = 16;

// `value(x, slopes)`: f(x), and unless `slopes` is empty its derivatives by the arguments into it. Called from `step` of monitors and
// guards: it must not throw, should not allocate, and must allow calls from several threads at once. NaN where it is not known.
struct UserFunction {
  std::string name;           // a word that is no word of the language
  std::size_t arguments = 1;  // 1 to kMostUserArguments
  std::function<double(std::span<const double> x, std::span<double> slopes)> value;
  FunctionShape shape = FunctionShape::kAny;
  std::string unit{};  // of the result; empty: fits any
};

// Holds the slopes at each point (points, arguments) against central differences of the values.
// Errors: a slope that is off by more than `tolerance` of the larger of the two and 1, with the function, the point and the argument.
Result<void> check_slopes(const UserFunction& function, std::span<const double> points, double tolerance = 1e-5);

}  // namespace kizzasi
