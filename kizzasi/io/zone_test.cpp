#include "kizzasi/io/zone.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <set>

#include "kizzasi/base/rng.h"

namespace kizzasi::io {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class ClockOf {
 public:
  explicit ClockOf(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  ~ClockOf() {
    ::unsetenv("TZ");
    ::tzset();
  }
  static std::int64_t offset_s(std::int64_t utc_s) {
    const auto when = static_cast<std::time_t>(utc_s);
    std::tm local{};
    ::localtime_r(&when, &local);
    return local.tm_gmtoff;
  }
};

constexpr const char* kZones[] = {"Europe/Berlin", "America/New_York", "Australia/Sydney",    "America/Sao_Paulo",
                                  "Asia/Kolkata",  "Asia/Kathmandu",   "Africa/Cairo",        "Pacific/Apia",
                                  "Europe/Dublin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Tokyo"};

// The C library reads the same files with code of its own.
TEST(Zone, OffsetsAreThoseOfTheCLibrary) {
  Rng rng(4);
  for (const char* name : kZones) {
    const auto zone = Zone::open(name);
    ASSERT_TRUE(zone) << zone.error().text();
    const ClockOf clock(name);
    for (int i = 0; i < 3000; ++i) {
      const auto when = static_cast<std::int64_t>(rng.uniform(-2.1e9, 4.1e9));  // 1903 to 2099
      ASSERT_EQ(zone->offset_s(when), ClockOf::offset_s(when)) << name << " at " << when;
    }
  }
}

// An instant shows its wall clock; a clock that does not exist is an hour that the zone leaves out.
TEST(Zone, InstantsAreTheInverseOfTheClock) {
  Rng rng(5);
  for (const char* name : kZones) {
    const auto zone = Zone::open(name);
    ASSERT_TRUE(zone);
    for (int i = 0; i < 3000; ++i) {
      const auto utc = static_cast<std::int64_t>(rng.uniform(0, 2.5e9));
      const std::int64_t wall = utc + zone->offset_s(utc);
      const auto found = zone->instants(wall * kSecond);
      ASSERT_TRUE(found.exists) << name << " " << utc;
      EXPECT_TRUE(found.first_ns == utc * kSecond || found.second_ns == utc * kSecond) << name << " " << utc;
    }
  }
}

// Both changes of 2025 in Berlin, hour by hour, and the hour that is run twice in steps of 15 minutes.
TEST(Zone, TheHourThatIsRunTwiceGivesTwoHours) {
  const auto berlin = Zone::open("Europe/Berlin");
  ASSERT_TRUE(berlin);
  for (const std::int64_t minutes : {60, 15, 5}) {
    const std::int64_t begin = 1761426000;  // 2025-10-25T21:00:00Z
    WallClock clock(*berlin);
    for (std::int64_t utc = begin; utc < begin + 8 * 3600; utc += 60 * minutes) {
      EXPECT_EQ(clock.utc_ns((utc + berlin->offset_s(utc)) * kSecond), utc * kSecond) << minutes << " " << utc;
    }
    EXPECT_EQ(clock.nonexistent(), 0U);
  }
  WallClock clock(*berlin);
  EXPECT_EQ(clock.utc_ns(1743298200 * kSecond), 1743294600 * kSecond);  // 30 March 2025, 01:30 there
  EXPECT_EQ(clock.utc_ns(1743301800 * kSecond), 1743298200 * kSecond);  // 02:30 does not exist: read as before the change
  EXPECT_EQ(clock.nonexistent(), 1U);
}

TEST(Zone, FixedOffsetsAndUtc) {
  EXPECT_EQ(Zone::open("UTC")->offset_s(0), 0);
  EXPECT_EQ(Zone::open("+05:30")->offset_s(123), 19800);
  EXPECT_EQ(Zone::open("-08:00")->offset_s(123), -28800);
}

TEST(Zone, UnknownZonesNameTheNearest) {
  for (const char* name : {"Europe/Berlim", "Europ/Berlin", "", "../etc/passwd", "/etc/passwd", "Europe", "+99:00", "zone.tab"}) {
    const auto zone = Zone::open(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_FALSE(zone.error().expected.empty());
  }
  EXPECT_EQ(Zone::open("Europe/Berlim").error().hint, "Did you mean 'Europe/Berlin'?");
  EXPECT_EQ(Zone::open("Europe/Berlin", "/nonexistent").error().fault, Fault::kUnavailable);
}

}  // namespace
}  // namespace kizzasi::io
