#include "kizzasi/model/hybrid/hybrid.h"

#include <gtest/gtest.h>

#include "kizzasi/model/architectures.h"
#include "kizzasi/model/hybrid/published.h"
#include "kizzasi/tensor/files.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {
namespace {

constexpr const char* kHybrids[] = {"jamba", "bamba", "qwen3_next"};

BackboneConfig of(const char* architecture, std::int64_t layers) {
  BackboneConfig c;
  c.architecture = architecture;
  c.n_layers = layers;
  c.d_model = 32;
  c.window = 5;
  return c;
}

std::vector<std::int64_t> blocks_with(const BackboneConfig& c, const char* field) {
  const auto architecture = find_architecture(c.architecture);
  const auto backbone = (*architecture)->load(c, (*architecture)->initial_weights(c, Rng(1)));
  EXPECT_TRUE(backbone) << backbone.error().text();
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    if ((*backbone)->layout().find("layer" + std::to_string(i) + "." + field) != nullptr) found.push_back(i);
  }
  return found;
}

TEST(Hybrid, OnlyTheBlocksOfTheListKeepARingAndOnlyTheOthersARecurrentState) {
  using Blocks = std::vector<std::int64_t>;
  const std::pair<std::vector<double>, Blocks> patterns[] = {
      {{}, {3, 7}}, {{0}, {0}}, {{1, 3, 5}, {1, 3, 5}}, {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}};
  for (const char* each : kHybrids) {
    for (const auto& [listed, attend] : patterns) {
      BackboneConfig c = of(each, 8);
      c.attention_layers = listed;
      EXPECT_EQ(blocks_with(c, "keys"), attend) << each;
      EXPECT_EQ(blocks_with(c, "conv").size(), 8 - attend.size()) << each;
    }
    EXPECT_EQ(blocks_with(of(each, 2), "keys"), Blocks{1}) << each;
    EXPECT_EQ(blocks_with(of(each, 1), "keys"), Blocks{0}) << each;
  }
}

TEST(Hybrid, OnlyTheBlocksOfTheListHaveExperts) {
  const auto with_router = [](const BackboneConfig& c) {
    std::vector<std::int64_t> found;
    const auto shapes = (*find_architecture(c.architecture))->shapes(c);
    for (std::int64_t i = 0; i < c.n_layers; ++i) {
      if (shapes.count("layers." + std::to_string(i) + ".ffn.router.weight") != 0) found.push_back(i);
    }
    return found;
  };
  BackboneConfig c = of("jamba", 4);
  EXPECT_EQ(with_router(c), (std::vector<std::int64_t>{1, 3}));
  c.expert_layers = {2};
  EXPECT_EQ(with_router(c), (std::vector<std::int64_t>{2}));
  c.n_experts = c.experts_used = 1;
  EXPECT_TRUE(with_router(c).empty());
}

TEST(Hybrid, BlocksThatAreNotThereAreRefused) {
  for (const char* each : kHybrids) {
    for (const double wrong : {4.0, 1.5, -1.0}) {
      BackboneConfig c = of(each, 4);
      c.attention_layers = {1, wrong};
      const auto checked = c.check("here");
      ASSERT_FALSE(checked) << each << " " << wrong;
      EXPECT_NE(checked.error().text().find("attention_layers"), std::string::npos) << checked.error().text();
    }
  }
}

// The golden checkpoint of that name, its configuration, and what reading it says after a change.
struct Checkpoint {
  NamedTensors tensors;
  Json config;
  Checkpoint(const std::string& folder, const std::string& name) {
    const std::string stem = std::string(KIZZASI_SOURCE_DIR "/tests/golden/backbones/") + folder + "/" + name;
    tensors = read_safetensors(stem + ".safetensors")->tensors;
    config = *parse_python_json(*read_file(stem + ".json"), stem)->find("config");
  }
};

