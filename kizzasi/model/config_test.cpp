#include "kizzasi/model/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "kizzasi/model/architectures.h"
#include "kizzasi/model/config_checkpoint.h"
#include "kizzasi/model/presets.h"
#include "kizzasi/tensor/files.h"

namespace kizzasi {
namespace {

TEST(ModelConfig, PresetsAreThoseOfTheManual) {
  struct Row {
    std::string_view name, architecture;
    std::int64_t d_model, d_state, n_layers, context;
  };
  for (const Row& row :
       {Row{"audio", "mamba2", 256, 16, 4, 8192}, Row{"robotics", "mamba2", 128, 8, 3, 1024}, Row{"sensor", "mamba2", 64, 8, 2, 2048},
        Row{"lightweight", "mamba", 32, 4, 1, 512}, Row{"video", "mamba2", 512, 32, 6, 16384}, Row{"control", "mamba2", 64, 8, 2, 256},
        Row{"custom", "mamba2", 128, 16, 3, 4096}}) {
    const auto config = preset(row.name);
    ASSERT_TRUE(config) << row.name;
    EXPECT_EQ(config->backbone.architecture, row.architecture);
    EXPECT_EQ(config->backbone.d_model, row.d_model);
    EXPECT_EQ(config->backbone.d_state, row.d_state);
    EXPECT_EQ(config->backbone.n_layers, row.n_layers);
    EXPECT_EQ(config->context, row.context);
    EXPECT_TRUE(config->check(row.name)) << config->check(row.name).error().text();
  }
  EXPECT_EQ(preset_names().size(), 8u);
  EXPECT_EQ(presets::audio(16000)->config.context, 4096);
  EXPECT_EQ(presets::audio(48000)->config.context, 16384);
  EXPECT_FALSE(presets::audio(0));
  EXPECT_EQ(presets::robotics(7).inputs, 7u);
  EXPECT_EQ(presets::robotics(12, 6).outputs, 6u);
  EXPECT_EQ(presets::lightweight(3, 2).inputs, 3u);
  EXPECT_EQ(preset("audoi").error().hint, "Did you mean 'audio'?");
}

// What the builder takes by name is what stands in the configuration, and every value reads back by the same name.
TEST(ModelConfig, ABuilderTakesEveryFieldByItsNameAndEveryFieldReadsBack) {
  const auto config = Builder<ModelConfig>(*preset("sensor")).set("horizon", 12).set("parts", "shortcut").set("horizon", 24).build();
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->horizon, 24);
  EXPECT_EQ(config->parts, "shortcut");
  EXPECT_EQ(config->backbone.d_model, 64);
  const Json all = to_json(*config);
  Builder<ModelConfig> again;
  for (const auto& [name, value] : all.members()) {
    EXPECT_EQ(field_value(*config, name)->dump(), value.dump()) << name;
    again.set(name, value);
  }
  EXPECT_EQ(*again.build(), *config);

  const auto unknown = Builder<ModelConfig>().set("horizn", 3).build("m");
  EXPECT_EQ(unknown.error().what, "there is no field 'horizn'");
  EXPECT_EQ(unknown.error().hint, "Did you mean 'horizon'?");
  EXPECT_EQ(field_value(ModelConfig{}, "horizn").error().hint, "Did you mean 'horizon'?");
  EXPECT_EQ(Builder<ModelConfig>().set("horizon", "soon").build("m").error().what, "\"soon\" is no whole number");
  EXPECT_EQ(Builder<ModelConfig>().set("horizon", 0).build("m").error().where, "m: field 'horizon'");
  EXPECT_FALSE(Builder<ModelConfig>().set("d_model", 30).set("head_dim", 7).build());  // each in its range, together not
}

TEST(ModelConfig, EveryArchitectureHasItsPage) {
  const auto table = read_file(KIZZASI_SOURCE_DIR "/docs/backbones.md");
  ASSERT_TRUE(table);
  for (const Architecture& architecture : architectures()) {
    const std::size_t row = table->find("| `" + std::string(architecture.name) + "` | [");
    ASSERT_NE(row, table->npos) << architecture.name;
    const std::size_t begin = table->find('(', row) + 1;
    const std::string page = table->substr(begin, table->find(')', begin) - begin);
    const auto text = read_file(KIZZASI_SOURCE_DIR "/docs/" + page);
    ASSERT_TRUE(text) << page;
    EXPECT_NE(text->find(architecture.name), text->npos) << page;
  }
}

TEST(ModelConfig, EveryArchitectureHasEverySize) {
  for (const Architecture& architecture : architectures()) {
    std::size_t before = 0;
    for (const char* size : {"tiny", "small", "base", "large", "xlarge"}) {
      const auto config = sized(architecture.name, size);
      ASSERT_TRUE(config) << architecture.name << " " << size;
      ASSERT_TRUE(config->check("size")) << config->check("size").error().text();
      EXPECT_GT(parameter_count(*config), before);
      before = parameter_count(*config);
    }
  }
  // Below the bytes that the manual allows each size of Mamba, in f32.
  const std::pair<const char*, double> limits[] = {{"tiny", 10e6}, {"small", 50e6}, {"base", 200e6}, {"large", 1e9}, {"xlarge", 4e9}};
  for (const auto& [size, bytes] : limits) EXPECT_LT(4.0 * static_cast<double>(parameter_count(*sized("mamba", size))), bytes) << size;
  EXPECT_EQ(find_architecture("mamba_2").error().hint, "Did you mean 'mamba2'?");
  EXPECT_EQ(sized("mamba", "hugee").error().what, "there is no size 'hugee'");
}

TEST(ModelConfig, TheCountOfParametersIsThatOfTheWeights) {
  for (const Architecture& architecture : architectures()) {
    for (const std::int64_t layers : {1, 2, 5}) {
      BackboneConfig config;
      config.architecture = std::string(architecture.name);
      config.d_model = 32;
      config.n_layers = layers;
      config.proj_bias = layers == 2;
      std::size_t weights = 0;
      for (const auto& [name, tensor] : architecture.initial_weights(config, Rng(1))) weights += tensor.values.size();
      EXPECT_EQ(parameter_count(config), weights) << architecture.name;
    }
  }
}

TEST(ModelConfig, WhatCannotBeIsRefusedWithTheField) {
  const auto message = [](auto change) {
    ModelConfig config;
    change(config);
    const auto good = config.check("model.toml");
    return good ? std::string("accepted") : good.error().text();
  };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  EXPECT_EQ(message([](ModelConfig&) {}), "accepted");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.d_model = 0; }), "'d_model'");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.n_layers = -3; }), "'n_layers'");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.d_state = 0; }), "'d_state'");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.context = 0; }), "'context'");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.architecture = "mamba_2"; }), "Did you mean 'mamba2'?");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.norm_eps = std::nan(""); }), "'norm_eps'");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.head_dim = 17; }), "head_dim 17");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.n_groups = 3; }), "n_groups 3");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.architecture = "s4d", c.backbone.d_state = 7; }), "d_state is odd");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.architecture = "s5", c.backbone.bidirectional = true; }),
               "a stream has none");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.architecture = "s5", c.backbone.s5_blocks = 3; }), "s5_blocks 3");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.dt_min = 1; }), "dt_min 1");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.patch = 4; }), "windowed");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.windowed = true, c.patch = 5; }), "patch 5");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.window_norm = "mean_std"; }), "windowed");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.seasons = 2; }), "season");
  // A huge one is an error, never an attempt to allocate it.
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.backbone.d_model = 65536, c.backbone.n_layers = 1024; }), "parameter_cap");
  EXPECT_PRED2(contains, message([](ModelConfig& c) { c.parameter_cap = 1000; }), "at most 1000");
}

