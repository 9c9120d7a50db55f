#include "kizzasi/tensor/rwkv_cpp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kizzasi/base/rng.h"
#include "kizzasi/tensor/ggml_blocks.h"
#include "kizzasi/tensor/rwkv_cpp_bytes_test.h"

namespace kizzasi {
namespace {

// The bits of a half that is exact: sign, exponent and ten bits below the leading one.
std::uint16_t half_bits(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(value), &exponent);  // in [1/2, 1)
  const auto mantissa = static_cast<std::uint16_t>((fraction * 2 - 1) * 1024);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | mantissa);
}

std::vector<float> decoded(std::int32_t type, const std::vector<std::byte>& block) {
  const GgmlType* known = find_ggml_type(type);
  EXPECT_NE(known, nullptr);
  EXPECT_EQ(block.size(), known->bytes);
  std::vector<std::byte> unaligned(block.size() + 1);
  std::copy(block.begin(), block.end(), unaligned.begin() + 1);
  std::vector<float> values(known->values);
  known->decode(unaligned.data() + 1, values.data());
  return values;
}

// A block of 32 whole numbers as its type packs them: the closed form value = (q - zero) d + m is known for every one.
struct Packing {
  std::int32_t type;
  int bits, zero;
  bool offset;
};
constexpr std::array kPackings = std::to_array<Packing>({{2, 4, 8, false}, {3, 4, 0, true}, {7, 5, 16, false}, {8, 5, 0, true}});

std::vector<std::byte> packed(const Packing& p, double d, double m, const std::array<unsigned, 32>& q) {
  RwkvCppBytes out(0, 0, 0, 0);
  out.bytes.clear();
  out.add(half_bits(d));
  if (p.offset) out.add(half_bits(m));
  if (p.bits == 5) {
    std::uint32_t fifth = 0;
    for (unsigned j = 0; j < 32; ++j) fifth |= (q[j] >> 4 & 1u) << j;
    out.add(fifth);
  }
  for (unsigned j = 0; j < 16; ++j) out.add(static_cast<std::uint8_t>((q[j] & 15u) | (q[j + 16] & 15u) << 4));
  return out.bytes;
}

TEST(GgmlBlocks, EveryPackedTypeIsItsClosedForm) {
  Rng rng(5);
  for (const Packing& p : kPackings) {
    for (int round = 0; round < 500; ++round) {
      // Scales of eleven bits over the whole range of halves; a lowest value of any size beside it.
      const auto number = [&] { return std::ldexp(1 + static_cast<double>(rng.below(1024)) / 1024, static_cast<int>(rng.below(28)) - 14); };
      const double d = rng.below(2) != 0 ? number() : -number(), m = rng.below(2) != 0 ? number() : -number();
      std::array<unsigned, 32> q{};
      for (unsigned j = 0; j < 32; ++j) q[j] = round == 0 ? j % (1u << p.bits) : static_cast<unsigned>(rng.below(1u << p.bits));
      const auto values = decoded(p.type, packed(p, d, m, q));
      for (std::size_t j = 0; j < 32; ++j) {
        const double truth = (static_cast<double>(q[j]) - p.zero) * d + (p.offset ? m : 0.0);
        ASSERT_EQ(values[j], static_cast<float>(truth)) << "type " << p.type << " round " << round << " value " << j;
      }
    }
  }
}

TEST(GgmlBlocks, BytesAndPlainNumbersAreTheirClosedForm) {
  RwkvCppBytes block(0, 0, 0, 0);
  block.bytes.clear();
  block.add(half_bits(-0.3125));
  for (int j = 0; j < 32; ++j) block.add(static_cast<std::int8_t>(j == 31 ? -128 : 8 * j - 121));
  const auto values = decoded(9, block.bytes);
  for (int j = 0; j < 32; ++j) EXPECT_EQ(values[static_cast<std::size_t>(j)], -0.3125f * static_cast<float>(j == 31 ? -128 : 8 * j - 121));
  RwkvCppBytes plain(0, 0, 0, 0);
  plain.bytes.clear();
  plain.add(0.1f);
  EXPECT_EQ(decoded(0, plain.bytes)[0], 0.1f);
  for (const auto& [bits, value] :
       {std::pair<std::uint16_t, double>{0x3c00, 1.0}, {0xc000, -2.0}, {0x7bff, 65504.0}, {0x0001, 0x1p-24}, {0x0400, 0x1p-14}}) {
    plain.bytes.clear();
    plain.add(bits);
    EXPECT_EQ(decoded(1, plain.bytes)[0], static_cast<float>(value)) << bits;
  }
  EXPECT_EQ(find_ggml_type(4), nullptr);  // Q4_2 and Q4_3, which ggml gave up
  EXPECT_EQ(find_ggml_type(-1), nullptr);
}

// A file with one tensor of each type, rows of two blocks.
RwkvCppBytes every_type() {
  RwkvCppBytes file(101, 256, 64, 1, 2);
  Rng rng(9);
  for (const GgmlType& type : ggml_types()) {
    const Shape shape{3, 64};
    file.add_entry("t" + std::to_string(type.id), shape, type.id);
    const std::size_t blocks = elements(shape) / type.values;
    for (std::size_t b = 0; b < blocks; ++b) {
      if (type.id == 0) {
        file.add(static_cast<float>(b));
        continue;
      }
      // Scales that are finite halves, then any bytes.
      for (std::size_t at = 0; at < type.bytes; ++at) {
        const bool high = at == 1 || (at == 3 && (type.id == 3 || type.id == 8));
        file.add(static_cast<std::uint8_t>(high ? 0x30 : rng.below(256)));
      }
    }
  }
  return file;
}

