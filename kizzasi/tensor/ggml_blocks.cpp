#include "kizzasi/tensor/ggml_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kizzasi/kernels/precision.h"

namespace kizzasi {
namespace {

constexpr std::size_t kBlock = 32;

template <typename T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

float half(const std::byte* p) { return kernels::from_f16(load<std::uint16_t>(p)); }

// Value j < 16 is the low half of byte j, value j + 16 the high half of byte j; bit j of `fifth`, where there is one, goes above it.
int nibble(const std::byte* bytes, std::size_t j, std::uint32_t fifth) {
  const auto byte = std::to_integer<unsigned>(bytes[j % (kBlock / 2)]);
  return static_cast<int>((j < kBlock / 2 ? byte & 15u : byte >> 4) | ((fifth >> j & 1u) << 4));
}

// The scale, then the lowest value where `kOffset`, then the fifth bits where `kFive`, then the nibbles. Without a lowest value the middle
// of the range is zero.
template <bool kFive, bool kOffset>
void packed(const std::byte* block, float* values) {
  const float scale = half(block), lowest = kOffset ? half(block + 2) : 0.0f;
  const std::byte* rest = block + (kOffset ? 4 : 2);
  const std::uint32_t fifth = kFive ? load<std::uint32_t>(rest) : 0;
  const std::byte* nibbles = rest + (kFive ? 4 : 0);
  constexpr int kZero = kOffset ? 0 : kFive ? 16 : 8;
  for (std::size_t j = 0; j < kBlock; ++j) {
    const float product = static_cast<float>(nibble(nibbles, j, fifth) - kZero) * scale;
    values[j] = kOffset ? product + lowest : product;
  }
}

void bytes_of(const std::byte* block, float* values) {
  const float scale = half(block);
  for (std::size_t j = 0; j < kBlock; ++j) values[j] = static_cast<float>(load<std::int8_t>(block + 2 + j)) * scale;
}

constexpr std::array kTypes = std::to_array<GgmlType>({
    {0, "FP32", 1, 4, [](const std::byte* p, float* v) { *v = load<float>(p); }},
    {1, "FP16", 1, 2, [](const std::byte* p, float* v) { *v = half(p); }},
    {2, "Q4_0", kBlock, 18, packed<false, false>},
    {3, "Q4_1", kBlock, 20, packed<false, true>},
    {7, "Q5_0", kBlock, 22, packed<true, false>},
    {8, "Q5_1", kBlock, 24, packed<true, true>},
    {9, "Q8_0", kBlock, 34, bytes_of},
});

}  // namespace

std::span<const GgmlType> ggml_types() { return kTypes; }

const GgmlType* find_ggml_type(std::int32_t id) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [id](const GgmlType& type) { return type.id == id; });
  return found == kTypes.end() ? nullptr : &*found;
}

}  // namespace kizzasi
