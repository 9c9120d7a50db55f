#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/quantized_rows.h"

namespace kizzasi::kernels {
namespace {

std::size_t bytes_of_floats(Precision precision) { return precision == Precision::kF32 ? 4 : 2; }

// Where the number of output o and input k stands in [outputs / 64][depth][64].
std::size_t place_of(std::size_t o, std::size_t k, std::size_t depth) {
  return (o / kOutputBlock * depth + k) * kOutputBlock + o % kOutputBlock;
}

// Of an int8. The four inputs of a word stand as 0, 2, 1, 3: its low bytes and its high bytes are a pair each.
std::size_t i8_place(std::size_t o, std::size_t k, std::size_t inputs) {
  return 4 * place_of(o, k / 4, (inputs + 3) / 4) + k % 2 * 2 + k % 4 / 2;
}

// Of a bf16: two inputs a word.
std::size_t bf16_place(std::size_t o, std::size_t k, std::size_t inputs) { return 2 * place_of(o, k / 2, (inputs + 1) / 2) + k % 2; }

std::size_t float_place(Precision precision, std::size_t o, std::size_t k, std::size_t inputs) {
  return precision == Precision::kBf16 ? bf16_place(o, k, inputs) : place_of(o, k, inputs);
}

void pack_floats(Precision precision, std::span<const float> w, std::size_t outputs, std::size_t inputs, std::byte* to) {
  const std::size_t size = bytes_of_floats(precision);
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t k = 0; k < inputs; ++k) {
      const float value = w[o * inputs + k];
      std::byte* place = to + float_place(precision, o, k, inputs) * size;
      const std::uint16_t half = precision == Precision::kBf16 ? to_bf16(value) : precision == Precision::kF16 ? to_f16(value) : 0;
      std::memcpy(place, size == 4 ? static_cast<const void*>(&value) : &half, size);
    }
  }
}

void pack_i8(std::span<const float> w, std::size_t outputs, std::size_t inputs, std::byte* to, std::byte* scales) {
  std::vector<std::int8_t> q(inputs);
  for (std::size_t o = 0; o < outputs; ++o) {
    const float scale = quantize_i8(w.subspan(o * inputs, inputs), q);
    std::memcpy(scales + o * sizeof(float), &scale, sizeof(float));
    for (std::size_t k = 0; k < inputs; ++k) to[i8_place(o, k, inputs)] = static_cast<std::byte>(q[k] + 128);
  }
}

void pack_i4(std::span<const float> w, std::size_t outputs, std::size_t inputs, std::byte* to, std::byte* scales) {
  const std::size_t blocks = (inputs + kI4Block - 1) / kI4Block;
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t b = 0; b < blocks; ++b) {
      std::uint8_t q[kI4Block];
      std::fill_n(q, kI4Block, std::uint8_t{8});
      const std::size_t count = std::min(kI4Block, inputs - b * kI4Block);
      const std::uint16_t scale = to_bf16(quantize_i4(w.subspan(o * inputs + b * kI4Block, count), {q, count}));
      std::memcpy(scales + place_of(o, b, blocks) * sizeof(scale), &scale, sizeof(scale));
      for (std::size_t word = 0; word < 4; ++word) {
        // Number 2 j in the low half of the word, 2 j + 1 in the high half, each 4 j bits up: a mask gives a pair at a time.
        std::uint32_t bits = 0;
        for (std::size_t j = 0; j < 8; ++j) bits |= static_cast<std::uint32_t>(q[8 * word + j]) << (j / 2 * 4 + j % 2 * 16);
        std::memcpy(to + place_of(o, b * 4 + word, blocks * 4) * sizeof(bits), &bits, sizeof(bits));
      }
    }
  }
}

