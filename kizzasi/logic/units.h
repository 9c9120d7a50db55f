// Units of measurement: which measure the same, and how the numbers of a formula are brought to one of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::logic {

// One of the unit is numerator / denominator of the base units; its zero lies `offset` base units above theirs.
struct UnitMeasure {
  double numerator = 1, denominator = 1, offset = 0;
  std::map<std::string, int> dimensions;  // "m", "kg", "s", "A", "K", "mol", "rad", or a word of one's own, with its exponent
};

// Products and quotients of symbols, each with an SI prefix where it takes one and an exponent: "km/h", "m/s2", "kg m^2", "1/min", "kPa",
// "%". Words that are no unit known here ("vehicles/h") count as their own. Nothing for what cannot be read. Thread: any. Real-time: no.
std::optional<UnitMeasure> measure_of(std::string_view unit);

// `value` of the unit `from` in the unit `to`; `difference`: between two values, so that a zero elsewhere (degC, K) plays no part.
// Rounded once for the factor, and once more where zeros differ. Nothing where the units do not measure the same.
std::optional<double> converted(double value, const std::string& from, const std::string& to, bool difference);

// The formula with all that is compared or added in one unit: numbers are rewritten in the unit of the channel that they stand beside;
// other expressions are multiplied. Of several channels the first decides. What cannot be converted stays as it is, to be refused by
// whoever compares the units: units that do not measure the same, and temperatures with different zeros where it is not clear whether a
// value or a difference is meant. Converting twice changes nothing. Thread: any. Real-time: no.
Formula in_common_units(const Formula& formula, const Schema& schema);

}  // namespace kizzasi::logic
