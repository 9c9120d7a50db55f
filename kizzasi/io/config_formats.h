// The two parsers behind config_file.h; each stands in a .cpp of its own, beside the library that it uses.
#pragma once

#include <string_view>

#include "kizzasi/io/config_file.h"

namespace kizzasi::io::detail {

// Fill `values` and `places` of a file whose name is set.
Result<void> parse_toml(std::string_view text, ConfigFile& file);
Result<void> parse_yaml(std::string_view text, ConfigFile& file);

}  // namespace kizzasi::io::detail
