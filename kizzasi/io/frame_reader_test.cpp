#include "kizzasi/io/frame_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace kizzasi::io {
namespace {

Schema two() {
  Schema schema;
  schema.channels = {{"temp", "degC", Role::kTarget}, {"hum", "%", Role::kTarget}};
  return schema;
}

void expect_frame(FrameReader& reader, std::string_view line, double temp, double hum, std::optional<std::int64_t> time = std::nullopt) {
  StreamFrame frame;
  const auto kind = reader.read(line, frame);
  ASSERT_TRUE(kind) << kind.error().text();
  ASSERT_EQ(*kind, LineKind::kFrame) << line;
  ASSERT_EQ(frame.values.size(), 2U);
  EXPECT_TRUE(frame.values[0] == temp || (std::isnan(temp) && std::isnan(frame.values[0]))) << line << " " << frame.values[0];
  EXPECT_TRUE(frame.values[1] == hum || (std::isnan(hum) && std::isnan(frame.values[1]))) << line << " " << frame.values[1];
  EXPECT_EQ(frame.time_ns, time) << line;
}

LineKind kind_of(FrameReader& reader, std::string_view line) {
  StreamFrame frame;
  const auto kind = reader.read(line, frame);
  EXPECT_TRUE(kind) << kind.error().text();
  return kind.value_or(LineKind::kBlank);
}

constexpr std::int64_t kMoment = 1709539200'000'000'000;  // 2024-03-04T08:00:00Z

TEST(FrameReader, EveryFormOfOneFrame) {
  const double nan = std::nan("");
  struct Case {
    const char* line;
    std::optional<std::int64_t> time;
  };
  for (const Case& c : {Case{"20.5,55", {}}, Case{"20.5;55", {}}, Case{"20.5\t55", {}}, Case{"20.5 55", {}}, Case{" 20.5 , 55 ", {}},
                        Case{"2024-03-04T08:00:00Z,20.5,55", kMoment}, Case{"2024-03-04 08:00;20.5;55", kMoment},
                        Case{"1709539200,20.5,55", kMoment}, Case{"1709539200000,20.5,55", kMoment}, Case{"1.5,20.5,55", 1'500'000'000},
                        Case{"[20.5, 55]", {}}, Case{"{\"temp\": 20.5, \"hum\": 55}", {}}, Case{"{\"values\": [20.5, 55]}", {}},
                        Case{"{\"hum\": 55, \"time\": \"2024-03-04T09:00:00+01:00\", \"temp\": 20.5}", kMoment},
                        Case{"{\"ts\": 1709539200, \"values\": {\"temp\": 20.5, \"hum\": 55}}", kMoment}}) {
    FrameReader reader(two());
    expect_frame(reader, c.line, 20.5, 55, c.time);
  }
  FrameReader csv(two()), json(two());
  expect_frame(csv, "NaN,3", nan, 3);
  expect_frame(csv, ",3", nan, 3);
  expect_frame(json, "{\"hum\": 3}", nan, 3);
  expect_frame(json, "{\"temp\": null, \"hum\": 3}", nan, 3);
}

TEST(FrameReader, AHeaderSettlesTheOrder) {
  FrameReader reader(two());
  EXPECT_EQ(kind_of(reader, "hum;note;time;temp"), LineKind::kHeader);
  EXPECT_EQ(kind_of(reader, ""), LineKind::kBlank);
  EXPECT_EQ(kind_of(reader, "# remark"), LineKind::kBlank);
  expect_frame(reader, "55;\"a;b\";2024-03-04T08:00:00;20.5", 20.5, 55, kMoment);
  EXPECT_EQ(reader.lines(), 4U);
}

// What stands below a header that does not fit belongs to other channels, whatever the number of its cells.
TEST(FrameReader, AHeaderOfOtherChannelsIsRefusedForGood) {
  const auto refuses = [](const Schema& schema, std::string_view line) {
    FrameReader reader(schema);
    StreamFrame frame;
    return !reader.read(line, frame) && reader.header_refused();
  };
  for (const char* header : {"time,temp", "time,hum,temp2", "hum,temp2", "time;hum;pressure", "a,b", "time,a,b", "zeit\tx\ty", "time,y,n",
                             "temp,temp,hum", "\"a\",\"b\"", "note,hum,a,b"}) {
    EXPECT_TRUE(refuses(two(), header)) << header;
  }
  Schema one;
  one.channels = {{"x", "", Role::kTarget}};
  for (const char* header : {"time,y", "time,no", "date,value"}) EXPECT_TRUE(refuses(one, header)) << header;
  // A remark, the rest of a line that was cut, words for values: the stream goes on.
  for (const char* line : {"logger started", "00Z,1.5,x", "true,false", "nan,nan", "2024-03-04,n,y", "x"})
    EXPECT_FALSE(refuses(two(), line)) << line;
}

TEST(FrameReader, DecimalCommaAndSentinels) {
  FrameOptions options;
  options.decimal = ',';
  options.sentinels = {-999};
  FrameReader reader(two(), options);
  expect_frame(reader, "20,5;-999", 20.5, std::nan(""));
}

TEST(FrameReader, WallClocksFollowTheZone) {
  FrameOptions options;
  options.zone = *Zone::open("Europe/Berlin");
  FrameReader reader(two(), options);
  expect_frame(reader, "2025-10-26 02:00,1,2", 1, 2, 1761436800'000'000'000);
  expect_frame(reader, "2025-10-26 02:00,1,2", 1, 2, 1761440400'000'000'000);
}

TEST(FrameReader, ABadLineIsNamedAndTheNextOneIsRead) {
  struct Case {
    const char *good, *bad;
  };
  for (const Case& c :
       {Case{"1,2", "1,2,3,4"}, Case{"1,2", "1"}, Case{"1,2", "1,two"}, Case{"1,2", "1,inf"}, Case{"1,2", "1e999,2"}, Case{"1,2", "\"1,2"},
        Case{"5,1,2", "2024-02-30T00:00:00,1,2"}, Case{"5,1,2", "noon,1,2"}, Case{"[1,2]", "[1]"}, Case{"[1,2]", "{\"temq\": 1}"},
        Case{"[1,2]", "{\"temp\": \"x\"}"}, Case{"[1,2]", "{\"temp\": 1, \"temp\": 2}"}, Case{"[1,2]", "{\"temp\": 1"}, Case{"[1,2]", "7"},
        Case{"[1,2]", "1,2"}, Case{"[1,2]", "{\"time\": [1], \"temp\": 1}"}, Case{"[1,2]", "{\"time\": 1e300, \"temp\": 1}"}}) {
    FrameReader reader(two());
    StreamFrame frame;
    ASSERT_TRUE(reader.read(c.good, frame)) << c.good;
    const auto bad = reader.read(c.bad, frame);
    ASSERT_FALSE(bad) << c.bad;
    EXPECT_TRUE(bad.error().where.starts_with("line 2")) << bad.error().text();
    EXPECT_FALSE(bad.error().expected.empty()) << bad.error().text();
    ASSERT_TRUE(reader.read(c.good, frame)) << c.good;
    EXPECT_EQ(frame.values[0], 1);
    EXPECT_EQ(frame.values[1], 2);
  }
  FrameReader lacks(two());
  StreamFrame frame;
  const auto header = lacks.read("time,temp", frame);
  ASSERT_FALSE(header);
  EXPECT_NE(header.error().what.find("hum"), std::string::npos);
}

}  // namespace
}  // namespace kizzasi::io
