// What people write wrongly, and what they are told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kizzasi/logic/constraint_file.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi {
namespace {

Schema plant() {
  Schema schema;
  schema.channels = {{"temp", "degC", Role::kTarget},     {"inflow", "m3/h", Role::kTarget},    {"outflow", "m3/h", Role::kTarget},
                     {"joint1.angle", "", Role::kTarget}, {"room temp", "degC", Role::kTarget}, {"hour", "", Role::kKnownFuture}};
  schema.step_ns = 1'000'000'000;
  return schema;
}

std::string message(const std::string& that, int decimals = -1) {
  const std::vector<ConstraintText> one{{.name = "c", .that = that, .where = "l.toml", .line = 3, .column = 9}};
  const auto guard = compile_guard(plant(), one, {decimals});
  return guard ? "accepted" : guard.error().text();
}

TEST(Mistakes, OneLine) {
  constexpr const char* kNotConvex = "its set of allowed values is not convex, and this version does not enforce it";
  constexpr const char* kConvex =
      "(expected linear conditions, norms and positive semidefinite quadratic forms that must be small, and choices between such).";
  const std::pair<std::string, std::string> kCases[] = {
      {"", "l.toml:3:9: the constraint is empty (expected a condition, such as x <= 3)."},
      {"tmp <= 3",
       "l.toml:3:9: there is no channel 'tmp' (expected one of temp, inflow, outflow, joint1.angle, room temp, hour). Did you "
       "mean 'temp'?"},
      {"temp <= 3 and\n  inflo >= 0",
       "l.toml:4:3: there is no channel 'inflo' (expected one of temp, inflow, outflow, joint1.angle, room temp, hour). Did you mean "
       "'inflow'?"},
      {"c9 <= 3", "l.toml:3:9: there is no channel 9: there are 6 (expected c1 to c6)."},
      {"temp < = 3", "l.toml:3:16: '=' stands here (expected a number or a channel)."},
      {"temp = 3", "l.toml:3:14: a single = stands here (expected == for equality, or <= or >=)."},
      {"temp => 3", "l.toml:3:14: => stands here (expected >= for 'at least', -> for 'implies')."},
      {"temp != 3", "l.toml:3:14: != cannot be held: every number but one obeys it (expected < <= > >= or ==)."},
      {"temp <= 3,5",
       "l.toml:3:18: ',' stands here (expected the end of the constraint, or an operator such as and). Numbers take a decimal "
       "point: 3.5."},
      {"temp", "l.toml:3:9: 'temp' is a number, not a condition (expected a comparison, such as x <= 3)."},
      {"(temp <= 3", "l.toml:3:19: the constraint ends too early (expected a closing ))."},
      {"temp <= 3)", "l.toml:3:18: ')' stands here (expected the end of the constraint, or an operator such as and)."},
      {"temp <= inf", "l.toml:3:17: 'inf' is no limit (expected a number, such as 3.5). Leave the limit out where there is none."},
      {"temp <= nan", "l.toml:3:17: 'nan' is no limit (expected a number, such as 3.5). Leave the limit out where there is none."},
      {"temp <= 1e999",
       "l.toml:3:17: the number 1e999 is outside what a double holds (expected a number between 5e-324 and 1.7e308 in size). "
       "Leave the limit out where there is none."},
      {"temp <= 80 [V]",
       "l.toml:3:17: the units differ: 'temp' is in degC, '80 [V]' is in V (expected both in degC). Only units that measure the same are "
       "converted."},
      {"2 * temp <= 300 [K]",
       "l.toml:3:21: the units differ: '2 * temp' is in degC, '300 [K]' is in K (expected both in degC). Only units that measure the same "
       "are converted."},
      {"temp + inflow <= 8",
       "l.toml:3:16: the units differ: 'temp' is in degC, 'inflow' is in m3/h (expected both in degC). Only units that "
       "measure the same are converted."},
      {"rate(temp) <= 5 [degC]",
       "l.toml:3:23: the units differ: 'rate(temp)' is in degC/s, '5 [degC]' is in degC (expected both in degC/s). "
       "Only units that measure the same are converted."},
      {"rate(joint1.angle) <= 5 [1/min]",
       "l.toml:3:31: the units differ: 'rate(joint1.angle)' is in its channel's unit per s, '5 [1/min]' is "
       "in 1/min (expected both in its channel's unit per s). Only units that measure the same are converted."},
      {"temp <= 5 [", "l.toml:3:19: the unit in [ ] does not end (expected a closing ]). For example 5 [m/s]."},
      {"temp <= 5 []", "l.toml:3:19: the brackets hold no unit (expected a unit, such as [m/s]). Leave them out where there is none."},
      {"\"temp <= 5", "l.toml:3:9: the quoted name does not end (expected a closing \")."},
      {"temp <= 5 $",
       "l.toml:3:19: '$' is no sign of the language (expected names, numbers, + - * / < <= > >= == and brackets). A name with "
       "other characters goes in quotes: \"room-temp 2\"."},
      {"temp <= \xE2\x82\xAC",
       "l.toml:3:17: there is no channel '\xE2\x82\xAC' (expected one of temp, inflow, outflow, joint1.angle, room "
       "temp, hour)."},
      {"0 <= temp >= 5",
       "l.toml:3:19: the chain turns: >= after <= (expected one direction, such as a <= x <= b). Join two constraints with "
       "and."},
      {"always <= 5", "l.toml:3:16: '<=' stands here (expected a number or a channel)."},
      {"in <= 5",
       "l.toml:3:9: the word 'in' stands where a number or a channel should (expected a number or a channel). A channel of that "
       "name goes in quotes: \"in\"."},
      {"temp in 0, 5", "l.toml:3:17: '0' stands here (expected [low, high] after in)."},
      {"temp in [0; 5]",
       "l.toml:3:19: ';' is no sign of the language (expected names, numbers, + - * / < <= > >= == and brackets). A name "
       "with other characters goes in quotes: \"room-temp 2\"."},
      {"sqrt(temp) <= 5",
       "l.toml:3:9: there is no function 'sqrt' (expected one of abs, min, max, norm, norm1, norminf, sum, mean, rate, accel, "
       "prev, derivative, integral, variance, trend, hour, weekday, hysteresis, rise, fall)."},
      {"rat(temp) <= 5",
       "l.toml:3:9: there is no function 'rat' (expected one of abs, min, max, norm, norm1, norminf, sum, mean, rate, accel, "
       "prev, derivative, integral, variance, trend, hour, weekday, hysteresis, rise, fall). Did you mean 'rate'?"},
      {"rate(temp, 2) <= 5", "l.toml:3:9: rate takes 1 argument, not 2 (expected 1 argument)."},
      {"rate(temp, from = sensor) <= 5", "l.toml:3:27: 'sensor' stands here (expected measured or commanded)."},
      {"abs(temp, from = measured) <= 5",
       "l.toml:3:19: abs does not look back, so it takes no from (expected from only in rate, accel and "
       "prev)."},
      {"3 <= 5", "l.toml:3:9: no channel stands in '3 <= 5' (expected a channel on one side)."},
      {"temp - temp <= 5", "l.toml:3:9: no present value is left in 'temp - temp <= 5' (expected a condition on a value of now)."},
      {"prev(temp, 1) <= 5", "l.toml:3:9: no present value is left in 'prev(temp, 1) <= 5' (expected a condition on a value of now)."},
      {"5 <= temp <= 3", "l.toml:3:9: no value of 'temp' obeys it (expected a lower bound that is not above the upper one)."},
      {"temp in [1, 0]", "l.toml:3:9: no value of 'temp' obeys it (expected a lower bound that is not above the upper one)."},
      {"temp <= 1e308 * 10",
       "l.toml:3:17: '1e+308 * 10' is outside what a double holds (expected a number up to 1.7e308 in size). Leave the limit out where "
       "there "
       "is none."},
      {"temp >= -1e308 - 1e308 + 5",
       "l.toml:3:17: '-1e+308 - 1e+308' is outside what a double holds (expected a number up to 1.7e308 in size). Leave the limit out "
       "where "
       "there is none."},
      {"temp / 0 <= 3", "l.toml:3:16: a division by zero (expected a number other than 0)."},
      {"(temp <= 3) + 1 <= 5",
       "l.toml:3:10: 'temp <= 3' is true or false, not a number (expected a number). Join conditions with and, or, "
       "not."},
      // The whole language is read; what is not enforced says so.
      {"temp * inflow <= 3", fmt::format("l.toml:3:9: {} {}", kNotConvex, kConvex)},
      {"inflow / outflow <= 3", fmt::format("l.toml:3:9: {} {}", kNotConvex, kConvex)},
      {"norm(inflow, outflow) >= 3", fmt::format("l.toml:3:9: {} {}", kNotConvex, kConvex)},
      {"variance(temp, 10s) >= 3", fmt::format("l.toml:3:9: {} {}", kNotConvex, kConvex)},
      {"temp * temp - inflow * inflow <= 3", fmt::format("l.toml:3:9: {} {}", kNotConvex, kConvex)},
      {"not norm(inflow, outflow) <= 3", fmt::format("l.toml:3:13: {} {}", kNotConvex, kConvex)},
      {"hour * abs(temp) <= 3",
       "l.toml:3:14: the sign of what multiplies 'abs(temp)' is not known when compiling (expected a number other than 0)."},
      {"temp > 3 and not temp > 3 or false",
       "l.toml:3:9: no values obey 'c' and the constraints before it over the same channels "
       "(expected constraints that can hold together)."},
      {"prev(temp, 2) <= 5", "l.toml:3:9: no present value is left in 'prev(temp, 2) <= 5' (expected a condition on a value of now)."},
      {"temp <= 3 or true", "l.toml:3:9: 'temp <= 3 or true' holds whatever comes (expected a condition that can be broken)."},
      {"(temp == 1 xor temp == 2) xor (temp == 3 xor temp == 4) xor (temp == 5 xor temp == 6) xor (temp == 7 xor temp == 8)",
       "l.toml:3:65: it leaves more than 64 branches to choose from (expected fewer choices in one constraint). Split it: what is "
       "joined by and may stand in constraints of its own."},
      {"temp < 60 until inflow > 1",
       "l.toml:3:19: 'temp < 60 until inflow > 1' sets no deadline: no frame is the last at which it could still be kept (expected an "
       "interval with an end, such as eventually[0, 10s])."},
      {"once eventually[0, 1s] temp > 3",
       "l.toml:3:9: 'once eventually[0,1s] temp > 3' looks back at a condition that looks ahead: what it says of now is "
       "known too late (expected past operators over the present and the past)."},
      {"eventually[3, 1] temp < 60", "l.toml:3:19: the interval ends before it begins (expected [a, b] with a <= b)."},
      {"eventually[-1, 1] temp < 60", "l.toml:3:19: the interval begins at -1, before now (expected 0 or more)."},
      {"eventually[0, 1.5s] temp < 60", "l.toml:3:19: 1.5s is not a whole number of samples (expected a multiple of the sampling period)."},
      {"eventually[0, 3 V] temp < 60", "l.toml:3:25: 'V' stands here (expected ] after the interval)."},
  };
  for (const auto& [that, expected] : kCases) EXPECT_EQ(message(that), expected) << that;
}

TEST(Mistakes, OnDecimals) {
  EXPECT_EQ(message("inflow - outflow == 0", 2),
            "l.toml:3:9: an equality cannot be kept in text with 2 decimals (expected == b +- tol, or text with all digits).");
  EXPECT_EQ(message("temp == 0.333", 2),
            "l.toml:3:9: no number with 2 decimals obeys it as a value of 'temp' (expected room for at least one "
            "such number). Print more decimals, or allow a tolerance: == b +- tol.");
  EXPECT_EQ(message("0.4 < temp < 0.6", 0),
            "l.toml:3:9: no value of 'temp' with 0 decimals obeys it (expected a lower bound that is not above "
            "the upper one).");
  EXPECT_EQ(message("inflow + outflow == 1 +- 0.001", 2),
            "l.toml:3:9: text with 2 decimals is too coarse for it (expected a width of at least "
            "0.02). Print more decimals, or widen it.");
  EXPECT_EQ(message("temp <= 1", 40), "40 decimals (expected 0 to 22, or -1 for all digits).");
}

std::string together(std::vector<ConstraintText> constraints) {
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    constraints[i].name = fmt::format("n{}", i + 1);
    constraints[i].where = "l.toml";
    constraints[i].line = i + 1;
  }
  const auto guard = compile_guard(plant(), constraints, {});
  return guard ? "accepted" : guard.error().text();
}

