// The verbs of the command line, one file each; the table stands in verbs.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kizzasi/base/error.h"

namespace kizzasi::cli {

// What every verb is given: options that all verbs share. Filled by Options::parse, so read it after that.
struct Context {
  bool json = false;   // --json: one machine-readable object on standard output, nothing else there
  bool quiet = false;  // --quiet: no progress, no remarks
  std::uint64_t seed = 1;
  std::size_t threads = 0;  // 0: as many as cores
};

class Options;

// A verb declares its options, then runs. The value is the exit code: 0 done, 1 the data or model says no, 2 wrong usage, 130 interrupted.
struct Verb {
  std::string_view name;
  std::string_view summary;
  std::string_view examples;  // two lines, as shown by --help
  Result<int> (*run)(Options& options, const Context& context);
};

std::span<const Verb> verbs();

}  // namespace kizzasi::cli
