// What the published cases of Griffin hold beside whole blocks: its unit alone, and a block whose recurrence is told to begin again.
#include "kizzasi/model/griffin/griffin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/model/griffin/published.h"
#include "kizzasi/tensor/files.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

struct PublishedCase {
  NamedTensors weights;  // ours, of layer "0."
  SafetensorsFile io;
  BackboneConfig config;
  double share = 0;  // what may be out, of the largest value
  explicit PublishedCase(const std::string& name) {
    const std::string stem = KIZZASI_SOURCE_DIR "/tests/golden/backbones/griffin/" + name;
    const NamedTensors published = read_safetensors(stem + ".safetensors")->tensors;
    io = *read_safetensors(stem + ".io.safetensors");
    const Json description = *parse_python_json(*read_file(stem + ".json"), stem);
    share = description.find("tolerance")->find("fair")->find("output")->number();
    const auto layer = published_rglru(published, *description.find("config"), name);
    EXPECT_TRUE(layer) << layer.error().text();
    config = layer->config;
    weights = taken_over(published, layer->ours64);
  }
};

// The layer of a case over one sequence after the other, with a look at its state between frames.
template <typename BeforeFrame>
std::vector<float> stepped(const BackboneConfig& config, const NamedTensors& weights, const Tensor& input, BeforeFrame before) {
  StateLayout layout;
  const auto layer = kGriffinRecurrent.make(config, {weights, "0."}, "layer0", layout);
  const std::size_t batch = input.shape[0], time = input.shape[1], d = input.shape[2];
  std::vector<float> out = input.values, scratch(layer->scratch_floats(1));
  for (std::size_t b = 0; b < batch; ++b) {
    StateBlock state(layout.bytes());
    const Lane lane{state.data(), 1.0f};
    for (std::size_t t = 0; t < time; ++t) {
      before(t, state, layout);
      const MatrixSpan row(out.data() + (b * time + t) * d, 1, d);
      layer->advance({&lane, 1}, row, row, scratch);
    }
  }
  return out;
}

void expect_near(const std::vector<float>& ours, const std::vector<float>& truth, double share) {
  ASSERT_EQ(ours.size(), truth.size());
  double largest = 0;
  for (const float v : truth) largest = std::max(largest, std::abs(static_cast<double>(v)));
  ASSERT_GT(largest, 0);
  for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_NEAR(ours[i], truth[i], share * largest) << i;
}

TEST(Griffin, TheUnitAloneIsThePublishedOne) {
  for (const char* name : {"rglru_block_a", "rglru_block_b"}) {
    PublishedCase published(name);
    // Everything around the unit becomes nothing: identities, a convolution of the present frame alone, a gate of 16 and its inverse.
    const auto width = static_cast<std::size_t>(published.config.d_inner);
    published.config.d_model = published.config.d_inner;
    const auto diagonal = [&](float value) {
      Tensor matrix(Shape{width, width});
      for (std::size_t i = 0; i < width; ++i) matrix.values[i * width + i] = value;
      return matrix;
    };
    NamedTensors& w = published.weights;
    w["0.linear_x.weight"] = diagonal(1);
    w["0.linear_y.weight"] = diagonal(0);
    w["0.linear_out.weight"] = diagonal(1.0f / 16);
    for (const char* bias : {"0.linear_x.bias", "0.linear_out.bias", "0.conv_1d.bias"}) w[bias] = Tensor(Shape{width});
    w["0.linear_y.bias"] = Tensor(Shape{width});
    std::fill(w["0.linear_y.bias"].values.begin(), w["0.linear_y.bias"].values.end(), 16.0f);  // whose GELU it is, too
    Tensor& conv = w["0.conv_1d.weight"];
    const std::size_t taps = conv.shape[2];
    for (std::size_t i = 0; i < conv.values.size(); ++i) conv.values[i] = i % taps == taps - 1 ? 1.0f : 0.0f;
    const auto nothing = [](std::size_t, StateBlock&, const StateLayout&) {};
    expect_near(stepped(published.config, w, published.io.tensors.at("rg_lru.input"), nothing),
                published.io.tensors.at("rg_lru.output").values, published.share);
  }
}

TEST(Griffin, ARecurrenceThatBeginsAgainIsThePublishedOne) {
  for (const char* name : {"rglru_block_a", "rglru_block_b"}) {
    const PublishedCase published(name);
    // A new document at frame 11 clears the recurrence, and not what the convolution has seen.
    const auto begin_again = [](std::size_t t, StateBlock& state, const StateLayout& layout) {
      if (t != 11) return;
      for (const char* field : {"layer0.h", "layer0.started"}) {
        const StateField& f = *layout.find(field);
        std::fill_n(state.begin() + static_cast<std::ptrdiff_t>(f.offset), elements(f.shape) * bytes_of(f.type), std::byte{0});
      }
    };
    expect_near(stepped(published.config, published.weights, published.io.tensors.at("input"), begin_again),
                published.io.tensors.at("output_reset_at_11").values, published.share);
  }
}

}  // namespace
}  // namespace kizzasi
