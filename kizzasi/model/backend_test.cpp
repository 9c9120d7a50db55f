#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/aligned.h"
#include "kizzasi/kernels/watching_backend.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/backend_check.h"

namespace kizzasi {
namespace {

using kernels::BackendScope;
using kernels::Kernel;
using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr std::size_t kFrames = 5, kWidth = 16, kLayers = 4;

struct Counts final : kernels::WatchingBackend {
  std::map<Kernel, std::size_t> rows;  // that went through
  std::size_t multiply_adds = 0;       // of all products
  void see(const kernels::KernelCall& call) noexcept override {
    rows[call.kernel] += call.rows;
    multiply_adds += call.multiply_adds;
  }
};

// Rows through the recurrences: forward has products for the cache of attention, and convolves q, k and v one by one where a step does
// all three at once.
std::map<Kernel, std::size_t> scans(const Counts& counts) {
  std::map<Kernel, std::size_t> all = counts.rows;
  for (const Kernel kernel : {Kernel::kLinear, Kernel::kGemm, Kernel::kRingAttention, Kernel::kConv1dStep}) all.erase(kernel);
  return all;
}

std::size_t total(const std::map<Kernel, std::size_t>& rows) {
  std::size_t all = 0;
  for (const auto& [kernel, count] : rows) all += count;
  return all;
}

struct Model {
  BackboneConfig config;
  NamedTensors weights;
  std::unique_ptr<Backbone> backbone;
  std::vector<float> input;

  explicit Model(const Architecture& architecture) {
    config.architecture = std::string(architecture.name);
    config.d_model = kWidth;
    config.head_dim = 4;
    config.d_state = 4;
    config.n_layers = kLayers;  // a hybrid's attention, too
    Rng rng(3);
    weights = architecture.initial_weights(config, rng);
    auto loaded = architecture.load(config, weights);
    EXPECT_TRUE(loaded) << loaded.error().text();
    backbone = std::move(*loaded);
    for (std::size_t i = 0; i < kFrames * kWidth; ++i) input.push_back(static_cast<float>(rng.normal()));
  }

  MatrixView rows() const { return {input.data(), kFrames, kWidth}; }
  std::vector<float> in_blocks(std::size_t block) const {
    AlignedVector<std::byte> state(backbone->layout().bytes());
    backbone->reset(state);
    std::vector<float> out(input.size()), scratch(backbone->scratch_floats(block));
    const Lane lane{state.data(), 1};
    for (std::size_t t = 0; t < kFrames; t += block) {
      const MatrixSpan y = MatrixSpan(out.data(), kFrames, kWidth).slice(t, block);
      if (block == 1) {
        backbone->step({&lane, 1}, rows().slice(t, 1), y, scratch);
      } else {
        backbone->run(lane, rows().slice(t, block), y, scratch);
      }
    }
    return out;
  }
  // The output of forward; then, where `gradients`, those of all weights.
  std::vector<float> forward(bool gradients) const {
    autograd::Tape<float> tape;
    WeightVars<float> vars;
    for (const auto& [name, tensor] : weights) vars.add(name, tape.leaf(tensor.shape, std::span<const float>(tensor.values)));
    const auto y = backbone->forward(vars, tape.constant({1, kFrames, kWidth}, std::span<const float>(input)));
    std::vector<float> all(y.value().begin(), y.value().end());
    if (!gradients) return all;
    tape.backward(autograd::sum(autograd::square(y)));
    for (const auto& [name, var] : vars.all()) all.insert(all.end(), tape.grad(var).begin(), tape.grad(var).end());
    return all;
  }
  // What one frame multiplies: every matrix once, of experts those that are used.
  std::size_t multiply_adds() const {
    std::size_t all = 0;
    for (const auto& [name, tensor] : weights) {
      if (backbone->packed().count(name) == 0 && !stays_in_f32(name)) continue;
      const std::size_t size = tensor.values.size();
      const bool of_experts = name.find("experts.") != std::string::npos;
      all += of_experts ? size * static_cast<std::size_t>(config.experts_used) / static_cast<std::size_t>(config.n_experts) : size;
    }
    return all;
  }