TEST(Mistakes, OfSeveralTogether) {
  EXPECT_EQ(together({{"", "temp <= 3"}, {"", "temp >= 5"}}),
            "l.toml:2:1: no value of 'temp' obeys both 'n2' and 'n1' (expected bounds that leave room).");
  EXPECT_EQ(together({{"", "inflow + outflow <= 3"}, {"", "inflow - outflow <= 3"}}), "accepted");
  EXPECT_EQ(together({{"", "inflow + outflow <= 3"}, {"", "2 * inflow + 2 * outflow >= -1"}}), "accepted");
  EXPECT_EQ(together({{"", "inflow + outflow <= 3"}, {"", "0 <= inflow <= 1"}, {"", "inflow + outflow >= 9"}}),
            "l.toml:3:1: no values within the bounds of its channels obey 'n3' (expected bounds and sums that can hold together).");
  EXPECT_EQ(together({{"", "inflow + outflow <= 3"}, {"", "inflow - outflow >= 9"}, {"", "outflow >= -2"}}),
            "l.toml:2:1: no values obey 'n2' and the constraints before it over the same channels (expected constraints that can hold "
            "together).");
  ConstraintText soft{"", "inflow <= 1"};
  soft.soft = true;
  EXPECT_EQ(together({{"", "inflow + outflow <= 3"}, soft}), "accepted");
  soft.otherwise = "reject";
  EXPECT_EQ(together({soft}),
            "l.toml:1:1: a soft constraint has else = 'reject' (expected soft = true only with else = project). A soft "
            "constraint is never refused: it costs.");
  EXPECT_EQ(together({{"", "temp <= 1", "ignore"}}), "l.toml:1:1: else is 'ignore' (expected project, reject, hold or warn).");
  EXPECT_EQ(together({{"", "temp <= 1", "project", 0, false, -1.0}}), "l.toml:1:1: the weight is -1 (expected a number above 0).");
}

