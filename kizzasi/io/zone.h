// Named time zones: wall clock to UTC by the rules of the zone database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi::io {

// A zone by its name in the database ("Europe/Berlin"), "UTC", or a fixed offset ("+05:30").
// The rules come from the binary files (RFC 8536) of /usr/share/zoneinfo, or of the folder that the caller names.
// Thread: any.
class Zone {
 public:
  static Result<Zone> open(std::string_view name, const std::string& folder = "/usr/share/zoneinfo");

  const std::string& name() const noexcept { return name_; }
  // Seconds east of UTC at an instant (seconds since 1970, UTC).
  std::int64_t offset_s(std::int64_t utc_s) const noexcept;

  // The instants at which the clock on the wall shows `wall_ns`: one, two (the hour that is run twice), or none (the hour that is left
  // out).
  struct Instants {
    std::int64_t first_ns = 0, second_ns = 0;  // equal where there is one
    bool exists = true;                        // false: the clock never shows it; both are as if the change had not yet taken place
  };
  Instants instants(std::int64_t wall_ns) const noexcept;

 private:
  struct Rule;  // the recurring rule after the last listed change
  std::int64_t rule_offset_s(std::int64_t utc_s) const noexcept;

  std::string name_;
  std::vector<std::int64_t> changes_s_;  // rising instants
  std::vector<std::int64_t> offsets_s_;  // offsets_s_[i] holds from changes_s_[i] on
  std::int64_t before_s_ = 0;            // before the first change
  std::shared_ptr<const Rule> rule_;     // shared: zones are copied, the rule never changes
};

// Turns wall clocks into instants in the order of the recording: a clock that can be read in two ways is the first of them that lies after
// the row before, so that an hour that is run twice gives two hours. A clock that does not exist is read as if the change had not yet
// taken place, and counted.
class WallClock {
 public:
  explicit WallClock(const Zone& zone) : zone_(&zone) {}
  std::int64_t utc_ns(std::int64_t wall_ns) noexcept;
  std::size_t nonexistent() const noexcept { return nonexistent_; }

 private:
  const Zone* zone_;
  std::int64_t previous_ns_ = INT64_MIN;
  std::size_t nonexistent_ = 0;
};

}  // namespace kizzasi::io