 private:
  // Matrices that no smaller precision can be chosen for: those of sLSTM's heads, and the queries of Qwen3-Next beside their gates.
  bool stays_in_f32(const std::string& name) const {
    const auto ends = [&](std::string_view end) { return name.ends_with(end); };
    if (config.architecture == "slstm") {
      return ends("fgate.weight") || ends("igate.weight") || ends("ogate.weight") || ends("zgate.weight") || ends("_recurrent_kernel_");
    }
    return config.architecture == "qwen3_next" && ends("mixer.q_proj.weight");
  }
};

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(BackendSeam, SeesEveryProductAndEveryScanOfStepRunAndForwardAndChangesNoBit) {
  for (const Architecture& architecture : architectures()) {
    SCOPED_TRACE(std::string(architecture.name));
    const Model model(architecture);
    Counts steps, run, forward, training;
    const auto same = [&](Counts& counts, auto what) {
      const std::vector<float> alone = what();
      const BackendScope scope(counts);
      EXPECT_EQ(what(), alone);
    };
    same(steps, [&] { return model.in_blocks(1); });
    same(run, [&] { return model.in_blocks(kFrames); });
    same(forward, [&] { return model.forward(false); });
    same(training, [&] { return model.forward(true); });

    const std::size_t products = kFrames * model.multiply_adds();
    EXPECT_EQ(steps.multiply_adds, products);
    EXPECT_EQ(run.multiply_adds, products);
    EXPECT_EQ(run.rows[Kernel::kGemm], 0u);
    // In training, what is fed back from the output adds nothing at the first frame; attention multiplies more, as do maps in blocks,
    // experts and low ranks that are one product there.
    if (one_of(architecture.name, {"gru", "lstm", "slstm"})) {
      EXPECT_GE(forward.multiply_adds, products * (kFrames - 1) / kFrames);
      EXPECT_LT(forward.multiply_adds, products);
    } else if (steps.rows.count(Kernel::kRingAttention) != 0 || one_of(architecture.name, {"mlstm", "rwkv7"})) {
      EXPECT_GT(forward.multiply_adds, products);
    } else {
      EXPECT_EQ(forward.multiply_adds, products);
    }
    EXPECT_GE(training.multiply_adds, 2 * forward.multiply_adds);

    EXPECT_EQ(scans(steps), scans(run));
    EXPECT_EQ(scans(forward), scans(run));
    EXPECT_EQ(steps.rows[Kernel::kConv1dStep], run.rows[Kernel::kConv1dStep]);
    EXPECT_GE(forward.rows[Kernel::kConv1dStep], run.rows[Kernel::kConv1dStep]);
    EXPECT_EQ(steps.rows[Kernel::kRingAttention], run.rows[Kernel::kRingAttention]);
    // Every layer remembers through one of them; what gru, lstm and slstm feed back are products, as are convolutions over all channels.
    const std::size_t remembered = total(scans(run)) + run.rows[Kernel::kRingAttention];
    EXPECT_EQ(remembered, one_of(architecture.name, {"gru", "lstm", "slstm", "wavenet"}) ? 0 : kFrames * kLayers);

    // What check_backend asks for is all that anything needed.
    std::vector<Kernel> needed = needed_kernels(*model.backbone);
    for (const Counts* counts : {&steps, &run}) {
      for (const auto& [kernel, rows] : counts->rows) EXPECT_EQ(std::count(needed.begin(), needed.end(), kernel), rows > 0 ? 1 : 0);
    }
    needed.push_back(Kernel::kGemm);
    for (const Counts* counts : {&forward, &training}) {
      for (const auto& [kernel, rows] : counts->rows) EXPECT_GE(std::count(needed.begin(), needed.end(), kernel), rows > 0 ? 1 : 0);
    }
  }
}

// Offers all but one kernel.
struct AllBut final : kernels::Backend {
  explicit AllBut(Kernel k) : missing(k) {}
  Kernel missing;
  std::string_view name() const noexcept override { return "device"; }
  bool offers(Kernel kernel) const noexcept override { return kernel != missing; }
};

TEST(BackendSeam, WhatABackendDoesNotOfferIsAnErrorAtLoadUnlessTheCallerLeavesItToTheCpu) {
  const Model mamba(**find_architecture("mamba"));
  for (const Kernel kernel : kernels::kKernels) {
    AllBut device(kernel);
    const bool needed = kernel == Kernel::kLinear || kernel == Kernel::kConv1dStep || kernel == Kernel::kSelectiveScan;
    EXPECT_EQ(check_backend(device, *mamba.backbone).has_value(), !needed) << kernels::kernel_name(kernel);
    EXPECT_EQ(check_backend(device, *mamba.backbone, true).has_value(), !needed && kernel != Kernel::kGemm);
  }
  AllBut device(Kernel::kSelectiveScan);
  const std::string text = check_backend(device, *mamba.backbone).error().text();
  EXPECT_NE(text.find("backend 'device': it does not offer selective_scan"), std::string::npos) << text;
  EXPECT_NE(text.find("architecture 'mamba'"), std::string::npos) << text;
  const std::vector<float> cpu = mamba.in_blocks(kFrames);
  const BackendScope scope(device, kernels::NotOffered::kOnCpu);
  EXPECT_EQ(mamba.in_blocks(kFrames), cpu);
}

}  // namespace
}  // namespace kizzasi
