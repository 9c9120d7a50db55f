// How everything here fails: with a value that a person can act on.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace kizzasi {

enum class Fault {
  kBadInput,     // the data, the text or the model says no; exit code 1
  kBadUse,       // options that do not exist or do not go together; exit code 2
  kUnavailable,  // a file, device or peer that cannot be reached; exit code 1
  kBroken,       // a damaged file, or an invariant that does not hold; exit code 1
};

struct Error {
  Fault fault = Fault::kBadInput;
  std::string what;      // "limit is not a number"
  std::string where;     // "constraints.toml:7:12", "column 'temp'"; empty where there is no place
  std::string expected;  // "a number, such as 3.5"
  std::string hint;      // "Write 1e9 for no limit."

  // One line: "<where>: <what> (expected <expected>). <hint>", leaving out what is empty.
  std::string text() const;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace kizzasi
