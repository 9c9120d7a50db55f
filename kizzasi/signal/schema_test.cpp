#include "kizzasi/signal/schema.h"

#include <gtest/gtest.h>

#include "kizzasi/signal/series.h"

namespace kizzasi {
namespace {

Schema arm() {
  return {
      {{"q1", "rad", Role::kTarget}, {"torque", "N m", Role::kObserved}, {"plan", "", Role::kKnownFuture}, {"q2", "rad", Role::kTarget}},
      5'000'000,
      "+01:00"};
}

TEST(Schema, FindsChannelsByNameAndRole) {
  const Schema schema = arm();
  EXPECT_EQ(schema.index_of("torque"), 1u);
  EXPECT_EQ(schema.index_of("Torque"), std::nullopt);
  EXPECT_EQ(schema.with_role(Role::kTarget), (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(schema.names(), (std::vector<std::string>{"q1", "torque", "plan", "q2"}));
}

TEST(Schema, ReadsBackWhatItWrote) {
  const auto text = to_json(arm()).dump(2);
  const auto back = schema_from_json(*Json::parse(text, "model"), "model");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, arm());
}

TEST(Schema, NamesWhatIsWrong) {
  const auto error = [](const char* text) { return schema_from_json(*Json::parse(text, "m"), "m").error().text(); };
  EXPECT_EQ(error("[]"), "m: the schema is of kind array (expected an object with channels).");
  EXPECT_EQ(error(R"({"channels": [{"name": "a"}, {"name": "a"}]})"),
            "m: channel 2: the name 'a' stands twice (expected names that differ).");
  EXPECT_EQ(error(R"({"channels": [{"name": "a", "role": "targte"}]})"),
            "m: channel 1: 'targte' is no role (expected target, observed, known_future). Did you mean 'target'?");
  EXPECT_EQ(error(R"({"channels": [{"name": "a", "units": "W"}]})"),
            "m: channel 1: key 'units' is not known (expected name, unit, role). Did you mean 'unit'?");
  EXPECT_EQ(error(R"({"channels": [{}]})"), "m: channel 1: a channel has no name (expected a text under 'name').");
  EXPECT_EQ(error(R"({"channels": [], "step_ns": -1})"), "m: 'step_ns' is no step (expected whole nanoseconds, at least 0).");
  EXPECT_EQ(error(R"({"channels": [], "step_ns": 0.5})"), "m: 'step_ns' is no step (expected whole nanoseconds, at least 0).");
}

// A series of 50 rows whose value tells its row and channel.
Series counted() {
  Series series{"arm", arm(), 1000, {}};
  for (int r = 0; r < 50; ++r) {
    for (int c = 0; c < 4; ++c) series.values.push_back(10 * r + c);
  }
  return series;
}

TEST(Series, SlicesKeepTheirTimesAndValues) {
  const Series all = counted();
  for (std::size_t begin = 0; begin <= 50; begin += 7) {
    for (std::size_t end = begin; end <= 50; ++end) {
      const Series part = all.slice(begin, end);
      ASSERT_EQ(part.rows(), end - begin);
      for (std::size_t r = 0; r < part.rows(); ++r) {
        ASSERT_EQ(part.time_ns(r), all.time_ns(begin + r));
        ASSERT_EQ(part.at(r, 2), all.at(begin + r, 2));
      }
    }
  }
}

TEST(Series, SelectTakesChannelsInTheOrderAskedFor) {
  const Series all = counted();
  const std::vector<std::string> names{"q2", "q1"};
  const auto chosen = all.select(names);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->schema.names(), names);
  EXPECT_EQ(chosen->schema.channels[0].unit, "rad");
  EXPECT_EQ(chosen->time_ns(3), all.time_ns(3));
  for (std::size_t r = 0; r < 50; ++r) {
    ASSERT_EQ(chosen->at(r, 0), all.at(r, 3));
    ASSERT_EQ(chosen->at(r, 1), all.at(r, 0));
  }
  const std::vector<std::string> wrong{"torqe"};
  EXPECT_EQ(all.select(wrong).error().text(), "arm: there is no channel 'torqe' (expected q1, torque, plan, q2). Did you mean 'torque'?");
}

}  // namespace
}  // namespace kizzasi
