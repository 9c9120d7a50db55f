// Standard output and standard error of the verbs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/verb.h"
#include "kizzasi/base/json.h"

namespace kizzasi::cli {

// Writes to standard output as it stands. False when nobody reads any more (a closed pipe) or the disk is full: a verb that goes on for
// ever then stops; the program finds out at its end in any case.
bool print(std::string_view text);
// The same for one JSON value and its line feed, in one line, or indented when a terminal reads it.
bool print_json(const Json& json);
// Hands everything over that was printed; needed only where a reader waits for each line.
bool flush();

// To standard error, unless --quiet was given: progress and remarks that are no part of the answer.
void remark(const Context& context, std::string_view text);

// Rows as columns of even width, the first aligned left and the others right; the first row is the head, underlined.
std::string columns(const std::vector<std::vector<std::string>>& rows);

// Four significant digits, plain where that is short: "1234", "0.01234", "1.2e-07"; "-" for a number that is not finite.
std::string number_text(double value);

}  // namespace kizzasi::cli
