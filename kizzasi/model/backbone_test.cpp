// The laws of every backbone of the table, on random small configurations: they are what streaming, batching and snapshots stand on.
// KIZZASI_CASES sets how many configurations are tried (1,000 by default).
#include "kizzasi/model/backbone.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/base/aligned.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/quantize.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

std::size_t cases() {
  const char* wanted = std::getenv("KIZZASI_CASES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1000;
}

// A configuration of any architecture with sizes that no vector width divides.
BackboneConfig random_config(Rng& rng, std::string_view architecture) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  BackboneConfig c;
  c.architecture = std::string(architecture);
  // Most small, some up to 300, so that every remainder of every vector width occurs.
  c.d_model = rng.uniform() < 0.1 ? pick(1, 300) : pick(1, 40);
  c.n_layers = pick(1, 3);
  c.d_state = pick(1, rng.uniform() < 0.1 ? 70 : 12);
  c.d_conv = pick(1, 6);
  c.conv_bias = rng.uniform() < 0.5;
  c.proj_bias = rng.uniform() < 0.5;
  c.norm_eps = rng.uniform() < 0.5 ? 1e-5 : 1e-6;
  c.expand = pick(1, 3);
  c.dt_rank = pick(0, 5);
  const double rule = rng.uniform();
  c.discretization = rule < 0.4 ? "zoh" : rule < 0.8 ? "bilinear" : "euler";
  if (architecture == "s5" && rng.uniform() < 0.3) {
    c.s5_blocks = pick(1, 3);
    c.d_inner = 2 * c.s5_blocks * pick(1, 9);
  }
  const char* activations[] = {"full_glu", "half_glu1", "half_glu2", "gelu", "none"};
  c.ssm_activation = activations[rng.below(5)];
  if (architecture == "s4d" || architecture == "s4" || architecture == "dss" || architecture == "h3") c.d_state += c.d_state % 2;
  if (architecture == "h3") {
    c.head_dim = pick(1, 5);
    c.d_model = c.head_dim * pick(1, 12);
  }
  if (architecture == "s4d") {
    const char* inits[] = {"lin", "inv", "legs", "real"};
    c.s4d_init = inits[rng.below(4)];
  }
  if (architecture == "mamba2") {
    c.n_groups = pick(1, 4);
    c.head_dim = pick(1, 12);
    c.d_inner = c.head_dim * c.n_groups * pick(1, 4);
    c.chunk = pick(1, 40);
    if (rng.uniform() < 0.3) c.dt_limit_low = 0.01, c.dt_limit_high = 0.1;
  }
  if (architecture == "xlstm" || architecture == "slstm") {
    c.head_dim = pick(1, 8);
    c.d_model = c.head_dim * pick(1, 5);
    c.d_ffn = pick(1, 50);
    c.slstm_conv = rng.uniform() < 0.5;
  }
  if (architecture == "mlstm") {
    c.head_dim = pick(3, 8);
    c.qkv_block = pick(1, 5);
    c.d_inner = c.head_dim * c.qkv_block * pick(1, 3);
  }
  if (architecture == "jamba" || architecture == "bamba" || architecture == "qwen3_next") {
    c.n_layers = pick(1, 5);
    c.attention_head_dim = 4 * pick(1, 3);
    c.rope_fraction = rng.uniform() < 0.5 ? 0.5 : 1;
    c.n_kv_heads = pick(1, 2);
    c.n_heads = c.n_kv_heads * pick(1, 2);
    c.window = pick(1, 30);
    c.d_ffn = pick(1, 50);
    c.n_experts = pick(1, 4);
    c.experts_used = pick(1, c.n_experts);
    c.d_expert = pick(0, 20);
    c.d_shared_expert = pick(0, 20);
    for (std::int64_t i = 0; i < c.n_layers; ++i) {
      if (rng.uniform() < 0.3) c.attention_layers.push_back(static_cast<double>(i));
      if (rng.uniform() < 0.3) c.expert_layers.push_back(static_cast<double>(i));
    }
    if (architecture == "bamba") c.n_groups = pick(1, 3);
    if (architecture == "qwen3_next") c.n_key_heads = pick(0, 3);
    c.head_dim = pick(3, 12);
    c.d_inner = c.head_dim * c.n_groups * std::max<std::int64_t>(c.n_key_heads, 1) * pick(1, 3);
  }
  if (architecture == "griffin" || architecture == "hawk") {
    c.head_dim = 4 * pick(1, 4);
    c.n_kv_heads = pick(1, 2);
    c.n_heads = c.n_kv_heads * pick(1, 2);
    c.d_inner = c.n_heads * pick(1, 20);
    c.d_ffn = pick(1, 50);
    c.window = pick(1, 30);
  }
  if (architecture == "llama" || architecture == "mixtral" || architecture == "gpt2") {
    c.head_dim = 2 * pick(1, 8);
    c.n_kv_heads = pick(1, 3);
    c.n_heads = c.n_kv_heads * pick(1, 3);
    c.d_ffn = pick(1, 50);
    c.window = pick(1, 30);
    c.rope_theta = rng.uniform() < 0.5 ? 100 : 10000;
    c.n_experts = pick(1, 4);
    c.experts_used = pick(1, c.n_experts);
  }
  if (architecture.starts_with("rwkv")) {
    c.head_dim = pick(1, 12);
    c.d_model = c.head_dim * pick(1, rng.uniform() < 0.1 ? 25 : 4);
    c.d_ffn = pick(1, 50);
    for (std::int64_t* rank : {&c.mix_rank, &c.decay_rank, &c.rate_rank, &c.gate_rank, &c.value_rank}) *rank = pick(0, 5);
  }
  constexpr std::string_view kOfHeads[] = {"retnet", "gla", "hgrn2", "deltanet", "gated_deltanet"};
  if (std::find(std::begin(kOfHeads), std::end(kOfHeads), architecture) != std::end(kOfHeads)) {
    c.n_key_heads = architecture == "gated_deltanet" ? pick(0, 3) : 0;
    c.head_dim = rng.uniform() < 0.1 ? pick(3, 70) : pick(3, 12);  // the norm of one or two numbers is nearly a step
    c.d_inner = c.head_dim * std::max<std::int64_t>(c.n_key_heads, 1) * pick(1, 4);
    if (architecture == "retnet") c.d_state += c.d_state % 2;
  }
  return c;
}

