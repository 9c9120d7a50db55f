// Parameters: numbers with names, put into texts as if they had been written there.
#include "kizzasi/logic/parameters.h"

#include <gtest/gtest.h>

#include "kizzasi/logic/constraint_file.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi {
namespace {

const std::vector<Parameter> kKnown{{"v_max", 3, "m/s"}, {"low", -2.5, ""}, {"wait", 10, "s"}, {"abs", 7, ""}, {"n.1", 1e-30, "1"}};

TEST(Parameters, StandWhereTheirNamesStood) {
  const char* const cases[][2] = {
      {"v <= v_max", "v <= 3 [m/s]"},
      {"v<=v_max", "v<=3 [m/s]"},
      {"-v_max <= v <= 2 * v_max", "-3 [m/s] <= v <= 2 * 3 [m/s]"},
      {"x<low", "x< -2.5"},
      {"x - low >= low", "x -  -2.5 >=  -2.5"},
      {"x > 5 -> eventually[0, wait] x < 3", "x > 5 -> eventually[0, 10 [s]] x < 3"},
      {"abs(x) <= abs", "abs(x) <= 7"},
      {"x <= n.1", "x <= 1e-30 [1]"},
      {"\"v_max\" <= 3", "\"v_max\" <= 3"},  // quotes always name a channel
      {"v_max2 <= 3 [v_max]", "v_max2 <= 3 [v_max]"},
      {"(v, x) in ball([v_max, low], wait)", "(v, x) in ball([3 [m/s],  -2.5], 10 [s])"},
  };
  for (const auto& one : cases) {
    ConstraintText text{.name = "n", .that = one[0], .where = "l.toml", .line = 4, .column = 9};
    const bool put = put_parameters(text, kKnown);
    EXPECT_EQ(text.that, one[1]);
    EXPECT_EQ(text.name, "n");
    EXPECT_EQ(put, std::string_view(one[0]) != one[1]);
    EXPECT_EQ(text.where, put ? "l.toml:4, with its parameters put in" : "l.toml");
    EXPECT_EQ(text.line, put ? 0U : 4U);
    const auto formula = logic::parse_formula({text.that, "t"});
    EXPECT_TRUE(formula) << text.that << ": " << formula.error().text();
  }
}

TEST(Parameters, ATextThatCannotBeReadIsLeftToTheParser) {
  ConstraintText text{.name = "n", .that = "v <= v_max $", .where = "l.toml", .line = 4, .column = 9};
  EXPECT_FALSE(put_parameters(text, kKnown));
  EXPECT_EQ(text.that, "v <= v_max $");
}

std::string made(const char* name, const char* value) {
  const auto parameter = parameter_from(name, value, "l.toml:2:1");
  if (!parameter) return parameter.error().text();
  return logic::number_text(parameter->value) + (parameter->unit.empty() ? "" : " | " + parameter->unit);
}

TEST(Parameters, AreReadFromTexts) {
  EXPECT_EQ(made("a", "3"), "3");
  EXPECT_EQ(made("a", " -2.5e3 "), "-2500");
  EXPECT_EQ(made("a", "+1"), "1");
  EXPECT_EQ(made("a", "3 m/s"), "3 | m/s");
  EXPECT_EQ(made("a", "3[m/s]"), "3 | m/s");
  EXPECT_EQ(made("a", "10s"), "10 | s");
  EXPECT_EQ(made("a", "fast"),
            "l.toml:2:1: the parameter 'a' is 'fast' (expected a number, such as 3.5, or one with a unit, such as 3 m/s).");
  EXPECT_EQ(made("a", "inf"),
            "l.toml:2:1: the parameter 'a' is 'inf' (expected a number, such as 3.5, or one with a unit, such as 3 m/s).");
  EXPECT_EQ(made("a", ""), "l.toml:2:1: the parameter 'a' is '' (expected a number, such as 3.5, or one with a unit, such as 3 m/s).");
  EXPECT_EQ(made("a", "3 ]x["), "l.toml:2:1: the unit of the parameter 'a' is ']x[' (expected a unit, such as m/s).");
  EXPECT_EQ(made("v max", "3"),
            "l.toml:2:1: a parameter is called 'v max' (expected a plain word that the language does not use itself, such as v_max).");
  EXPECT_EQ(made("always", "3"),
            "l.toml:2:1: a parameter is called 'always' (expected a plain word that the language does not use itself, such as v_max).");
  EXPECT_EQ(parameter_from_option("v_max = 2 m/s", "--set")->unit, "m/s");
  EXPECT_EQ(parameter_from_option("v_max", "--set").error().text(), "--set: 'v_max' sets nothing (expected NAME=VALUE, such as v_max=2).");
  EXPECT_EQ(parameter_from_option("v=x", "--set").error().fault, Fault::kBadUse);
}

TEST(Parameters, OfAFileGiveWayToThoseThatAreSet) {
  const auto json = Json::parse(
      R"({"parameters": {"v_max": "36 km/h", "gain": 2}, "constraint": [{"that": "v <= v_max"}, {"name": "g", "that": "gain * v >= 1"}]})",
      "l.json");
  const auto read = read_constraints(*json, "l.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ((*read)[0].that, "v <= 36 [km/h]");
  EXPECT_EQ((*read)[0].name, "v <= v_max");
  EXPECT_EQ((*read)[1].that, "2 * v >= 1");
  EXPECT_EQ(*read_parameters(*json, "l.json"), (std::vector<Parameter>{{"v_max", 36, "km/h"}, {"gain", 2, ""}}));
  const std::vector<Parameter> set{{"v_max", 5, ""}};
  const auto other = read_constraints(*json, "l.json", {}, set);
  EXPECT_EQ((*other)[0].that, "v <= 5");
  EXPECT_EQ((*other)[1].that, "2 * v >= 1");

  // Enforced as if written: 36 km/h are 10 m/s.
  Schema schema;
  schema.channels = {{"v", "m/s", Role::kTarget}};
  schema.step_ns = 1'000'000'000;
  const auto guard = compile_guard(schema, *read, {});
  ASSERT_TRUE(guard) << guard.error().text();
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles()), value{12};
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  EXPECT_EQ((*guard)->propose(state, 0, value, report, scratch), GuardStatus::kMoved);
  EXPECT_EQ(value[0], 10);
  schema.channels[0].unit = "kg";
  EXPECT_EQ(compile_guard(schema, *read, {}).error().text(),
            "l.json: constraint 1, with its parameters put in:6: the units differ: 'v' is in kg, '36 [km/h]' is in km/h (expected both in "
            "kg). Only units that measure the same are converted.");
}

TEST(Parameters, MistakesInAFileAreNamedWithTheirPlace) {
  const auto told = [](const char* text) {
    const auto place = [](std::string_view pointer) { return pointer == "/parameters/a" ? TextPlace{2, 5} : TextPlace{}; };
    const auto read = read_constraints(*Json::parse(text, "l.toml"), "l.toml", place);
    return read ? std::string("accepted") : read.error().text();
  };
  EXPECT_EQ(told(R"({"parameters": [1], "constraint": []})"),
            "l.toml: parameters is an array (expected a table such as v_max = \"3 m/s\").");
  EXPECT_EQ(told(R"({"parameters": {"a": true}, "constraint": []})"),
            "l.toml:2:5: the parameter 'a' is a boolean (expected a number, or a text such as \"3 m/s\").");
  EXPECT_EQ(told(R"({"parameters": {"a": "much"}, "constraint": []})"),
            "l.toml:2:5: the parameter 'a' is 'much' (expected a number, such as 3.5, or one with a unit, such as 3 m/s).");
  EXPECT_EQ(told(R"({"parameter": {}, "constraint": []})"),
            "l.toml: there is no key 'parameter' (expected constraint or parameters). Did you mean 'parameters'?");
}

}  // namespace
}  // namespace kizzasi
