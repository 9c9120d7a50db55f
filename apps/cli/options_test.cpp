#include "apps/cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "apps/cli/verb.h"

namespace kizzasi::cli {
namespace {

using ::testing::HasSubstr;

struct Shape {
  std::string architecture = "mamba2";
  std::int64_t d_model = 64;
  double dt_max = 0.1;
  bool windowed = false;
  bool conv_bias = true;
  std::vector<double> levels{0.1, 0.9};

  void fields(FieldVisitor& visit) {
    visit.field({"architecture", "Kind of backbone.", -1, 1, {"mamba", "mamba2", "s4d"}}, architecture);
    visit.field({"d_model", "Width of the residual stream.", 1, 65536}, d_model);
    visit.field({"dt_max", "Largest first step.", 0, 10}, dt_max);
    visit.field({"windowed", "Run each forecast from reset state."}, windowed);
    visit.field({"conv_bias", "Bias in the convolution."}, conv_bias);
    visit.field({"levels", "Quantile levels.", 0, 1}, levels);
  }
};

struct Schedule {
  std::int64_t steps = 100;
  std::int64_t seed = 0;
  void fields(FieldVisitor& visit) {
    visit.field({"steps", "How many.", 1, 1e9}, steps);
    visit.field({"seed", "Where draws begin.", 0, 1e18}, seed);
  }
};

Options options_of(std::vector<std::string> words) { return {"try", "Tries.", "kizzasi try\nkizzasi try x", std::move(words)}; }

// Parses `words` for the two configurations, as `train` would.
Result<void> parse(std::vector<std::string> words, Shape& shape, Schedule& schedule) {
  Context context;
  Options options = options_of(std::move(words));
  options.common(context);
  options.fields(shape, "Shape");
  options.fields(schedule, "Schedule");
  return options.parse();
}

class ScratchFile {
 public:
  ScratchFile(const std::string& name, const std::string& text) : path_(::testing::TempDir() + name) { std::ofstream(path_) << text; }
  ~ScratchFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Options, TakesEveryKindOfValue) {
  std::string file, out = "model.kz";
  std::int64_t horizon = 1;
  double level = 0.8;
  bool strict = false;
  std::optional<double> limit, none;
  std::vector<std::string> columns;
  Options options = options_of(
      {"a.csv", "-o", "m.kz", "--horizon=-24", "--level", "1e-3", "--strict", "--limit", "-5", "--column", "x", "--column", "y z"});
  options.positional("FILE", file, "The recording.");
  options.option("-o,--out FILE", out, "Where.");
  options.option("-h,--horizon", horizon, "Steps.");
  options.option("--level", level, "Level.");
  options.flag("--strict", strict, "Stop.");
  options.option("--limit", limit, "Limit.");
  options.option("--none", none, "None.");
  options.option("--column", columns, "Columns.");
  ASSERT_TRUE(options.parse());
  EXPECT_EQ(file, "a.csv");
  EXPECT_EQ(out, "m.kz");
  EXPECT_EQ(horizon, -24);
  EXPECT_EQ(level, 1e-3);
  EXPECT_TRUE(strict);
  EXPECT_EQ(limit, -5.0);
  EXPECT_EQ(none, std::nullopt);
  EXPECT_EQ(columns, (std::vector<std::string>{"x", "y z"}));
  EXPECT_TRUE(options.given("horizon"));
  EXPECT_TRUE(options.given("--out"));
  EXPECT_FALSE(options.given("none"));
}

TEST(Options, TakesAnyNumberOfArguments) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{}, {"a.csv"}, {"m.kz", "a.csv", "b.csv"}}) {
    std::vector<std::string> files, given = words;
    bool strict = false;
    given.insert(given.begin() + static_cast<std::ptrdiff_t>(words.size() / 2), "--strict");
    Options options = options_of(given);
    options.positionals("[MODEL] FILE", files, "A model, if any, and recordings.");
    options.flag("--strict", strict, "Stop.");
    const auto parsed = options.parse();
    ASSERT_TRUE(parsed) << parsed.error().text();
    EXPECT_EQ(files, words);
    EXPECT_TRUE(strict);
  }
}

// One declaration serves the default, the option, the TOML, YAML and JSON key, the check, the help and the documentation.
TEST(Fields, OneDeclarationReachesOptionsFilesChecksAndHelp) {
  const ScratchFile toml("kizzasi_fields.toml", "d_model = 128\nwindowed = true\nlevels = [0.25, 0.75]\nsteps = 7\n");
  const ScratchFile yaml("kizzasi_fields.yaml", "d_model: 128\nwindowed: true\nlevels: [0.25, 0.75]\nsteps: 7\n");
  const ScratchFile json("kizzasi_fields.json", R"({"d_model": 128, "windowed": true, "levels": [0.25, 0.75], "steps": 7})");
  for (const ScratchFile* file : {&toml, &yaml, &json}) {
    Shape shape;
    Schedule schedule;
    const auto parsed = parse({"--config", file->path(), "--no-conv-bias", "--d-model", "32", "--seed", "9"}, shape, schedule);
    ASSERT_TRUE(parsed) << parsed.error().text();
    EXPECT_EQ(shape.d_model, 32) << "the option wins over the file";
    EXPECT_TRUE(shape.windowed);
    EXPECT_FALSE(shape.conv_bias);
    EXPECT_EQ(shape.levels, (std::vector<double>{0.25, 0.75}));
    EXPECT_EQ(shape.dt_max, 0.1) << "what nobody gave keeps its default";
    EXPECT_EQ(schedule.steps, 7);
    EXPECT_EQ(schedule.seed, 9) << "a field named like a common option takes its value";
  }
}

