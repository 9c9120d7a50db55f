// Constraint files: [[constraint]] tables of TOML, YAML or JSON, already read into a Json value.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/logic/parameters.h"
#include "kizzasi/signal/constraint_text.h"

namespace kizzasi {

// Where a value stands in its file: line and column from 1 of its first character, quotes not counted; 0: not known.
struct TextPlace {
  std::size_t line = 0, column = 0;
};
// Of the value at a pointer such as "/constraint/0/that".
using PlaceOf = std::function<TextPlace(std::string_view pointer)>;

// The parameters of a file: {"parameters": {"v_max": "3 m/s", "gain": 2}, ...}; none where it has no such key.
Result<std::vector<Parameter>> read_parameters(const Json& json, std::string_view file, const PlaceOf& place = {});

// {"constraint": [{"that": "x >= 0", "name": ..., "else": ..., "priority": ..., "soft": ..., "weight": ...}, ...]}. Only `that` is
// required. Unknown keys name the nearest; values of the wrong kind, choice or range are errors. `file` names it in messages.
// Parameters of the file, and those of `set`, which go before them, are put into the texts.
Result<std::vector<ConstraintText>> read_constraints(const Json& json, std::string_view file, const PlaceOf& place = {},
                                                     std::span<const Parameter> set = {});

// One constraint from the command line: --limit "vehicles >= 0".
ConstraintText constraint_from_option(std::string_view text, std::string_view option);

}  // namespace kizzasi
