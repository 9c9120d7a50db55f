// Limits that a recording itself suggests, to be offered to the user, never applied unasked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kizzasi/signal/series.h"

namespace kizzasi::data {

struct SuggestedLimit {
  std::string channel;
  std::optional<double> low, high;
  std::string reason;  // "never below 0 in 9600 rows"
};

// For each target channel: 0 to 100 where its unit or name says per cent and its values keep to that; at least 0 where it never is below 0
// and touches it (within a thousandth of its range), or where it is made of whole numbers of at least 0, such as counts.
std::vector<SuggestedLimit> suggest_limits(const std::vector<Series>& series);

}  // namespace kizzasi::data
