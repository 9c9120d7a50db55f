// Constraints as the verbs are given them: a file, options, or both.
#pragma once

#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::cli {

// The constraints of `file` (TOML, YAML or JSON; empty: none), then one for each text of --limit "x >= 0". Places in later messages are
// those of the file: line and column of the character meant.
Result<std::vector<ConstraintText>> read_constraint_source(const std::string& file, const std::vector<std::string>& limits);

// The channels that a formula names, in order of appearance, as targets: where no recording says which there are.
void name_channels(const logic::Formula& formula, Schema& schema);

}  // namespace kizzasi::cli
