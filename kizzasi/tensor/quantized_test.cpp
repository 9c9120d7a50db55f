#include "kizzasi/tensor/quantized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace kizzasi {
namespace {

using kernels::kPrecisions;
using kernels::Precision;

Tensor normal_tensor(Shape shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Tensor tensor(std::move(shape));
  for (float& value : tensor.values) value = normal(engine);
  return tensor;
}

// The tensors of all precisions, axes and remainders at once.
NamedTensors every_kind() {
  NamedTensors all;
  for (const Precision precision : kPrecisions) {
    for (const OutputsAxis axis : {OutputsAxis::kFirst, OutputsAxis::kLast, OutputsAxis::kLastButOne}) {
      for (const Shape& shape : {Shape{3, 70}, Shape{70, 3}, Shape{5, 33, 4}, Shape{1, 1}, Shape{6}, Shape{0, 4}, Shape{2, 32, 1}}) {
        Tensor tensor = normal_tensor(shape, static_cast<unsigned>(all.size()));
        EXPECT_TRUE(set_precision(tensor, precision, axis, "w"));
        all.emplace("w" + std::to_string(all.size()), std::move(tensor));
      }
    }
  }
  return all;
}

TEST(Quantized, ComesBackFromAFileAsItWas) {
  const NamedTensors all = every_kind();
  const std::map<std::string, std::string> words{{"some", "word"}};
  const std::vector<std::byte> bytes = safetensors_bytes(all, words);
  const auto file = parse_safetensors(bytes, "memory");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->metadata, words);
  ASSERT_EQ(file->tensors.size(), all.size());
  for (const auto& [name, tensor] : all) {
    const Tensor& back = file->tensors.at(name);
    EXPECT_EQ(back.shape, tensor.shape) << name;
    EXPECT_EQ(back.values, tensor.values) << name;
    EXPECT_EQ(back.storage.precision, tensor.storage.precision) << name;
  }
  EXPECT_EQ(safetensors_bytes(file->tensors, file->metadata), bytes);
}

TEST(Quantized, TakesTheBytesThatItSays) {
  for (const auto& [name, tensor] : every_kind()) {
    std::size_t bytes = 0;
    for (const StoredPart& part : stored_parts(name, tensor)) bytes += part.bytes.size();
    EXPECT_EQ(stored_bytes(tensor), bytes);
  }
}

// Scales belong to outputs: a large one leaves the others as fine as they were, on whichever axis it is.
TEST(Quantized, AScaleBelongsToOneOutput) {
  for (const OutputsAxis axis : {OutputsAxis::kFirst, OutputsAxis::kLast}) {
    Tensor tensor = normal_tensor({40, 40}, 1);
    for (std::size_t k = 0; k < 40; ++k) tensor.values[axis == OutputsAxis::kFirst ? 7 * 40 + k : k * 40 + 7] *= 1e6f;
    const Tensor exact = tensor;
    ASSERT_TRUE(set_precision(tensor, Precision::kI8, axis, "w"));
    for (std::size_t o = 0; o < 40; ++o) {
      for (std::size_t k = 0; k < 40; ++k) {
        const std::size_t at = axis == OutputsAxis::kFirst ? o * 40 + k : k * 40 + o;
        EXPECT_NEAR(tensor.values[at], exact.values[at], o == 7 ? 5e6 / 127 : 5.0 / 127);
      }
    }
  }
}

TEST(Quantized, RefusesWhatF16CannotHold) {
  Tensor tensor({2, 1}, {1, 70000});
  const auto done = set_precision(tensor, Precision::kF16, OutputsAxis::kFirst, "head.weight");
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text().find("head.weight"), std::string::npos);
  EXPECT_EQ(tensor.values[1], 70000);  // as it was
}

// A damaged record or part is refused with the tensor's name; nothing is guessed.
TEST(Quantized, RefusesPartsThatDoNotFit) {
  NamedTensors some;
  some.emplace("w", normal_tensor({4, 40}, 3));
  ASSERT_TRUE(set_precision(some.at("w"), Precision::kI8, OutputsAxis::kFirst, "w"));
  const auto parts = [&] {
    NamedTensors plain;
    for (const StoredPart& part : stored_parts("w", some.at("w"))) {
      Tensor tensor(part.shape);
      for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        if (part.dtype == "I8") {
          tensor.values[i] = static_cast<float>(static_cast<std::int8_t>(part.bytes[i]));
        } else {
          std::memcpy(&tensor.values[i], part.bytes.data() + i * sizeof(float), sizeof(float));
        }
      }
      plain.emplace(part.name, std::move(tensor));
    }
    return plain;
  };
  const std::string good = R"({"w":{"precision":"int8","shape":[4,40],"outputs":"first"}})";
  const auto answer = [](const NamedTensors& tensors, const std::string& record) {
    const auto file = parse_safetensors(safetensors_bytes(tensors, {{kQuantization, record}}), "some.file");
    return file ? std::string() : file.error().text();
  };
  EXPECT_EQ(answer(parts(), good), "");
  const auto refuses = [&](const NamedTensors& tensors, const std::string& record, const std::string& word) {
    const std::string text = answer(tensors, record);
    EXPECT_NE(text.find(word), std::string::npos) << record << ": " << text;
    EXPECT_NE(text.find("some.file"), std::string::npos) << text;
  };
  refuses(parts(), "[]", "object");
  refuses(parts(), "{", "");
  refuses(parts(), R"({"w":3})", "object");
  refuses(parts(), R"({"w":{"precision":"int8","shape":[4,40]}})", "lacks");
  refuses(parts(), R"({"w":{"precision":"int9","shape":[4,40],"outputs":"first"}})", "int9");
  refuses(parts(), R"({"w":{"precision":"bf16","shape":[4,40],"outputs":"first"}})", "bf16");
  refuses(parts(), R"({"w":{"precision":"int8","shape":[4,40],"outputs":"middle"}})", "middle");
  refuses(parts(), R"({"w":{"precision":"int8","shape":[4,41],"outputs":"first"}})", "(4, 41)");
  refuses(parts(), R"({"w":{"precision":"int8","shape":[4,-40],"outputs":"first"}})", "size");
  refuses(parts(), R"({"w":{"precision":"int8","shape":[4294967296,4294967296,4],"outputs":"first"}})", "beyond");
  refuses(parts(), R"({"v":{"precision":"int8","shape":[4,40],"outputs":"first"}})", "missing");
  NamedTensors wrong = parts();
  wrong.erase("w.scale");
  refuses(wrong, good, "w.scale");
  wrong = parts();
  wrong.at("w").values[3] = 1.5f;
  refuses(wrong, good, "1.5");
  wrong = parts();
  wrong.at("w").values[3] = -128;
  refuses(wrong, good, "-128");
  wrong = parts();
  wrong.at("w.scale").values[1] = 0.1f;  // no scale of bf16
  refuses(wrong, good, "rounding");
  wrong = parts();
  wrong.at("w.scale").values[2] = std::nanf("");
  refuses(wrong, good, "rounding");
}

}  // namespace
}  // namespace kizzasi
