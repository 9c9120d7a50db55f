#include "kizzasi/kernels/precision.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kizzasi::kernels {
namespace {

constexpr std::array<std::string_view, kPrecisions.size()> kNames{"f32", "bf16", "f16", "int8", "int4"};

// The value of the largest magnitude, the first of equals; with its sign.
float largest(std::span<const float> values) noexcept {
  float found = 0;
  for (const float value : values) {
    if (std::abs(value) > std::abs(found)) found = value;
  }
  return found;
}

// A scale whose steps are no normal numbers holds nothing that a sum would see.
float usable(float scale) noexcept { return std::abs(scale) < 0x1p-120f ? 0.0f : scale; }

float i8_scale(std::span<const float> row) noexcept { return usable(from_bf16(to_bf16(std::abs(largest(row)) / 127.0f))); }
float i4_scale(std::span<const float> block) noexcept { return usable(from_bf16(to_bf16(largest(block) / -8.0f))); }

// The step of that scale nearest to the value; never -0.
float nearest(float value, float scale, float low, float high) noexcept {
  return scale == 0 ? 0.0f : std::clamp(std::nearbyint(value / scale), low, high) + 0.0f;
}

}  // namespace

std::string_view precision_name(Precision precision) noexcept { return kNames[static_cast<std::size_t>(precision)]; }

std::optional<Precision> precision_from_name(std::string_view name) noexcept {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return kPrecisions[static_cast<std::size_t>(found - kNames.begin())];
}

std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float from_bf16(std::uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const float size = std::abs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00u | ((bits >> 13) & 0x1FFu));
  if (size >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (size < 0x1p-14f) return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(size * 0x1p24f)));
  const std::uint32_t positive = bits & 0x7FFFFFFFu;
  const std::uint32_t rounded = positive + 0xFFFu + ((positive >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

float from_f16(std::uint16_t bits) noexcept {
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu, digits = bits & 0x3FFu;
  if (exponent == 0) return sign * static_cast<float>(digits) * 0x1p-24f;
  const std::uint32_t high = exponent == 31 ? 0x7F800000u : (exponent + 112u) << 23;
  return std::copysign(std::bit_cast<float>(high | (digits << 13)), sign);
}

float quantize_i8(std::span<const float> row, std::span<std::int8_t> q) noexcept {
  const float scale = i8_scale(row);
  for (std::size_t i = 0; i < row.size(); ++i) q[i] = static_cast<std::int8_t>(nearest(row[i], scale, -127.0f, 127.0f));
  return scale;
}

float quantize_i4(std::span<const float> block, std::span<std::uint8_t> q) noexcept {
  const float scale = i4_scale(block);
  for (std::size_t i = 0; i < block.size(); ++i) q[i] = static_cast<std::uint8_t>(nearest(block[i], scale, -8.0f, 7.0f) + 8.0f);
  return scale;
}

void round_to(Precision precision, std::span<float> w, std::size_t inputs) noexcept {
  switch (precision) {
    case Precision::kF32:
      return;
    case Precision::kBf16:
      for (float& value : w) value = from_bf16(to_bf16(value));
      return;
    case Precision::kF16:
      for (float& value : w) value = from_f16(to_f16(value));
      return;
    case Precision::kI8:
      for (std::size_t at = 0; at < w.size(); at += inputs) {
        const std::span<float> row = w.subspan(at, inputs);
        const float scale = i8_scale(row);
        for (float& value : row) value = scale * nearest(value, scale, -127.0f, 127.0f);
      }
      return;
    case Precision::kI4:
      for (std::size_t at = 0; at < w.size(); at += inputs) {
        for (std::size_t k = 0; k < inputs; k += kI4Block) {
          const std::span<float> block = w.subspan(at + k, std::min(kI4Block, inputs - k));
          const float scale = i4_scale(block);
          for (float& value : block) value = scale * nearest(value, scale, -8.0f, 7.0f);
        }
      }
      return;
  }
}

}  // namespace kizzasi::kernels
