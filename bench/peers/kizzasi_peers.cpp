// One measurement of ours beside a peer's; tools compare them in turn (bench/peers/compare.py). Prints one line of JSON.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/peers/best_of.h"
#include "bench/step_limit.h"
#include "kizzasi/base/aligned.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/kernels/gemm.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/quantize.h"
#include "kizzasi/tensor/quantized.h"

namespace {

using namespace kizzasi;

constexpr std::size_t kLanes = 64, kBatch = 32, kRows = 64;

// The models that are compared, by the name of the architecture: 256 wide, 4 layers, 16 states where there are such.
BackboneConfig config_of(std::string_view model) {
  BackboneConfig c;
  c.architecture = std::string(model);
  c.d_model = 256;
  c.n_layers = 4;
  c.d_state = 16;
  c.head_dim = 64;
  c.window = 512;
  if (model == "lstm" || model == "gru") c.d_inner = 256;
  return c;
}

[[noreturn]] void stop(const Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  std::exit(1);
}

int step(std::string_view model, kernels::Precision precision, double seconds) {
  const BackboneConfig config = config_of(model);
  const auto architecture = find_architecture(model);
  if (!architecture) stop(architecture.error());
  NamedTensors weights = (*architecture)->initial_weights(config, Rng(1));
  auto backbone = (*architecture)->load(config, weights);
  if (!backbone) stop(backbone.error());
  auto rounded = quantized(weights, (*backbone)->packed(), precision);
  if (!rounded) stop(rounded.error());
  backbone = (*architecture)->load(config, *rounded);
  if (!backbone) stop(backbone.error());
  std::size_t weight_bytes = 0;
  for (const auto& [name, tensor] : *rounded) weight_bytes += stored_bytes(tensor);

  const auto d = static_cast<std::size_t>(config.d_model);
  const std::size_t state_bytes = (*backbone)->layout().bytes();
  std::vector<AlignedVector<std::byte>> states;
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    states.emplace_back(state_bytes);
    (*backbone)->reset(states.back());
    lanes.push_back({states.back().data()});
  }
  std::vector<float> in(kLanes * d), out(kLanes * d), scratch((*backbone)->scratch_floats(kLanes));
  Rng rng(2);
  for (float& x : in) x = static_cast<float>(rng.normal());
  const FloatEnv env;
  // A window full of frames: attention costs what it costs for ever after.
  for (std::int64_t t = 0; t < config.window; ++t) (*backbone)->step({lanes.data(), 1}, {in.data(), 1, d}, {out.data(), 1, d}, scratch);
  const double alone = best_of(seconds / 2, [&] { (*backbone)->step({lanes.data(), 1}, {in.data(), 1, d}, {out.data(), 1, d}, scratch); });
  const double together = best_of(seconds / 2, [&] { (*backbone)->step(lanes, {in.data(), kLanes, d}, {out.data(), kLanes, d}, scratch); });
  const double limit = bench::step_limit(static_cast<double>(weight_bytes + 2 * state_bytes), static_cast<std::size_t>(config.n_layers));
  std::printf(R"({"model":"%s","precision":"%s","parameters":%zu,"weight_bytes":%zu,"state_bytes":%zu,"step_us":%.3f,"limit_us":%.3f,)"
              R"("lanes":%zu,"lanes_step_us":%.3f})"
              "\n",
              config.architecture.c_str(), std::string(kernels::precision_name(precision)).c_str(), parameter_count(config), weight_bytes,
              state_bytes, alone * 1e6, limit * 1e6, kLanes, together * 1e6);
  return 0;
}

// Forward and backward through the whole stack, gradients of every weight.
int train(std::string_view model, double seconds) {
  const BackboneConfig config = config_of(model);
  const auto architecture = find_architecture(model);
  if (!architecture) stop(architecture.error());
  const NamedTensors weights = (*architecture)->initial_weights(config, Rng(1));
  const auto backbone = (*architecture)->load(config, weights);
  if (!backbone) stop(backbone.error());
  const auto d = static_cast<std::size_t>(config.d_model);
  std::vector<float> input(kBatch * kRows * d), slope(kBatch * kRows * d);
  Rng rng(2);
  for (float& x : input) x = static_cast<float>(rng.normal());
  for (float& x : slope) x = static_cast<float>(rng.normal());
  const FloatEnv env;
  autograd::Tape<float> tape;
  const double best = best_of(seconds, [&] {
    tape.clear();
    WeightVars<float> vars;
    for (const auto& [name, tensor] : weights) vars.add(name, tape.borrow(tensor.shape, tensor.values));
    const auto y = (*backbone)->forward(vars, tape.constant({kBatch, kRows, d}, std::span<const float>(input)));
    tape.backward(y, slope);
  });
  std::printf(R"({"model":"%s","batch":%zu,"rows":%zu,"train_ms":%.3f})"
              "\n",
              config.architecture.c_str(), kBatch, kRows, best * 1e3);
  return 0;
}