// Weights that use every path: the initial ones, moved away from their zeros and ones.
NamedTensors random_weights(const Architecture& architecture, const BackboneConfig& config, Rng& rng) {
  NamedTensors weights = architecture.initial_weights(config, Rng(rng.bits()));
  for (auto& [name, tensor] : weights) {
    for (float& value : tensor.values) value += 0.2f * static_cast<float>(rng.normal());
  }
  return weights;
}

std::vector<float> normal_rows(std::size_t rows, std::size_t cols, Rng& rng) {
  std::vector<float> values(rows * cols);
  for (float& value : values) value = static_cast<float>(rng.normal());
  return values;
}

using State = AlignedVector<std::byte>;
State fresh(const Backbone& backbone) {
  State state(backbone.layout().bytes());
  backbone.reset(state);
  return state;
}

NamedTensors in_fewer_bits(const Architecture& architecture, const BackboneConfig& config, const NamedTensors& weights,
                           kernels::Precision precision) {
  const auto whole = architecture.load(config, weights);
  EXPECT_TRUE(whole) << whole.error().text();
  auto rounded = quantized(weights, (*whole)->packed(), precision);
  EXPECT_TRUE(rounded) << rounded.error().text();
  return std::move(*rounded);
}

// Everything random of one case.
struct Case {
  BackboneConfig config;
  NamedTensors weights;
  std::unique_ptr<Backbone> backbone;
  std::size_t d, frames;
  float dt;
  std::vector<float> input;  // (frames, d)
  std::vector<float> scratch;

  Case(const Architecture& architecture, Rng& rng, kernels::Precision precision = kernels::Precision::kF32)
      : config(random_config(rng, architecture.name)) {
    weights = random_weights(architecture, config, rng);
    if (precision != kernels::Precision::kF32) weights = in_fewer_bits(architecture, config, weights, precision);
    auto loaded = architecture.load(config, weights);
    EXPECT_TRUE(loaded) << loaded.error().text();
    backbone = std::move(*loaded);
    d = static_cast<std::size_t>(config.d_model);
    frames = 1 + rng.below(rng.uniform() < 0.1 ? 200 : 40);
    dt = rng.uniform() < 0.5 ? 1.0f : static_cast<float>(rng.uniform(0.25, 3));
    input = normal_rows(frames, d, rng);
    scratch.resize(backbone->scratch_floats(std::max<std::size_t>(frames, 80)));
  }
  MatrixView rows(std::size_t begin, std::size_t end) const { return {input.data() + begin * d, end - begin, d}; }
};

