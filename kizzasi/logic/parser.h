// From text to formula.
#pragma once

#include <optional>
#include <string_view>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"

namespace kizzasi::logic {

// Reads one constraint of the whole language, temporal operators included; what of it can be enforced is the compiler's question.
// Binding, tightest first: - (sign), * /, + -, comparison, not and the one-sided temporal operators, until release since unless, and, xor,
// or, -> (to the right), <->. Errors name the place, what was found and what was expected. Thread: any. Real-time: no.
Result<Formula> parse_formula(const Source& source);

// The samples that a temporal interval spans when a sample comes every `period_ns` (0: rows are counted, times are refused).
// Errors: a time that is no whole number of samples, low > high, negative.
constexpr std::int64_t kEndless = std::int64_t{1} << 60;  // the end of an interval without one
struct SampleInterval {
  std::int64_t low = 0, high = 0;
};
Result<SampleInterval> sample_interval(const Interval& interval, std::int64_t period_ns, const Source& source);

// Of h, min, s, ms, us or ns; nothing where it is no unit of time.
std::optional<double> nanoseconds(std::string_view unit);

}  // namespace kizzasi::logic
