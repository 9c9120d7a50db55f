// The forms in which a weight can stand in memory and in files, and the rounding into each. State and sums stay f32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kizzasi::kernels {

enum class Precision : std::uint8_t { kF32, kBf16, kF16, kI8, kI4 };

inline constexpr std::array<Precision, 5> kPrecisions{Precision::kF32, Precision::kBf16, Precision::kF16, Precision::kI8, Precision::kI4};

std::string_view precision_name(Precision precision) noexcept;                 // "f32", "bf16", "f16", "int8", "int4"
std::optional<Precision> precision_from_name(std::string_view name) noexcept;  // nothing for any other word
inline constexpr std::size_t kI4Block = 32;                                    // inputs that share one scale of int4

// To the nearest, ties to even. to_f16: what is beyond 65504 becomes infinite.
std::uint16_t to_bf16(float value) noexcept;
float from_bf16(std::uint16_t bits) noexcept;
std::uint16_t to_f16(float value) noexcept;
float from_f16(std::uint16_t bits) noexcept;

// row[i] ~ scale * q[i], q in -127..127, by the largest magnitude of the row. The scale has the 8 digits of bf16, so every product is exact
// in f32, and a row of such products gives the same scale and numbers again. Returns the scale; 0 for a row of zeros. Values must be
// finite.
float quantize_i8(std::span<const float> row, std::span<std::int8_t> q) noexcept;

// block[i] ~ scale * (q[i] - 8), q in 0..15, at most kI4Block of them: the value of the largest magnitude takes -8, so the scale has its
// sign turned. Scale and repetition as above.
float quantize_i4(std::span<const float> block, std::span<std::uint8_t> q) noexcept;

// w (outputs, inputs), row-major, becomes what that precision holds of it: int8 with a scale a row, int4 a block of inputs of a row.
void round_to(Precision precision, std::span<float> w, std::size_t inputs) noexcept;

}  // namespace kizzasi::kernels