std::string file(const std::string& json) {
  const auto read = read_constraints(*Json::parse(json, "l.json"), "l.json");
  return read ? "accepted" : read.error().text();
}

TEST(Mistakes, OfAFile) {
  EXPECT_EQ(file("[]"), "l.json: the file holds an array, not a table (expected [[constraint]] tables).");
  EXPECT_EQ(file("{}"),
            "l.json: there is no constraint (expected a list of [[constraint]] tables). In TOML each begins with [[constraint]], "
            "in two brackets.");
  EXPECT_EQ(file(R"({"constraints": []})"),
            "l.json: there is no key 'constraints' (expected constraint or parameters). Did you mean 'constraint'?");
  EXPECT_EQ(file(R"({"constraint": {"that": "x >= 0"}})"),
            "l.json: constraint is an object (expected a list of [[constraint]] tables). In TOML "
            "each begins with [[constraint]], in two brackets.");
  EXPECT_EQ(file(R"({"constraint": [3]})"), "l.json: constraint 1 is an integer (expected a table).");
  EXPECT_EQ(file(R"({"constraint": [{"name": "a"}]})"), "l.json: constraint 1 has no 'that' (expected that = \"x >= 0\").");
  EXPECT_EQ(file(R"({"constraint": [{"that": 3}]})"), "l.json: that is an integer (expected a text in quotes).");
  EXPECT_EQ(file(R"({"constraint": [{"that": "x >= 0", "priorty": 1}]})"),
            "l.json: there is no key 'priorty' (expected name, that, else, priority, soft or weight). Did you mean 'priority'?");
  EXPECT_EQ(file(R"({"constraint": [{"that": "x >= 0", "priority": 1.5}]})"),
            "l.json: priority is a number (expected a whole number, such as "
            "1).");
  EXPECT_EQ(file(R"({"constraint": [{"that": "x >= 0", "soft": "yes"}]})"), "l.json: soft is a string (expected true or false).");
  EXPECT_EQ(file(R"({"constraint": [{"that": "x >= 0", "weight": 0}]})"), "l.json: weight is 0 (expected a number above 0).");
  EXPECT_EQ(file(R"({"constraint": [{"that": "x >= 0", "else": "rejct"}]})"),
            "l.json: else is 'rejct' (expected project, reject, hold or warn). Did you mean 'reject'?");
}

TEST(ConstraintFile, ReadsEveryKeyAndKeepsThePlace) {
  const auto json = Json::parse(R"({"constraint": [{"name": "slew", "that": "abs(rate(x)) <= 5", "else": "hold", "priority": 2},
      {"that": "x >= 0", "soft": true, "weight": 3}]})",
                                "l.json");
  const auto place = [](std::string_view pointer) { return pointer == "/constraint/1/that" ? TextPlace{7, 9} : TextPlace{}; };
  const auto read = read_constraints(*json, "l.toml", place);
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0], (ConstraintText{"slew", "abs(rate(x)) <= 5", "hold", 2, false, 1, "l.toml: constraint 1"}));
  EXPECT_EQ((*read)[1], (ConstraintText{"x >= 0", "x >= 0", "project", 0, true, 3, "l.toml", 7, 9}));
}

}  // namespace
}  // namespace kizzasi