// One frame at a time through step, alone: the truth of the laws below.
std::vector<float> stepped(Case& c, State& state, std::size_t begin, std::size_t end) {
  std::vector<float> out((end - begin) * c.d);
  const Lane lane{state.data(), c.dt};
  for (std::size_t t = begin; t < end; ++t) {
    c.backbone->step({&lane, 1}, c.rows(t, t + 1), MatrixSpan(out.data() + (t - begin) * c.d, 1, c.d), c.scratch);
  }
  return out;
}

bool finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

TEST(Backbone, StepsRunsSplitsLanesAndSnapshotsGiveTheSameBits) {
  Rng rng(20240511);
  const std::size_t rounds = cases();
  for (std::size_t round = 0; round < rounds; ++round) {
    const Architecture& architecture = architectures()[round % architectures().size()];
    const kernels::Precision precision = kernels::kPrecisions[rng.uniform() < 0.5 ? 0 : rng.below(kernels::kPrecisions.size())];
    Case c(architecture, rng, precision);
    SCOPED_TRACE(std::string(architecture.name) + " case " + std::to_string(round) + " d_model " + std::to_string(c.d) + " " +
                 std::string(kernels::precision_name(precision)));
    State state = fresh(*c.backbone);
    const std::vector<float> truth = stepped(c, state, 0, c.frames);
    ASSERT_TRUE(finite(truth));

    // Any split of the stream into blocks.
    State split = fresh(*c.backbone);
    std::vector<float> out(truth.size());
    for (std::size_t t = 0; t < c.frames;) {
      const std::size_t n = rng.below(std::min<std::size_t>(c.frames - t, 70) + 1);  // 0 rows are a block, too
      c.backbone->run({split.data(), c.dt}, c.rows(t, t + n), MatrixSpan(out.data() + t * c.d, n, c.d), c.scratch);
      t += n;
    }
    ASSERT_EQ(out, truth);
    ASSERT_EQ(split, state);

    // Its lane among others that have other states, inputs and sampling rates, in any place.
    const std::size_t lanes = 1 + rng.below(rng.uniform() < 0.1 ? 80 : 6), mine = rng.below(lanes);
    std::vector<State> states;
    std::vector<Lane> batch;
    for (std::size_t i = 0; i < lanes; ++i) {
      states.push_back(fresh(*c.backbone));
      if (i != mine) stepped(c, states.back(), 0, rng.below(c.frames));
    }
    for (std::size_t i = 0; i < lanes; ++i) batch.push_back({states[i].data(), i == mine ? c.dt : static_cast<float>(rng.uniform(0.5, 2))});
    for (std::size_t t = 0; t < c.frames; ++t) {
      std::vector<float> in = normal_rows(lanes, c.d, rng), result(lanes * c.d);
      std::copy_n(c.input.data() + t * c.d, c.d, in.data() + mine * c.d);
      c.backbone->step(batch, MatrixView(in.data(), lanes, c.d), MatrixSpan(result.data(), lanes, c.d), c.scratch);
      ASSERT_TRUE(std::equal(result.begin() + mine * c.d, result.begin() + (mine + 1) * c.d, truth.begin() + t * c.d)) << "frame " << t;
    }
    ASSERT_EQ(states[mine], state);

    // A snapshot restored elsewhere, and what came after it forgotten.
    State first = fresh(*c.backbone);
    const std::size_t cut = rng.below(c.frames + 1);
    stepped(c, first, 0, cut);
    State restored(first.size());
    std::memcpy(restored.data(), first.data(), first.size());
    stepped(c, first, 0, c.frames);
    const std::vector<float> rest = stepped(c, restored, cut, c.frames);
    ASSERT_TRUE(std::equal(rest.begin(), rest.end(), truth.begin() + cut * c.d));
    ASSERT_EQ(restored, state);
  }
  std::printf("%zu configurations: steps, runs of any split, lanes and snapshots give the same bits\n", rounds);
}