// Rows by a matrix of 768 outputs and 256 inputs: with weights packed once, and with both operands anew (float32).
int product(std::size_t rows, kernels::Precision precision, double seconds) {
  constexpr std::size_t kOutputs = 768, kInputs = 256;
  Rng rng(3);
  std::vector<float> x(rows * kInputs), w(kOutputs * kInputs), y(rows * kOutputs);
  for (float& value : x) value = static_cast<float>(rng.normal());
  for (float& value : w) value = static_cast<float>(rng.normal());
  const auto packed = kernels::PackedWeight::pack(w, kOutputs, kInputs, precision);
  const double linear = best_of(seconds, [&] { kernels::linear(packed, {x.data(), rows, kInputs}, {}, {y.data(), rows, kOutputs}); });
  const double gemm = best_of(seconds, [&] {
    kernels::gemm(kernels::Transpose::kNo, {x.data(), rows, kInputs}, kernels::Transpose::kYes, {w.data(), kOutputs, kInputs},
                  {y.data(), rows, kOutputs}, false);
  });
  std::printf(R"({"rows":%zu,"precision":"%s","linear_us":%.3f,"gemm_us":%.3f})"
              "\n",
              rows, std::string(kernels::precision_name(precision)).c_str(), linear * 1e6, gemm * 1e6);
  return 0;
}

// One stream of sound in blocks of that many frames.
int audio(std::string_view model, std::size_t block, double seconds) {
  BackboneConfig config;
  if (model == "lstm16") {
    config.architecture = "lstm";
    config.d_model = config.d_inner = 16;
    config.n_layers = 1;
  } else {
    config.architecture = "s4d";
    config.d_model = 64;
    config.n_layers = 4;
    config.d_state = 32;
  }
  const auto architecture = find_architecture(config.architecture);
  if (!architecture) stop(architecture.error());
  const auto backbone = (*architecture)->load(config, (*architecture)->initial_weights(config, Rng(1)));
  if (!backbone) stop(backbone.error());
  const auto d = static_cast<std::size_t>(config.d_model);
  AlignedVector<std::byte> state((*backbone)->layout().bytes());
  (*backbone)->reset(state);
  std::vector<float> in(block * d), out(block * d), scratch((*backbone)->scratch_floats(block));
  Rng rng(4);
  for (float& value : in) value = static_cast<float>(rng.normal());
  const double best = best_of(seconds, [&] { (*backbone)->run({state.data()}, {in.data(), block, d}, {out.data(), block, d}, scratch); });
  std::printf(R"({"model":"%s","parameters":%zu,"block":%zu,"row_us":%.4f})"
              "\n",
              std::string(model).c_str(), parameter_count(config), block, best * 1e6 / static_cast<double>(block));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (what == "step" && count == 5) {
    const auto precision = kizzasi::kernels::precision_from_name(words[3]);
    if (precision) return step(words[2], *precision, std::atof(words[4]));
  }
  if (what == "product" && count == 5) {
    const auto precision = kizzasi::kernels::precision_from_name(words[3]);
    if (precision) return product(static_cast<std::size_t>(std::atoi(words[2])), *precision, std::atof(words[4]));
  }
  if (what == "audio" && count == 5) return audio(words[2], static_cast<std::size_t>(std::atoi(words[3])), std::atof(words[4]));
  if (what == "train" && count == 4) return train(words[2], std::atof(words[3]));
  std::fprintf(
      stderr,
      "usage: kizzasi_peers step MODEL f32|bf16|f16|int8|int4 SECONDS\n       kizzasi_peers train MODEL SECONDS\n"
      "       kizzasi_peers product ROWS f32|bf16|f16|int8|int4 SECONDS\n       kizzasi_peers audio lstm16|s4d50k FRAMES SECONDS\n");
  return 2;
}