TEST(Fields, WrongValuesAreRefusedWithTheirPlace) {
  const ScratchFile unknown("kizzasi_unknown.toml", "steps = 5\nd_modle = 3\n");
  const ScratchFile wrong_kind("kizzasi_kind.toml", "d_model = \"wide\"\n");
  const struct {
    std::vector<std::string> words;
    const char *where, *says;
  } cases[] = {
      {{"--d-model", "0"}, "d_model", "1 to 65536"},
      {{"--d-model", "many"}, "--d-model", "'many'"},
      {{"--d-model", "3.5"}, "--d-model", "'3.5'"},
      {{"--dt-max", "-1"}, "dt_max", "0 to 10"},
      {{"--architecture", "mamba3"}, "architecture", "Did you mean 'mamba"},
      {{"--levels", "0.1,1.5"}, "levels", "0 to 1"},
      {{"--levels", "0.1,,0.5"}, "--levels", ""},
      {{"--d-modle", "64"}, "--d-modle", "Did you mean '--d-model'?"},
      {{"--d-model"}, "--d-model", "needs a value"},
      {{"--d-model", "--windowed"}, "--d-model", "needs a value"},
      {{"--d-model", "8", "--d-model", "9"}, "--d-model", "more than once"},
      {{"--config", unknown.path()}, "kizzasi_unknown.toml:2", "Did you mean 'd_model'?"},
      {{"--config", wrong_kind.path()}, "kizzasi_kind.toml", "whole number"},
      {{"--config", "nowhere/none.toml"}, "none.toml", ""},
      {{"surplus"}, "'surplus'", "too many"},
      {{"--threads", "-3"}, "--threads", "0 to 1024"},
      {{"--seed", "x"}, "--seed", "whole number"},
  };
  for (const auto& each : cases) {
    Shape shape;
    Schedule schedule;
    const auto parsed = parse(each.words, shape, schedule);
    ASSERT_FALSE(parsed) << each.words.front();
    EXPECT_THAT(parsed.error().where, HasSubstr(each.where)) << parsed.error().text();
    EXPECT_THAT(parsed.error().text(), HasSubstr(each.says));
  }
}

TEST(Options, TakesAnyNumberOfArgumentsOfOneKind) {
  for (const std::size_t count : {0u, 1u, 2u, 5u}) {
    std::vector<std::string> words{"--out", "m"}, files;
    for (std::size_t i = 0; i < count; ++i) words.push_back("file" + std::to_string(i));
    Options options = options_of(words);
    std::string out;
    options.option("--out", out, "Where.");
    options.positionals("FILES", files, "What.");
    ASSERT_TRUE(options.parse()) << count;
    EXPECT_EQ(files, std::vector<std::string>(words.begin() + 2, words.end()));
    EXPECT_EQ(out, "m");
  }
}

TEST(Options, HelpShowsEveryFieldWithDefaultAndRange) {
  Context context;
  Shape shape;
  Options options = options_of({"--help"});
  options.common(context);
  std::string file;
  options.positional("FILE", file, "The recording.");
  options.fields(shape, "Shape of things");
  ::testing::internal::CaptureStdout();
  ASSERT_TRUE(options.parse()) << "help is shown though FILE is missing";
  const std::string help = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(options.help_shown());
  for (const FieldDoc& field : describe(Shape{})) {
    EXPECT_THAT(help, HasSubstr(field.help));
    EXPECT_THAT(help, HasSubstr(field.allowed));
  }
  EXPECT_THAT(help, HasSubstr("--d-model N"));
  EXPECT_THAT(help, HasSubstr("[64]"));
  EXPECT_THAT(help, HasSubstr("Shape of things (also as keys of --config FILE):\n"));
  EXPECT_THAT(help, HasSubstr("Turns off: "));
  EXPECT_THAT(help, HasSubstr("--no-conv-bias")) << "a switch that is on is shown by the way to turn it off";
  EXPECT_THAT(help, HasSubstr("--json"));
  EXPECT_THAT(help, HasSubstr("kizzasi try x"));
}

TEST(Options, ShortHelpUnlessTheVerbTakesTheLetter) {
  Context context;
  std::int64_t horizon = 1;
  Options taken = options_of({"-h", "12"});
  taken.common(context);
  taken.option("-h,--horizon", horizon, "Steps.");
  ASSERT_TRUE(taken.parse());
  EXPECT_EQ(horizon, 12);
  EXPECT_FALSE(taken.help_shown());

  Options free = options_of({"-h"});
  free.common(context);
  ::testing::internal::CaptureStdout();
  ASSERT_TRUE(free.parse());
  ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(free.help_shown());
}

}  // namespace
}  // namespace kizzasi::cli