TEST(Backbone, StaysWithinTheScratchThatItAsksFor) {
  Rng rng(31);
  constexpr std::size_t kGuard = 256;
  constexpr float kMark = 12345.0f;
  for (std::size_t round = 0; round < 4 * architectures().size(); ++round) {
    const Architecture& architecture = architectures()[round % architectures().size()];
    Case c(architecture, rng);
    SCOPED_TRACE(std::string(architecture.name) + " case " + std::to_string(round) + " d_model " + std::to_string(c.d));
    for (const std::size_t rows : {1u, 2u, 7u, 64u, 70u}) {
      const std::size_t size = c.backbone->scratch_floats(rows);
      std::vector<float> scratch(size + kGuard, kMark), in = normal_rows(rows, c.d, rng), out(in.size());
      State state = fresh(*c.backbone);
      c.backbone->run({state.data(), c.dt}, MatrixView(in.data(), rows, c.d), MatrixSpan(out.data(), rows, c.d),
                      std::span(scratch).first(size));
      std::vector<State> states(rows, fresh(*c.backbone));
      std::vector<Lane> lanes;
      for (State& each : states) lanes.push_back({each.data(), c.dt});
      c.backbone->step(lanes, MatrixView(in.data(), rows, c.d), MatrixSpan(out.data(), rows, c.d), std::span(scratch).first(size));
      EXPECT_TRUE(std::all_of(scratch.begin() + size, scratch.end(), [](float v) { return v == kMark; })) << rows << " rows";
    }
  }
}

// The outputs of a run over `frames` rows from reset state.
std::vector<float> run_of(const Backbone& backbone, const std::vector<float>& input, std::size_t frames) {
  const auto d = static_cast<std::size_t>(backbone.config().d_model);
  State state = fresh(backbone);
  std::vector<float> out(input.size()), scratch(backbone.scratch_floats(frames));
  backbone.run({state.data(), 1}, MatrixView(input.data(), frames, d), MatrixSpan(out.data(), frames, d), scratch);
  return out;
}

// A model in fewer bits computes what f32 computes with the same rounded weights: to the bit in half floats, to the rounding of the inputs
// in integers.
TEST(Backbone, InFewerBitsIsTheModelOfItsRoundedWeights) {
  constexpr std::size_t kFrames = 40;
  for (const Architecture& architecture : architectures()) {
    const auto config = sized(architecture.name, "tiny");
    ASSERT_TRUE(config) << config.error().text();
    NamedTensors weights = architecture.initial_weights(*config, Rng(5));
    Rng rng(6);
    for (auto& [name, tensor] : weights) {  // away from the zeros that some begin with
      for (float& value : tensor.values) value += 0.02f * static_cast<float>(rng.normal());
    }
    const std::vector<float> input = normal_rows(kFrames, static_cast<std::size_t>(config->d_model), rng);
    const auto whole = architecture.load(*config, weights);
    ASSERT_TRUE(whole);
    const std::vector<float> exact = run_of(**whole, input, kFrames);
    for (const kernels::Precision precision : kernels::kPrecisions) {
      SCOPED_TRACE(std::string(architecture.name) + " " + std::string(kernels::precision_name(precision)));
      NamedTensors rounded = in_fewer_bits(architecture, *config, weights, precision);
      const auto small = architecture.load(*config, rounded);
      ASSERT_TRUE(small);
      for (auto& [name, tensor] : rounded) tensor.storage = {};
      const auto same = architecture.load(*config, rounded);
      ASSERT_TRUE(same);
      const std::vector<float> out = run_of(**small, input, kFrames), expected = run_of(**same, input, kFrames);
      double most = 0, apart = 0, moved = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        most = std::max(most, std::abs(static_cast<double>(expected[i])));
        apart = std::max(apart, std::abs(static_cast<double>(out[i]) - expected[i]));
        moved = std::max(moved, std::abs(static_cast<double>(expected[i]) - exact[i]));
      }
      const bool integers = precision == kernels::Precision::kI8 || precision == kernels::Precision::kI4;
      // Matrices that are put together from parts of several tensors are rounded once as those and once as what they make.
      const bool made = architecture.name == "lru" || architecture.name == "s5";
      EXPECT_LE(apart, integers ? (made ? 2e-2 : 1e-3) * most : 0.0);
      EXPECT_EQ(moved > 0, precision != kernels::Precision::kF32);
    }
  }
}

