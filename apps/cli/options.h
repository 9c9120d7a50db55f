// Options of one verb: declared, parsed and explained in one place. (CLI11 stands behind it, in options.cpp alone.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/fields.h"

namespace kizzasi::cli {

// Usage in a verb:
//   std::string file; options.positional("FILE", file, "the recording");
//   bool strict = false; options.flag("--strict", strict, "stop at the first bad line");
//   options.fields(config);                        // every declared field as --its-name, plus --config FILE (TOML, YAML or JSON)
//   if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
// `parse` answers --help itself (prints it and leaves: the verb returns 0 through kHelpShown).
class Options {
 public:
  Options(std::string_view verb, std::string_view summary, std::string_view examples, std::vector<std::string> arguments);
  ~Options();

  void positional(std::string_view name, std::string& value, std::string_view help, bool required = true);
  void positionals(std::string_view name, std::vector<std::string>& values, std::string_view help);
  void flag(std::string_view name, bool& value, std::string_view help);
  void option(std::string_view name, std::string& value, std::string_view help);
  void option(std::string_view name, std::int64_t& value, std::string_view help);
  void option(std::string_view name, double& value, std::string_view help);
  void option(std::string_view name, std::vector<std::string>& values, std::string_view help);  // may be repeated
  void option(std::string_view name, std::optional<double>& value, std::string_view help);

  // Every field of a declared configuration as an option, and --config FILE whose values the options override.
  template <Declared C>
  void fields(C& config) {
    add_fields(&config, &detail::walk<C>);
  }

  Result<void> parse();
  bool help_shown() const;
  // True when the user gave this option or field, on the command line or in the configuration file.
  bool given(std::string_view name) const;

 private:
  void add_fields(void* config, detail::Walk walk);
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace kizzasi::cli
