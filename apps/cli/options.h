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

struct Context;

// Usage in a verb:
//   std::string file; options.positional("FILE", file, "The recording.");
//   bool strict = false; options.flag("--strict", strict, "Stop at the first bad line.");
//   std::string out = "model.kz"; options.option("-o,--out FILE", out, "Where the model goes.");
//   options.fields(config, "Model");               // every declared field as --its-name, plus --config FILE (TOML, YAML or JSON)
//   if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
//   if (options.help_shown()) return 0;
// The word after the names of an option is its value's name in the help; without one it says TEXT, N or X. A value that the variable
// holds before `parse` is shown as the default. A name that was declared before is not declared again: a field that is called like an
// earlier option or field takes the very same value.
class Options {
 public:
  Options(std::string_view verb, std::string_view summary, std::string_view examples, std::vector<std::string> arguments);
  ~Options();

  void positional(std::string_view name, std::string& value, std::string_view help, bool required = true);
  // Any number of them, shown by a name such as "[MODEL] FILE".
  void positionals(std::string_view name, std::vector<std::string>& values, std::string_view help);
  void flag(std::string_view name, bool& value, std::string_view help);
  void option(std::string_view name, std::string& value, std::string_view help);
  void option(std::string_view name, std::int64_t& value, std::string_view help);
  void option(std::string_view name, double& value, std::string_view help);
  void option(std::string_view name, std::vector<std::string>& values, std::string_view help);  // may be repeated; the help says so
  void option(std::string_view name, std::optional<double>& value, std::string_view help);
  // A file that the verb writes, such as "--report FILE". `parse` refuses a name that cannot be written (Fault::kUnavailable), and one that
  // an argument or another option with a FILE or MODEL gives, too.
  void output(std::string_view name, std::string& value, std::string_view help);

  // Every field of a declared configuration as an option (a yes/no field also as --no-its-name), and --config FILE whose values the
  // options override. The configuration must outlive `parse`; after an error its values are not to be used.
  // section: the head above them in the help.
  template <Declared C>
  void fields(C& config, std::string_view section) {
    add_fields(&config, &detail::walk<C>, section);
  }

  // --json, --quiet, --seed and --threads; the program declares them for every verb.
  void common(Context& context);

  // Errors: an option that does not exist (names the nearest), a missing or repeated value, a value of the wrong kind or out of its
  // range, a missing or surplus argument, a configuration file that cannot be read or names an unknown field. All are Fault::kBadUse,
  // but for the files that cannot be read or written.
  Result<void> parse();
  bool help_shown() const;
  // True when the user gave this option or field, on the command line or in the configuration file.
  bool given(std::string_view name) const;

 private:
  void add_fields(void* config, detail::Walk walk, std::string_view section);
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace kizzasi::cli
