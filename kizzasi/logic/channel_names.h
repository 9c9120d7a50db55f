// What a formula's names and units mean over the channels of a schema.
#pragma once

#include <string>
#include <string_view>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::logic {

// A channel's own name, or c1, c2, ... by position where none has that name. The error names the nearest.
Result<std::size_t> channel_named(std::string_view name, const Schema& schema, const Source& source, std::size_t offset);

// Units are compared as text; an empty one fits any, "*/s" anything per second.
bool units_fit(const std::string& a, const std::string& b);
std::string unit_named(const std::string& unit);

}  // namespace kizzasi::logic
