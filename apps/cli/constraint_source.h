// Constraints as the verbs are given them: a file, options, or both.
#pragma once

#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/constraint_text.h"

namespace kizzasi::cli {

// The constraints of `file` (TOML, YAML or JSON; empty: none), then one for each text of --limit "x >= 0". Places in later messages are
// those of the file: line and column of the character meant.
Result<std::vector<ConstraintText>> read_constraint_source(const std::string& file, const std::vector<std::string>& limits);

}  // namespace kizzasi::cli
