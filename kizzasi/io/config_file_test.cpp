#include "kizzasi/io/config_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace kizzasi::io {
namespace {

// One configuration, written three times; every format must give the same value.
constexpr const char* kToml = R"(name = "pump 1"
steps = 1_000
rate = 2.5
on = true
[[constraint]]
expr = "temp <= 90"
[[constraint]]
expr = "flow >= 0"
[train.schedule]
warm_up = 10
)";
constexpr const char* kYaml = R"(name: pump 1
steps: 1000
rate: 2.5
on: true
constraint:
  - expr: "temp <= 90"
  - expr: flow >= 0
train:
  schedule: {warm_up: 10}
)";
constexpr const char* kJson =
    R"({"name": "pump 1", "steps": 1000, "rate": 2.5, "on": true,
 "constraint": [{"expr": "temp <= 90"}, {"expr": "flow >= 0"}], "train": {"schedule": {"warm_up": 10}}})";

TEST(ConfigFile, ThreeFormatsGiveOneValue) {
  const auto toml = parse_config(kToml, ConfigFormat::kToml, "a.toml");
  const auto yaml = parse_config(kYaml, ConfigFormat::kYaml, "a.yaml");
  const auto json = parse_config(kJson, ConfigFormat::kJson, "a.json");
  ASSERT_TRUE(toml) << toml.error().text();
  ASSERT_TRUE(yaml) << yaml.error().text();
  ASSERT_TRUE(json) << json.error().text();
  EXPECT_EQ(toml->values, json->values) << toml->values.dump();
  EXPECT_EQ(yaml->values, json->values) << yaml->values.dump();
}

TEST(ConfigFile, EveryValueKnowsItsPlace) {
  const auto toml = parse_config(kToml, ConfigFormat::kToml, "a.toml");
  ASSERT_TRUE(toml);
  EXPECT_EQ(toml->place("/constraint/1/expr"), "a.toml:8:8");
  EXPECT_EQ(toml->place("/constraint/1/expr/nothing"), "a.toml:8:8");
  EXPECT_EQ(toml->place("/nothing"), "a.toml");
  const auto yaml = parse_config(kYaml, ConfigFormat::kYaml, "a.yaml");
  ASSERT_TRUE(yaml);
  EXPECT_EQ(yaml->place("/constraint/1/expr"), "a.yaml:7:11");
}

TEST(ConfigFile, OneYamlDocumentIsReadOrNone) {
  EXPECT_EQ(parse_config("---\nx: 1\n---\n", ConfigFormat::kYaml, "a.yaml")->values.find("x")->integer(), 1);
  const auto two = parse_config("x: 1\n---\nx: 2\n", ConfigFormat::kYaml, "a.yaml");
  ASSERT_FALSE(two);
  EXPECT_EQ(
      two.error().text(),
      "a.yaml:3:1: the file holds 2 documents (expected one). Take out the line '---' between them, or keep them in files of their own.");
}

TEST(ConfigFile, YamlScalarsFollowTheCoreSchema) {
  const auto file =
      parse_config("a: yes\nb: '12'\nc: 0x1F\nd: -1e3\ne: ~\nf: .inf\ng: 1.2.3\nh: 2024-03-04\ni: +7\nj: 007x\n", ConfigFormat::kYaml, "y");
  ASSERT_TRUE(file);
  const Json& v = file->values;
  EXPECT_EQ(*v.find("a"), Json("yes"));
  EXPECT_EQ(*v.find("b"), Json("12"));
  EXPECT_EQ(*v.find("c"), Json(31));
  EXPECT_EQ(*v.find("d"), Json(-1000.0));
  EXPECT_TRUE(v.find("e")->is_null());
  EXPECT_TRUE(std::isinf(v.find("f")->number()));
  EXPECT_EQ(*v.find("g"), Json("1.2.3"));
  EXPECT_EQ(*v.find("h"), Json("2024-03-04"));
  EXPECT_EQ(*v.find("i"), Json(7));
  EXPECT_EQ(*v.find("j"), Json("007x"));
}

TEST(ConfigFile, BadTextIsRefusedWithItsPlace) {
  struct Case {
    const char* text;
    ConfigFormat format;
    const char* where;
  };
  for (const Case& c : {Case{"a = 1\nb = = 2\n", ConfigFormat::kToml, "f:2:5"}, Case{"a = 1\na = 2\n", ConfigFormat::kToml, "f:2:5"},
                        Case{"a: 1\nb: [1, 2\n", ConfigFormat::kYaml, "f:3:1"}, Case{"a: 1\na: 2\n", ConfigFormat::kYaml, "f:2:1"},
                        Case{"- 1\n- 2\n", ConfigFormat::kYaml, "f"}, Case{"{\"a\": 1,\n \"a\": 2}", ConfigFormat::kJson, "f"},
                        Case{"{\"a\": }", ConfigFormat::kJson, "f:1:7"}, Case{"[1]", ConfigFormat::kJson, "f"}}) {
    const auto file = parse_config(c.text, c.format, "f");
    ASSERT_FALSE(file) << c.text;
    EXPECT_EQ(file.error().where, c.where) << c.text << file.error().text();
    EXPECT_FALSE(file.error().what.empty());
    EXPECT_FALSE(file.error().expected.empty());
  }
}

TEST(ConfigFile, GrowingAliasesAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (char i = '1'; i < '9'; ++i) {
    bomb.append("a").append(1, i).append(": &a").append(1, i).append(" [");
    for (int k = 0; k < 10; ++k) bomb.append(k ? ", *a" : "*a").append(1, static_cast<char>(i - 1));
    bomb.append("]\n");
  }
  const auto file = parse_config(bomb, ConfigFormat::kYaml, "f");
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().what.find("too large"), std::string::npos);
}

TEST(ConfigFile, ReadsByExtension) {
  const auto folder = std::filesystem::temp_directory_path() / ("kizzasi_config_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.YML") << "x: 1\n";
  std::ofstream(folder / "a.ini") << "x = 1\n";
  const auto yaml = read_config_file((folder / "a.YML").string());
  ASSERT_TRUE(yaml) << yaml.error().text();
  EXPECT_EQ(*yaml->values.find("x"), Json(1));
  const auto ini = read_config_file((folder / "a.ini").string());
  ASSERT_FALSE(ini);
  EXPECT_EQ(ini.error().fault, Fault::kBadUse);
  const auto missing = read_config_file((folder / "b.YML").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().hint, "Did you mean 'a.YML'?");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kizzasi::io
