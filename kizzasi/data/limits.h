// Limits that a recording itself suggests, to be offered to the user, never applied unasked.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/io/overview.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::data {

struct SuggestedLimit {
  std::string channel;
  std::optional<double> low, high;
  std::string reason;  // "never below 0 in 9600 rows"
};

// For each target channel: 0 to 100 where its unit or name says per cent and its values keep to that; at least 0 where none is below 0 and
// the least is within a thousandth of their range from it (a tenth for whole numbers, such as counts), but not for temperatures and angles.
std::vector<SuggestedLimit> suggest_limits(const std::vector<Series>& series);
// The same from what is known of each channel of the schema.
std::vector<SuggestedLimit> suggest_limits(const Schema& schema, std::span<const io::ChannelFacts> facts);

}  // namespace kizzasi::data
