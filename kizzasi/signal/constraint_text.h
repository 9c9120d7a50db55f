// A constraint as its user wrote it: what files carry and the logic room compiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/signal/user_function.h"

namespace kizzasi {

// One constraint as written.
struct ConstraintText {
  std::string name{}, that{};
  std::string otherwise = "project";  // project, reject, hold, warn
  std::int64_t priority = 0;          // lower wins when not all can hold
  bool soft = false;                  // may be broken at a cost of weight * slack^2, beside the squared distance moved
  double weight = 1;
  std::string where{};     // "limits.toml" or "limits.toml:3", for messages
  std::size_t line = 0;    // where the text of `that` begins in the file; 0: it is no file, or `where` says so itself
  std::size_t column = 1;  // of its first character
  // Functions of the caller's own that `that` may name. They live in the program: no file carries them.
  std::vector<std::shared_ptr<const UserFunction>> functions{};
  friend bool operator==(const ConstraintText&, const ConstraintText&) = default;
};

// An array of objects with the keys of a constraint file: name, that, else, priority, soft, weight; and where.
Json to_json(std::span<const ConstraintText> constraints);
// Unknown keys, wrong kinds and a missing `that` are errors with the place.
Result<std::vector<ConstraintText>> constraints_from_json(const Json& json, std::string_view where);

}  // namespace kizzasi
