// Named numbers of a constraint file: v_max = "3 m/s", used in its texts by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/constraint_text.h"

namespace kizzasi {

struct Parameter {
  std::string name;
  double value = 0;
  std::string unit;  // empty: none
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

// From a value as written: "3", "-2.5e3", "3 m/s", "3 [m/s]". Errors name `where`: a name that is no plain word or one of the language's
// own, what is no finite number, a unit that cannot be read.
Result<Parameter> parameter_from(std::string_view name, std::string_view value, std::string_view where);
// From "v_max=2", as options give it.
Result<Parameter> parameter_from_option(std::string_view assignment, std::string_view option);

// Puts the numbers in where a text names them, as words of their own outside quotes; a name before "(" stays a function. `name` stays as it
// is. Where something was put in, places in later messages count in the text with the numbers, and `where` says so. A text that cannot be
// taken apart is left for the parser to refuse. True: something was put in.
bool put_parameters(ConstraintText& text, std::span<const Parameter> parameters);
// Does the text name it?
bool names_parameter(std::string_view text, std::string_view name);

}  // namespace kizzasi
