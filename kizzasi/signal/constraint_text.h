// A constraint as its user wrote it: what files carry and the logic room compiles.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi {

// One constraint as written.
struct ConstraintText {
  std::string name{}, that{};
  std::string otherwise = "project";  // project, reject, hold, warn
  std::int64_t priority = 0;
  bool soft = false;
  double weight = 1;
  std::string where{};  // "limits.toml:3", for messages
  friend bool operator==(const ConstraintText&, const ConstraintText&) = default;
};

// An array of objects with the keys of a constraint file: name, that, else, priority, soft, weight; and where.
Json to_json(std::span<const ConstraintText> constraints);
// Unknown keys, wrong kinds and a missing `that` are errors with the place.
Result<std::vector<ConstraintText>> constraints_from_json(const Json& json, std::string_view where);

}  // namespace kizzasi