TEST(ModelConfig, EveryFieldSurvivesASaveAndHasItsEffectOnEquality) {
  // One changed value a field, through its text form, must come back from JSON and differ from the default.
  const ModelConfig defaults;
  const auto docs = describe<ModelConfig>();
  EXPECT_GT(docs.size(), 30u);
  for (const FieldDoc& doc : docs) {
    EXPECT_FALSE(doc.help.empty()) << doc.name;
    ModelConfig changed;
    std::string text;
    if (doc.kind == "yes/no") text = doc.default_text == "true" ? "no" : "yes";
    if (doc.kind == "whole number") text = std::to_string(std::stoll(doc.default_text) + 1);
    if (doc.kind == "number") text = "0.015625";
    if (doc.kind == "text") text = doc.allowed.substr(doc.allowed.rfind(' ') + 1);  // the last of the choices
    if (doc.kind == "list of numbers") text = "0.25,0.5,0.75";
    if (text == doc.default_text.substr(doc.default_text.find('"') + 1, text.size())) text = doc.name == "head" ? "gaussian" : text;
    if (doc.name == "parts") text = "shortcut";
    ASSERT_TRUE(assign_field(changed, doc.name, text, doc.name)) << assign_field(changed, doc.name, text, doc.name).error().text();
    EXPECT_NE(changed, defaults) << doc.name << " " << text;
    ModelConfig back;
    ASSERT_TRUE(apply_fields(back, to_json(changed), "json")) << doc.name;
    EXPECT_EQ(back, changed) << doc.name;
  }
}

TEST(ConfigCheckpoint, ComesBackWhole) {
  ConfigCheckpoint checkpoint;
  checkpoint.config.backbone.d_model = 96;
  checkpoint.config.head.kind = "gaussian";
  checkpoint.created_at = 1767225600;
  checkpoint.description = "pump 7, before the overhaul";
  checkpoint.step_count = 12000;
  checkpoint.custom["site"] = "north";
  checkpoint.custom["list"] = Json::list(std::vector<int>{1, 2});
  const std::string path = (std::filesystem::temp_directory_path() / ("kizzasi_config_" + std::to_string(::getpid()) + ".json")).string();
  ASSERT_TRUE(write_config_checkpoint(path, checkpoint));
  const auto back = read_config_checkpoint(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, checkpoint);

  Json json = to_json(checkpoint);
  EXPECT_EQ(json.find("version")->integer(), 1);
  json["version"] = 2;
  EXPECT_NE(config_checkpoint_from_json(json, "c.json").error().text().find("version is 2"), std::string::npos);
  json = to_json(checkpoint);
  json["config"]["d_modle"] = 3;
  EXPECT_NE(config_checkpoint_from_json(json, "c.json").error().text().find("Did you mean 'd_model'?"), std::string::npos);
  EXPECT_FALSE(config_checkpoint_from_json(*Json::parse("{}", ""), "c.json"));
  // What an earlier program wrote by hand: only some fields, the rest by default.
  const auto small = config_checkpoint_from_json(
      *Json::parse(R"({"version": 1, "config": {"d_model": 32}, "metadata": {"created_at": 5, "step_count": 0}})", ""), "c.json");
  ASSERT_TRUE(small) << small.error().text();
  EXPECT_EQ(small->config.backbone.d_model, 32);
}

}  // namespace
}  // namespace kizzasi