TEST(RwkvCpp, EveryTensorHasItsShapeAndItsRowsInOrder) {
  const RwkvCppBytes bytes = every_type();
  const auto file = parse_rwkv_cpp(bytes.bytes, "m.bin");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->version, 101);
  EXPECT_EQ(file->vocabulary, 256);
  EXPECT_EQ(file->d_model, 64);
  EXPECT_EQ(file->layers, 1);
  ASSERT_EQ(file->tensors.size(), ggml_types().size());
  for (const auto& [name, tensor] : file->tensors) EXPECT_EQ(tensor.shape, (Shape{3, 64})) << name;
  for (std::size_t i = 0; i < 3 * 64; ++i) EXPECT_EQ(file->tensors.at("t0").values[i], static_cast<float>(i));
  // Version 100 had the same plain numbers.
  RwkvCppBytes old(100, 1, 2, 1);
  old.add_tensor("w", Tensor({2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto plain = parse_rwkv_cpp(old.bytes, "m.bin");
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(plain->tensors.at("w"), Tensor({2, 3}, {1, 2, 3, 4, 5, 6}));
}

TEST(RwkvCpp, AFileCutAnywhereIsRefusedOrHasItsFirstTensors) {
  const RwkvCppBytes whole = every_type();
  const auto truth = parse_rwkv_cpp(whole.bytes, "m.bin");
  ASSERT_TRUE(truth);
  std::size_t read = 0;
  for (std::size_t n = 0; n < whole.bytes.size(); ++n) {
    const auto file = parse_rwkv_cpp(std::span(whole.bytes).first(n), "cut.bin");
    if (!file) {
      ASSERT_NE(file.error().text().find("cut.bin"), std::string::npos);
      continue;
    }
    ++read;  // between two tensors: nothing in the format says how many there are
    for (const auto& [name, tensor] : file->tensors) ASSERT_EQ(tensor, truth->tensors.at(name));
  }
  EXPECT_EQ(read, ggml_types().size());
}

std::string refusal(const RwkvCppBytes& file) {
  const auto read = parse_rwkv_cpp(file.bytes, "m.bin");
  EXPECT_FALSE(read);
  return read ? "" : read.error().text();
}

void expect_says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

TEST(RwkvCpp, HostileFilesAreRefusedByName) {
  expect_says(refusal(RwkvCppBytes(99, 1, 1, 1)), {"version is 99", "100 or 101"});
  expect_says(refusal(RwkvCppBytes(101, -1, 1, 1)), {"vocabulary of -1"});
  expect_says(refusal(RwkvCppBytes(101, 1, 0, 1)), {"0 channels"});
  expect_says(refusal(RwkvCppBytes(101, 1, 1, 1, 5)), {"data type is 5", "9 Q8_0"});
  RwkvCppBytes wrong(101, 1, 1, 1);
  wrong.bytes[0] = std::byte{'G'};
  expect_says(refusal(wrong), {"does not begin"});
  const auto with = [](const Shape& shape, std::int32_t type, const std::string& name = "w", std::int32_t version = 101) {
    RwkvCppBytes file(version, 1, 1, 1);
    file.add_entry(name, shape, type);
    for (int i = 0; i < 64; ++i) file.add(std::uint8_t{0});
    return file;
  };
  expect_says(refusal(with({2}, 6)), {"tensor 0", "type is 6"});
  expect_says(refusal(with({}, 0)), {"0 axes"});
  expect_says(refusal(with({1, 1, 1, 1, 1}, 0)), {"5 axes"});
  expect_says(refusal(with({0}, 0)), {"axis 0 has 0"});
  expect_says(refusal(with({2147483647, 2147483647, 2147483647, 2147483647}, 0)), {"'w'", "needs more than the 64 bytes"});
  expect_says(refusal(with({2147483647}, 1)), {"'w'", "needs more"});
  expect_says(refusal(with({33}, 2)), {"'w'", "no whole blocks", "multiple of 32"});
  expect_says(refusal(with({2}, 0, "")), {"its name has 0 bytes"});
  expect_says(refusal(with({2}, 0, std::string(1025, 'w'))), {"its name has 1025 bytes"});
  expect_says(refusal(with({2}, 0, "w\n")), {"no plain text"});
  expect_says(refusal(with({32}, 2, "w", 100)), {"'w'", "Q4_0", "version 100", "Quantise"});
  RwkvCppBytes negative(101, 1, 1, 1);
  for (const std::int32_t n : {1, -5, 0, 1}) negative.add(n);
  expect_says(refusal(negative), {"-5 bytes"});
  RwkvCppBytes twice(101, 1, 1, 1);
  for (int i = 0; i < 2; ++i) twice.add_tensor("w", Tensor({1}, {1}));
  expect_says(refusal(twice), {"'w'", "twice"});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    RwkvCppBytes unfinite(101, 1, 1, 1);
    unfinite.add_tensor("w", Tensor({2}, {1, bad}));
    expect_says(refusal(unfinite), {"'w'", "value 1", "finite"});
  }
  EXPECT_FALSE(parse_rwkv_cpp({}, "m.bin"));
  EXPECT_FALSE(is_rwkv_cpp({}));
  EXPECT_FALSE(is_rwkv_cpp_file("/nowhere/at/all"));
  expect_says(read_rwkv_cpp("/nowhere/at/all").error().text(), {"/nowhere/at/all", "cannot be opened"});
}

}  // namespace
}  // namespace kizzasi