// One row of inputs against one output, by the definition.
float quantized_output(const PackedWeight& w, std::size_t o, std::span<const float> x, float start) {
  const std::size_t inputs = w.inputs();
  const bool eight_bits = w.precision() == Precision::kI8;
  float y = start;
  for (std::size_t first = 0; first < inputs; first += kQuantizedChunk) {
    const std::span<const float> chunk = x.subspan(first, std::min(kQuantizedChunk, inputs - first));
    float most = 0;
    for (const float value : chunk) {
      if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
      most = std::max(most, std::abs(value));
    }
    const auto levels = static_cast<float>(input_levels(w.precision(), chunk.size()));
    const float input_scale = most < 0x1p-100f ? 0.0f : most / levels, inverse = input_scale == 0 ? 0.0f : levels / most;
    const auto input = [&](std::size_t k) { return static_cast<std::int32_t>(std::nearbyint(chunk[k] * inverse)); };
    if (eight_bits) {
      float scale = 0;
      std::memcpy(&scale, w.scales() + o * sizeof(float), sizeof(float));
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < chunk.size(); ++k) {
        sum += (static_cast<std::int32_t>(w.data()[i8_place(o, first + k, inputs)]) - 128) * input(k);
      }
      y = std::fma(static_cast<float>(sum), input_scale * scale, y);
    } else {
      const std::size_t blocks = (inputs + kI4Block - 1) / kI4Block;
      float total = 0;
      for (std::size_t b = 0; b * kI4Block < chunk.size(); ++b) {
        const std::size_t at = first / kI4Block + b;
        std::uint16_t scale = 0;
        std::memcpy(&scale, w.scales() + place_of(o, at, blocks) * sizeof(scale), sizeof(scale));
        std::int32_t sum = 0;
        for (std::size_t k = b * kI4Block; k < std::min(chunk.size(), (b + 1) * kI4Block); ++k) {
          std::uint32_t bits = 0;
          const std::size_t word = k % kI4Block / 8, j = k % 8;
          std::memcpy(&bits, w.data() + place_of(o, at * 4 + word, blocks * 4) * sizeof(bits), sizeof(bits));
          sum += (static_cast<std::int32_t>((bits >> (j / 2 * 4 + j % 2 * 16)) & 15u) - 8) * input(k);
        }
        total = std::fma(static_cast<float>(sum), from_bf16(scale), total);
      }
      y = std::fma(total, input_scale, y);
    }
  }
  return y;
}

}  // namespace

PackedWeight PackedWeight::pack(std::span<const float> w, std::size_t outputs, std::size_t inputs, Precision precision) {
  PackedWeight packed;
  packed.outputs_ = outputs;
  packed.inputs_ = inputs;
  packed.precision_ = precision;
  const std::size_t places = (outputs + kOutputBlock - 1) / kOutputBlock * kOutputBlock, blocks = (inputs + kI4Block - 1) / kI4Block;
  std::size_t weights = 0, scales = 0;  // bytes
  if (precision == Precision::kI8) {
    weights = places * ((inputs + 3) / 4) * 4;
    scales = places * sizeof(float);
  } else if (precision == Precision::kI4) {
    weights = places * blocks * (kI4Block / 2);
    scales = places * blocks * sizeof(std::uint16_t);
  } else {
    weights = places * (precision == Precision::kBf16 ? inputs + inputs % 2 : inputs) * bytes_of_floats(precision);
  }
  packed.scales_at_ = weights;  // a whole number of lines: 64 outputs stand beside each other
  packed.lines_.assign((weights + scales) / sizeof(Line), Line{});
  if (packed.lines_.empty()) return packed;
  std::byte* to = packed.lines_.front().bytes;
  if (precision == Precision::kI8) {
    pack_i8(w, outputs, inputs, to, to + weights);
  } else if (precision == Precision::kI4) {
    pack_i4(w, outputs, inputs, to, to + weights);
  } else {
    pack_floats(precision, w, outputs, inputs, to);
  }
  return packed;
}

void linear_plain(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept {
  const bool integers = w.precision() == Precision::kI8 || w.precision() == Precision::kI4;
  const std::size_t size = bytes_of_floats(w.precision());
  for (std::size_t r = 0; r < x.rows; ++r) {
    for (std::size_t o = 0; o < w.outputs(); ++o) {
      float sum = bias.empty() ? 0.0f : bias[o];
      if (integers) {
        sum = quantized_output(w, o, x.row(r), sum);
      } else {
        for (std::size_t k = 0; k < w.inputs(); ++k) {
          const std::byte* place = w.data() + float_place(w.precision(), o, k, w.inputs()) * size;
          float weight = 0;
          std::uint16_t half = 0;
          std::memcpy(size == 4 ? static_cast<void*>(&weight) : &half, place, size);
          if (size == 2) weight = w.precision() == Precision::kBf16 ? from_bf16(half) : from_f16(half);
          sum = std::fma(x.row(r)[k], weight, sum);
        }
      }
      y.row(r)[o] = sum;
    }
  }
}

}  // namespace kizzasi::kernels
