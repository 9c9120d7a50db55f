#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kizzasi/signal/calibration.h"
#include "kizzasi/signal/constraint_text.h"

namespace kizzasi {
namespace {

TEST(ConstraintText, ReadsBackWhatItWrites) {
  const std::vector<ConstraintText> all{{"slew", "abs(rate(x)) <= 5 [1/s]", "hold", -3, true, 2.5, "limits.toml:3"}, {"", "x >= 0"}};
  EXPECT_EQ(constraints_from_json(Json::parse(to_json(all).dump(), "t").value(), "t").value(), all);
}

TEST(ConstraintText, SaysWhichConstraintIsWrongAndHow) {
  const auto message = [](const char* text) {
    const auto read = constraints_from_json(Json::parse(text, "t").value(), "limits.json");
    return read ? std::string() : read.error().text();
  };
  EXPECT_EQ(message(R"([{"that":"x>0"},{"that":"x>1","esle":"hold"}])"),
            "limits.json: constraint 2: key 'esle' is not known (expected name, that, else, priority, soft, weight, where). Did you mean "
            "'else'?");
  EXPECT_EQ(message(R"([{"that":"x>1","else":"projct"}])"),
            "limits.json: constraint 1: 'projct' is nothing that can be done else (expected project, reject, hold or warn). Did you mean "
            "'project'?");
  for (const char* text : {R"({})", R"([1])", R"([{}])", R"([{"that":3}])", R"([{"that":"x","soft":1}])", R"([{"that":"x","weight":0}])",
                           R"([{"that":"x","priority":0.5}])"}) {
    EXPECT_NE(message(text), "") << text;
  }
}

Calibration example() { return {{0.1, 0.5, 0.9}, 2, 2, std::vector<double>(12, 1.25), std::vector<double>(12, -3.5), 40, 0.02}; }

TEST(Calibration, ReadsBackWhatItWrites) {
  EXPECT_EQ(calibration_from_json(Json::parse(to_json(example()).dump(), "t").value(), "t").value(), example());
  EXPECT_EQ(calibration_from_json(to_json(Calibration{}), "t").value(), Calibration{});
}

TEST(Calibration, LaterStepsUseTheLast) {
  const Calibration c = example();
  EXPECT_EQ(c.index(0, 1, 2), 5u);
  EXPECT_EQ(c.index(1, 0, 0), 6u);
  EXPECT_EQ(c.index(700, 1, 2), 11u);
}

TEST(Calibration, RefusesWhatDoesNotFit) {
  const auto broken = [](auto change) {
    Calibration c = example();
    change(c);
    return !calibration_from_json(to_json(c), "t");
  };
  EXPECT_TRUE(broken([](Calibration& c) { c.levels[0] = 0; }));
  EXPECT_TRUE(broken([](Calibration& c) { c.levels[2] = 0.4; }));
  EXPECT_TRUE(broken([](Calibration& c) { c.shift.pop_back(); }));
  EXPECT_TRUE(broken([](Calibration& c) { c.stretch[3] = -1; }));
  EXPECT_TRUE(broken([](Calibration& c) { c.horizon = 0; }));
  EXPECT_TRUE(broken([](Calibration& c) { c.targets = std::size_t{1} << 62; }));
  EXPECT_TRUE(broken([](Calibration& c) { c.rate = 1; }));
  EXPECT_TRUE(broken([](Calibration& c) { c.shift[0] = INFINITY; }));
}

}  // namespace
}  // namespace kizzasi