template <typename T>
WeightVars<T> leaves(autograd::Tape<T>& tape, const NamedTensors& weights) {
  WeightVars<T> vars;
  for (const auto& [name, tensor] : weights) {
    const std::vector<T> values(tensor.values.begin(), tensor.values.end());
    vars.add(name, tape.leaf(tensor.shape, std::span<const T>(values)));
  }
  return vars;
}

// How far the exact outputs move where weights and input move by a rounding of f32 each: what no computation in f32 can be held below. A
// few of the random configurations have a row that nearly cancels before a norm, which then shows that row's last digits.
double moved_by_rounding(const Case& c, const std::vector<float>& input, const autograd::Dims& dims, std::span<const double> exact,
                         Rng& rng) {
  const auto rounded = [&](float v) { return static_cast<double>(v) * (1 + (rng.uniform() < 0.5 ? -0x1p-24 : 0x1p-24)); };
  autograd::Tape<double> tape;
  WeightVars<double> vars;
  for (const auto& [name, tensor] : c.weights) {
    std::vector<double> values;
    for (const float v : tensor.values) values.push_back(rounded(v));
    vars.add(name, tape.leaf(tensor.shape, std::span<const double>(values)));
  }
  std::vector<double> moved;
  for (const float v : input) moved.push_back(rounded(v));
  const auto y = c.backbone->forward(vars, tape.constant(dims, std::span<const double>(moved)));
  double apart = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) apart = std::max(apart, std::abs(y.value()[i] - exact[i]));
  return apart;
}

TEST(Backbone, ForwardEqualsRun) {
  Rng rng(77);
  const std::size_t rounds = std::max<std::size_t>(cases() / 5, 40);
  double worst = 0;
  std::size_t delicate = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const Architecture& architecture = architectures()[round % architectures().size()];
    Case c(architecture, rng);
    SCOPED_TRACE(std::string(architecture.name) + " case " + std::to_string(round) + " d_model " + std::to_string(c.d));
    const std::size_t batch = 1 + rng.below(3);
    const std::vector<float> input = normal_rows(batch * c.frames, c.d, rng);
    autograd::Tape<float> tape;
    autograd::Tape<double> tape64;
    const std::vector<double> input64(input.begin(), input.end());
    const autograd::Dims dims{batch, c.frames, c.d};
    const auto y = c.backbone->forward(leaves(tape, c.weights), tape.constant(dims, std::span<const float>(input)));
    const auto exact = c.backbone->forward(leaves(tape64, c.weights), tape64.constant(dims, std::span<const double>(input64)));
    ASSERT_EQ(y.dims(), dims);
    for (std::size_t b = 0; b < batch; ++b) {
      State state = fresh(*c.backbone);
      std::vector<float> out(c.frames * c.d);
      c.backbone->run({state.data(), 1.0f}, MatrixView(input.data() + b * out.size(), c.frames, c.d), MatrixSpan(out.data(), c.frames, c.d),
                      c.scratch);
      double largest = 0, apart = 0, apart64 = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const double truth = exact.value()[b * out.size() + i];
        largest = std::max(largest, std::abs(truth));
        apart = std::max(apart, std::abs(static_cast<double>(y.value()[b * out.size() + i]) - static_cast<double>(out[i])));
        apart64 = std::max(apart64, std::abs(truth - static_cast<double>(out[i])));
      }
      const double further = std::max(apart, apart64);
      if (further <= 1e-5 * largest) {
        worst = std::max(worst, further / std::max(largest, 1e-30));
        continue;
      }
      double moved = 0;
      for (int i = 0; i < 4; ++i) moved = std::max(moved, moved_by_rounding(c, input, dims, exact.value(), rng));
      EXPECT_LE(further, 16 * moved) << "largest " << largest;
      ++delicate;
    }
  }
  EXPECT_LE(delicate, rounds / 25);
  std::printf(
      "%zu configurations: forward equals run to %.1e of the largest value, but for %zu sequences within 16 times what a "
      "rounding of weights and input moves\n",
      rounds, worst, delicate);
}

