// What a signal is: its channels, their units, and how often they are sampled.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi {

enum class Role {
  kTarget,       // read and predicted
  kObserved,     // read, not predicted
  kKnownFuture,  // read, and known ahead for the whole horizon (a plan, a calendar)
};

struct Channel {
  std::string name;
  std::string unit;  // as the file names it; empty where it names none
  Role role = Role::kTarget;
  friend bool operator==(const Channel&, const Channel&) = default;
};

struct Schema {
  std::vector<Channel> channels;
  std::int64_t step_ns = 0;  // time between frames; 0: rows are counted, not timed
  std::string zone;          // how the file gave its times: "", "UTC", "+01:00", or a zone's name; shown, never used in arithmetic

  std::size_t size() const noexcept { return channels.size(); }
  std::optional<std::size_t> index_of(std::string_view name) const;
  std::vector<std::string> names() const;
  // Positions of the channels with this role, in order.
  std::vector<std::size_t> with_role(Role role) const;
  friend bool operator==(const Schema&, const Schema&) = default;
};

const char* to_string(Role role);
Json to_json(const Schema& schema);
Result<Schema> schema_from_json(const Json& json, std::string_view where);

}  // namespace kizzasi
