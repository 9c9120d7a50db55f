#include "kizzasi/model/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

namespace kizzasi {
namespace {

ModelFile example() {
  ModelFile m;
  m.config.parts = "shortcut";
  m.config.recent = 3;
  m.config.horizon = 2;
  m.schema = {{{"flow", "m3/h", Role::kTarget}, {"hour", "", Role::kKnownFuture}, {"valve", "%", Role::kObserved}}, 900'000'000'000, "UTC"};
  m.normalizer = Normalizer({0.1, 12, -7e300}, {3.0, 1e-300, 1});
  m.weights = SignalModel::initial_weights(m.config, channel_counts(m.schema), Rng(3));
  m.calibration = {{0.1, 0.5, 0.9}, 2, 1, {1, 1, 1, 1, 1.5, 1}, {-0.1, 0, 0.1, -0.2, 0, 1.0 / 3}, 50, 0.01};
  m.constraints = {{"floor", "flow >= 0", "project", 0, false, 1, "limits.toml:2"}};
  m.training = Json::Object{{"steps", 1200}, {"data", "sha256:00"}, {"better_by", 0.125}};
  m.extra = Json::Object{{"site", "north"}};
  return m;
}

SafetensorsFile as_file(const ModelFile& m) { return parse_safetensors(model_file_bytes(m).value(), "m").value(); }

TEST(ModelFile, ReadsBackEverythingThatItWrites) {
  const ModelFile m = example();
  const auto bytes = model_file_bytes(m).value();
  const ModelFile back = parse_model_file(bytes, "m").value();
  EXPECT_EQ(back.config, m.config);
  EXPECT_EQ(back.schema, m.schema);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(back.normalizer.offset(c), m.normalizer.offset(c));
    EXPECT_EQ(back.normalizer.scale(c), m.normalizer.scale(c));
  }
  EXPECT_EQ(back.weights, m.weights);
  EXPECT_EQ(back.calibration, m.calibration);
  EXPECT_EQ(back.constraints, m.constraints);
  EXPECT_EQ(back.training, m.training);
  EXPECT_EQ(back.extra, m.extra);
  EXPECT_EQ(model_file_bytes(back).value(), bytes) << "equal content gives equal bytes";
}

TEST(ModelFile, GoesThroughTheDisk) {
  const std::string path = testing::TempDir() + "model_file_test.safetensors";
  ASSERT_TRUE(write_model_file(path, example()));
  EXPECT_EQ(read_model_file(path).value().weights, example().weights);
  std::filesystem::remove(path);
  EXPECT_FALSE(read_model_file(path));
}

TEST(ModelFile, FilesWithoutOptionalPartsOpen) {
  auto file = as_file(example());
  for (const char* key : {"calibration", "constraints", "training", "extra"}) file.metadata.erase(key);
  const auto m = model_from_safetensors(file, "m");
  ASSERT_TRUE(m) << m.error().text();
  EXPECT_TRUE(m->calibration.empty());
  EXPECT_TRUE(m->training.is_null());
}

TEST(ModelFile, SaysWhatIsWrongWithTheMetadata) {
  const auto message = [](const char* key, const char* text) {
    auto file = as_file(example());
    if (text == nullptr) {
      file.metadata.erase(key);
    } else {
      file.metadata[key] = text;
    }
    const auto m = model_from_safetensors(file, "m.safetensors");
    if (m) return std::string("opened");
    EXPECT_NE(m.error().fault, Fault::kBadUse) << "what stands in a file is no wrong use of the program: " << m.error().text();
    return m.error().text();
  };
  for (const char* key : {"config", "schema", "normalizer"}) {
    EXPECT_NE(message(key, nullptr).find(key), std::string::npos) << message(key, nullptr);
    EXPECT_NE(message(key, "{").find(std::string("m.safetensors: ") + key), std::string::npos) << message(key, "{");
  }
  EXPECT_NE(message("format", "pt").find("no model of this program"), std::string::npos);
  EXPECT_NE(message("format_version", "3").find("A newer kizzasi wrote it"), std::string::npos);
  EXPECT_NE(message("format_version", "one"), "opened");
  EXPECT_NE(message("format_version", "0"), "opened");
  EXPECT_NE(message("colour", "blue").find("unknown key 'colour'"), std::string::npos);
  EXPECT_NE(message("config", R"({"d_modell": 3})").find("d_model"), std::string::npos);
  for (const char* config :
       {R"({"d_model": -1})", R"({"d_model": 1e18})", R"({"head": "haed"})", R"({"levels": [0.9, 0.1]})", R"({"seasons": 3})"}) {
    EXPECT_NE(message("config", config), "opened") << config;
  }
  EXPECT_NE(message("normalizer", R"({"offset":[1],"scale":[1]})").find("the normaliser has 1 channels"), std::string::npos);
  EXPECT_NE(message("calibration", R"({"levels":[0.5],"horizon":1,"targets":2,"stretch":[1,1],"shift":[0,0]})").find("2 targets"),
            std::string::npos);
  EXPECT_NE(message("schema", R"({"channels":[{"name":"a","role":"observed"}]})").find("no channel is a target"), std::string::npos);
}

TEST(ModelFile, NamesAWeightThatIsNotFiniteAndWritesNothing) {
  ModelFile m = example();
  m.weights.begin()->second.values[1] = std::nanf("");
  const std::string path = testing::TempDir() + "model_file_never.safetensors";
  const auto written = write_model_file(path, m);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text().find(m.weights.begin()->first), std::string::npos) << written.error().text();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ModelFile, ATornFileIsRefusedAtEveryLength) {
  const auto bytes = model_file_bytes(example()).value();
  for (std::size_t n = 0; n < bytes.size(); n += 1 + n / 16) EXPECT_FALSE(parse_model_file(std::span(bytes).first(n), "m")) << n;
}

TEST(ModelFile, TheModelTakesTargetsFirst) {
  EXPECT_EQ(channel_order(example().schema), (std::vector<std::size_t>{0, 2, 1}));
  EXPECT_EQ(channel_counts(example().schema), (ChannelCounts{1, 1, 1}));
}

Series data(std::vector<Channel> channels, std::int64_t step_ns) {
  Series s;
  s.schema = {std::move(channels), step_ns, ""};
  for (std::size_t i = 0; i < 2 * s.channels(); ++i) s.values.push_back(static_cast<double>(i));
  return s;
}

TEST(ModelFile, DataIsMatchedByNameChannelByChannel) {
  const Schema model = example().schema;
  const auto fits = select_for_model(model, data({{"valve", ""}, {"more", ""}, {"hour", ""}, {"flow", "m3/h"}}, 900'000'000'000), "d.csv");
  ASSERT_TRUE(fits) << fits.error().text();
  EXPECT_EQ(fits->schema.channels, model.channels);
  EXPECT_EQ(fits->values, (std::vector<double>{3, 2, 0, 7, 6, 4}));

  const auto missing = select_for_model(model, data({{"valve", ""}, {"hour", ""}, {"flwo", ""}}, 0), "d.csv");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(),
            "d.csv: the model's channel 'flow' is not in the data (expected every channel of the model: flow, hour, valve). Did you mean "
            "'flwo'?");
  const auto unit = select_for_model(model, data({{"valve", ""}, {"hour", ""}, {"flow", "l/s"}}, 0), "d.csv");
  ASSERT_FALSE(unit);
  EXPECT_NE(unit.error().text().find("channel 'flow' is in l/s (expected m3/h"), std::string::npos) << unit.error().text();
  const auto step = select_for_model(model, data({{"valve", ""}, {"hour", ""}, {"flow", ""}}, 3'600'000'000'000), "d.csv");
  ASSERT_FALSE(step);
  EXPECT_NE(step.error().text().find("a frame every 1h (expected one every 15min"), std::string::npos) << step.error().text();
  EXPECT_EQ(select_for_model(model, data({{"valve", ""}, {"hour", ""}, {"flow", ""}}, 0), "d.csv").value().schema.step_ns, 900'000'000'000);
}

}  // namespace
}  // namespace kizzasi