TEST(Backbone, GradientsInDoubleAreCentralDifferences) {
  Rng rng(5);
  for (std::size_t round = 0; round < 3 * architectures().size(); ++round) {
    const Architecture& architecture = architectures()[round % architectures().size()];
    BackboneConfig config = random_config(rng, architecture.name);
    config.d_model = 4 + static_cast<std::int64_t>(rng.below(5));                         // the norm of one or two numbers is nearly a step
    if (!config.check("")) config.d_model = config.head_dim * (1 + 5 / config.head_dim);  // whole heads
    if (architecture.name.ends_with("deltanet") || architecture.name == "qwen3_next") config.d_state += 2;  // so are keys of unit length
    config.dt_limit_low = 0, config.dt_limit_high = 1e308;                                                  // a clamp has corners
    const NamedTensors weights = random_weights(architecture, config, rng);
    const auto backbone = architecture.load(config, weights);
    ASSERT_TRUE(backbone) << backbone.error().text();
    SCOPED_TRACE(std::string(architecture.name) + " case " + std::to_string(round));

    std::vector<autograd::CheckedInput> inputs{autograd::normal_input("input", {2, 9, static_cast<std::size_t>(config.d_model)}, rng)};
    for (const auto& [name, tensor] : weights) inputs.push_back({name, tensor.shape, {tensor.values.begin(), tensor.values.end()}});
    autograd::expect_gradients(
        inputs,
        [&](const std::vector<autograd::Var<double>>& in) {
          WeightVars<double> vars;
          for (std::size_t i = 1; i < in.size(); ++i) vars.add(inputs[i].name, in[i]);
          return (*backbone)->forward(vars, in[0]);
        },
        1e-6, 3e-5, 8);
  }
}

TEST(Backbone, WeightsThatDoNotFitAreNamed) {
  for (const Architecture& architecture : architectures()) {
    BackboneConfig config;
    config.architecture = std::string(architecture.name);
    const NamedTensors good = architecture.initial_weights(config, Rng(1));
    const auto message = [&](auto change) {
      NamedTensors weights = good;
      change(weights);
      const auto loaded = architecture.load(config, weights);
      return loaded ? std::string("accepted") : loaded.error().text();
    };
    EXPECT_EQ(message([](NamedTensors&) {}), "accepted");
    for (const auto& [name, tensor] : good) {
      EXPECT_NE(message([&](NamedTensors& w) { w.erase(name); }).find(name), std::string::npos);
      EXPECT_NE(message([&](NamedTensors& w) { w[name] = Tensor(Shape{3, 5}); }).find("(3, 5)"), std::string::npos);
      EXPECT_NE(message([&](NamedTensors& w) { w[name].values[0] = std::nanf(""); }).find(name), std::string::npos);
    }
    EXPECT_NE(message([&](NamedTensors& w) { w["norm_f.wieght"] = w["norm_f.weight"]; }).find("norm_f.wieght"), std::string::npos);
  }
}

TEST(Backbone, TheStateBlockIsWhatItsLayoutSays) {
  for (const Architecture& architecture : architectures()) {
    const auto config = sized(architecture.name, "tiny");
    const auto backbone = architecture.load(*config, architecture.initial_weights(*config, Rng(1)));
    ASSERT_TRUE(backbone);
    std::size_t reached = 0;
    for (const StateField& field : (*backbone)->layout().fields()) {
      EXPECT_EQ(field.offset % 64, 0u);
      EXPECT_GE(field.offset, reached);
      reached = field.offset + elements(field.shape) * bytes_of(field.type);
      EXPECT_EQ((*backbone)->layout().find(field.name), &field);
    }
    EXPECT_LE(reached, (*backbone)->layout().bytes());
    ASSERT_FALSE((*backbone)->layout().fields().empty());
    for (const char* layer : {"layer0.", "layer1."}) {
      const auto& fields = (*backbone)->layout().fields();
      EXPECT_TRUE(std::any_of(fields.begin(), fields.end(), [&](const StateField& f) { return f.name.starts_with(layer); })) << layer;
    }
    EXPECT_EQ((*backbone)->layout().find("layer9.h"), nullptr);
  }
}

}  // namespace
}  // namespace kizzasi
