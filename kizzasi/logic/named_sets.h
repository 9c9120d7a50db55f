// Sets by name: "(x, y) in ball([1, 2], 3)" is another way to write norm(x - 1, y - 2) <= 3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"

namespace kizzasi::logic {

// One argument of a set: a number, or a list of them in [ ].
struct SetArgument {
  bool list = false;
  std::size_t offset = 0;
  std::vector<Formula> numbers;
};

// box([low, ...], [high, ...])              every value within its ends
// ball(r), ball([c, ...], r)                 norm(x - c, ...) <= r; likewise l1ball with norm1 and linfball with norminf
// ellipsoid([a, ...]), ellipsoid([c, ...], [a, ...])  norm((x - c) / a, ...) <= 1 with half axes a > 0
// simplex(), simplex(total)                  every value >= 0, their sum total (1)
// polytope([a, ..., b], ...)                 a * x + ... <= b for each list
bool is_set_name(std::string_view word);

// The condition that `values` (numbers) lie in the set, in operators that the printer and everyone else know. Errors name the place: an
// unknown set (the nearest), a list of another length, a radius or half axis that is a number not above 0. Thread: any. Real-time: no.
Result<Formula> set_condition(std::string_view name, std::size_t offset, const std::vector<Formula>& values,
                              const std::vector<SetArgument>& arguments, const Source& source);

}  // namespace kizzasi::logic
