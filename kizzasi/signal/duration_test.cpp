#include "kizzasi/signal/duration.h"

#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

TEST(Duration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("7ns", "x"), 7);
  EXPECT_EQ(parse_duration("0.5us", "x"), 500);
  EXPECT_EQ(parse_duration("3\xc2\xb5s", "x"), 3000);
  EXPECT_EQ(parse_duration(" 250 ms ", "x"), 250'000'000);
  EXPECT_EQ(parse_duration("10s", "x"), 10'000'000'000);
  EXPECT_EQ(parse_duration("1.5min", "x"), 90'000'000'000);
  EXPECT_EQ(parse_duration("2h", "x"), 7'200'000'000'000);
  EXPECT_EQ(parse_duration("1d", "x"), 86'400'000'000'000);
  EXPECT_EQ(parse_duration("1w", "x"), *parse_duration("7 d", "x"));
}

TEST(Duration, ReadsThePandasAndIsoForms) {
  for (const char* quarter : {"15T", "15min", "PT15M", "PT0H15M", "PT900S", "0.25H", "PT0.25H"}) {
    EXPECT_EQ(parse_duration(quarter, "x"), 900'000'000'000) << quarter;
  }
  EXPECT_EQ(parse_duration("H", "x"), *parse_duration("1h", "x"));
  EXPECT_EQ(parse_duration("D", "x"), *parse_duration("P1D", "x"));
  EXPECT_EQ(parse_duration("P1DT2H30M", "x"), *parse_duration("26.5h", "x"));
  EXPECT_EQ(parse_duration("P2W", "x"), *parse_duration("14D", "x"));
}

TEST(Duration, SaysWhatIsWrongWhereAndWhatToDo) {
  for (const char* text : {"", "s", "10", "10 parsecs", "-1s", "1e300d", "nan s", "inf s", "P", "PT", "P1M", "P1Y", "15M", "P1DT", "PT1D",
                           "9223372036854775808ns", "200000w", "1 2s"}) {
    const auto result = parse_duration(text, "--horizon");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().where, "--horizon") << text;
  }
  EXPECT_EQ(parse_duration("10", "--horizon").error().text(),
            "--horizon: '10' has no unit (expected a number and one of ns, us, ms, s, min, h, d, w). For example 10s or 250 ms.");
}

TEST(Duration, TextReadsBackToTheSameNanoseconds) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(900'000'000'000), "15min");
  EXPECT_EQ(duration_text(5'000'000), "5ms");
  EXPECT_EQ(duration_text(3'600'000'000'000), "1h");
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const auto ns = static_cast<std::int64_t>(rng.bits() >> (1 + rng.below(62)));
    ASSERT_EQ(parse_duration(duration_text(ns), "x"), ns);
  }
  EXPECT_EQ(parse_duration(duration_text(std::numeric_limits<std::int64_t>::max()), "x"), std::numeric_limits<std::int64_t>::max());
}

TEST(TimeText, ShowsZoneDecimalsAndTheYearsBefore1970) {
  const std::int64_t quarter_past = 1'467'332'100 * 1'000'000'000LL;
  EXPECT_EQ(time_text(quarter_past, "UTC"), "2016-07-01T00:15:00Z");
  EXPECT_EQ(time_text(quarter_past, ""), "2016-07-01T00:15:00");
  EXPECT_EQ(time_text(quarter_past, "+01:00"), "2016-07-01T01:15:00+01:00");
  EXPECT_EQ(time_text(quarter_past, "-0530"), "2016-06-30T18:45:00-0530");
  EXPECT_EQ(time_text(5'000'000, ""), "1970-01-01T00:00:00.005");
  EXPECT_EQ(time_text(-1, "UTC"), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(time_text(951'782'400 * 1'000'000'000LL, "UTC"), "2000-02-29T00:00:00Z");
}

}  // namespace
}  // namespace kizzasi
