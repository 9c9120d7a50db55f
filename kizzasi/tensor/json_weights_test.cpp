#include "kizzasi/tensor/json_weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

TEST(JsonWeights, EveryFiniteFloatComesBackBitForBit) {
  Rng rng(3);
  Tensor tensor(Shape{4, 5000});
  for (float& value : tensor.values) {
    do value = std::bit_cast<float>(static_cast<std::uint32_t>(rng.bits()));
    while (!std::isfinite(value));
  }
  tensor.values[0] = -0.0f;
  const NamedTensors weights{{"w", tensor}, {"none", Tensor(Shape{0})}, {"one", Tensor(Shape{}, {0.1f})}};
  const std::string path = (std::filesystem::temp_directory_path() / ("kizzasi_weights_" + std::to_string(::getpid()) + ".json")).string();
  ASSERT_TRUE(write_json_weights(path, weights));
  const auto back = read_json_weights(path, weights);
  std::filesystem::remove(path);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, weights);
  EXPECT_EQ(weights_to_json({{"one", Tensor(Shape{}, {0.1f})}})->dump(), R"({"one": [0.1]})");
}

TEST(JsonWeights, WhatDoesNotFitIsNamed) {
  const NamedTensors like{{"weight", Tensor(Shape{2})}, {"bias", Tensor(Shape{1})}};
  const auto message = [&](std::string_view text) {
    const auto weights = weights_from_json(*Json::parse(text, "w.json"), like, "w.json");
    EXPECT_FALSE(weights) << text;
    return weights ? std::string() : weights.error().text();
  };
  EXPECT_NE(message("[]").find("found a JSON array"), std::string::npos);
  EXPECT_NE(message(R"({"weigth": [1, 2], "bias": [0]})").find("Did you mean 'weight'?"), std::string::npos);
  EXPECT_NE(message(R"({"weight": [1, 2, 3], "bias": [0]})").find("found 3 numbers"), std::string::npos);
  EXPECT_NE(message(R"({"weight": 1, "bias": [0]})").find("found a JSON integer"), std::string::npos);
  EXPECT_NE(message(R"({"weight": [1, null], "bias": [0]})").find("value 1 is a JSON null"), std::string::npos);
  EXPECT_NE(message(R"({"weight": [1, 2]})").find("'bias' is missing"), std::string::npos);
  EXPECT_FALSE(weights_to_json({{"w", Tensor({1}, {std::numeric_limits<float>::infinity()})}}));
}

}  // namespace
}  // namespace kizzasi
