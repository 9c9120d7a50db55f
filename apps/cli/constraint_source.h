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
// `sets`: NAME=VALUE of --set, which go before the parameters of the file and hold in the texts of --limit, too. A name that the file does
// not know and no --limit uses is an error.
Result<std::vector<ConstraintText>> read_constraint_source(const std::string& file, const std::vector<std::string>& limits,
                                                           const std::vector<std::string>& sets = {});

constexpr const char* kSetHelp =
    "Puts VALUE, such as 2 or \"2 m/s\", where constraints name it, in place of the parameter of a file; may be repeated.";

// The channels that a formula names, in order of appearance, as targets: where no recording says which there are.
void name_channels(const logic::Formula& formula, Schema& schema);

}  // namespace kizzasi::cli
