// What a formula's names and units mean over the channels of a schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::logic {

// A channel's own name, or c1, c2, ... by position where none has that name. The error names the nearest.
Result<std::size_t> channel_named(std::string_view name, const Schema& schema, const Source& source, std::size_t offset);

// The arguments of a call, with * spelled out as every predicted channel.
std::vector<Formula> listed(const Formula& call, const Schema& schema);
// Does it say something of each predicted channel: does * stand in it anywhere but in the list of a call?
bool speaks_of_each(const Formula& formula);

// Units are compared as text; an empty one fits any, "*/s" anything per second.
bool units_fit(const std::string& a, const std::string& b);
std::string unit_named(const std::string& unit);

}  // namespace kizzasi::logic