TEST(PublishedHybrids, WhatIsNotComputedIsRefused) {
  const auto expect_refused = [](const Result<PublishedModel>& read, const char* about) {
    ASSERT_FALSE(read) << about;
    EXPECT_NE(read.error().text().find(about), std::string::npos) << read.error().text();
  };
  const Checkpoint jamba("jamba", "jamba_a"), bamba("bamba", "bamba_a"), qwen("gated_deltanet", "qwen3_next_a");
  ASSERT_TRUE(published_jamba(jamba.tensors, jamba.config, ""));
  ASSERT_TRUE(published_bamba(bamba.tensors, bamba.config, ""));
  ASSERT_TRUE(published_qwen3_next(qwen.tensors, qwen.config, ""));

  Checkpoint changed = jamba;
  changed.tensors.erase("model.layers.1.self_attn.q_proj.weight");
  expect_refused(published_jamba(changed.tensors, changed.config, ""), "no block has attention");
  changed = jamba;
  changed.tensors["model.layers.0.mamba.in_proj.bias"] = Tensor(Shape{96});
  expect_refused(published_jamba(changed.tensors, changed.config, ""), "has no bias");
  changed = jamba;
  changed.tensors["model.layers.0.mamba.extra"] = Tensor(Shape{1});
  EXPECT_TRUE(published_jamba(changed.tensors, changed.config, ""));  // its name stands below a known part: loading refuses it
  changed = jamba;
  changed.config["num_experts_per_tok"] = 0;
  expect_refused(published_jamba(changed.tensors, changed.config, ""), "num_experts_per_tok");

  changed = bamba;
  changed.config["mamba_n_groups"] = 2;
  expect_refused(published_bamba(changed.tensors, changed.config, ""), "mamba_n_groups");
  changed = bamba;
  changed.config["hidden_act"] = "relu";
  expect_refused(published_bamba(changed.tensors, changed.config, ""), "relu");

  changed = qwen;
  changed.config["norm_topk_prob"] = false;
  expect_refused(published_qwen3_next(changed.tensors, changed.config, ""), "norm_topk_prob");
  changed = qwen;
  changed.config["linear_num_key_heads"] = 3;
  expect_refused(published_qwen3_next(changed.tensors, changed.config, ""), "heads");
  for (const char* each : {"in_proj_qkvz.weight", "in_proj_ba.weight", "conv1d.weight"}) {
    changed = qwen;
    changed.tensors[std::string("model.layers.0.linear_attn.") + each] = Tensor(Shape{60, 1, 4});
    EXPECT_FALSE(published_qwen3_next(changed.tensors, changed.config, "")) << each;
  }
}

TEST(PublishedHybrids, ExpertsOfQwen3NextAreReadByTheirNames) {
  Checkpoint qwen("gated_deltanet", "qwen3_next_a");
  const std::string half = "model.layers.1.mlp.";
  Rng rng(6);
  const auto add = [&](const std::string& name, Shape shape) {
    Tensor tensor(std::move(shape));
    for (float& v : tensor.values) v = static_cast<float>(rng.normal());
    qwen.tensors[half + name] = std::move(tensor);
  };
  for (const char* each : {"gate_proj", "up_proj", "down_proj"}) qwen.tensors.erase(half + each + ".weight");
  add("gate.weight", {3, 24});
  add("shared_expert_gate.weight", {1, 24});
  for (const auto& [expert, width] :
       {std::pair<std::string, std::size_t>{"experts.0.", 8}, {"experts.1.", 8}, {"experts.2.", 8}, {"shared_expert.", 10}}) {
    add(expert + "gate_proj.weight", {width, 24});
    add(expert + "up_proj.weight", {width, 24});
    add(expert + "down_proj.weight", {24, width});
  }
  const auto read = published_qwen3_next(qwen.tensors, qwen.config, "");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->config.expert_layers, std::vector<double>{1});
  EXPECT_EQ(read->config.n_experts, 3);
  EXPECT_EQ(read->config.experts_used, 1);
  EXPECT_EQ(read->config.d_expert, 8);
  EXPECT_EQ(read->config.d_shared_expert, 10);
  EXPECT_EQ(read->config.d_ffn, 32);
  const auto loaded = (*find_architecture("qwen3_next"))->load(read->config, taken_over(qwen.tensors, read->ours64));
  EXPECT_TRUE(loaded) << loaded.error().text();
}

}  // namespace
}  // namespace kizzasi
