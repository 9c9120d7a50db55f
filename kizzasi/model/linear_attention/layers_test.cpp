// The layers of flash-linear-attention restated as plain double loops over published names: verify then finds ours equal to them, in steps,
// in blocks and in training. (Their operators are compared with published values in operators_test.cpp.)
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kizzasi/base/json.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/model/linear_attention/hgrn.h"
#include "kizzasi/model/linear_attention/lower_bound.h"
#include "kizzasi/model/verification.h"

namespace kizzasi {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // of one sequence, by time

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }

// A layer being restated: its weights, and sizes by name.
struct Restated {
  NamedTensors weights;
  Rng rng{7};

  void random(const std::string& name, Shape shape, double scale = 0.6, double shift = 0) {
    Tensor tensor(std::move(shape));
    for (float& v : tensor.values) v = static_cast<float>(shift + scale * rng.normal());
    weights[name] = std::move(tensor);
  }
  Row times(const std::string& name, const Row& x) const {
    const Tensor& w = weights.at(name);
    Row y(w.shape[0]);
    for (std::size_t o = 0; o < y.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += static_cast<double>(w.values[o * x.size() + i]) * x[i];
    }
    return y;
  }
  double at(const std::string& name, std::size_t i) const { return static_cast<double>(weights.at(name).values[i]); }
  Rows times(const std::string& name, const Rows& x) const {
    Rows all;
    for (const Row& row : x) all.push_back(times(name, row));
    return all;
  }
  // silu of the causal convolution
  Rows convolved(const std::string& name, const Rows& x) const {
    const std::size_t taps = weights.at(name).shape[2];
    Rows y = x;
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t e = 0; e < x[t].size(); ++e) {
        double sum = 0;
        for (std::size_t lag = 0; lag < taps && lag <= t; ++lag) sum += at(name, e * taps + taps - 1 - lag) * x[t - lag][e];
        y[t][e] = silu(sum);
      }
    }
    return y;
  }
};

// x over the root mean square of each piece of `n`, times gain[i mod its size].
Row normed(const Restated& r, const std::string& gain, const Row& x, std::size_t n) {
  Row y = x;
  const std::size_t gains = r.weights.at(gain).values.size();
  for (std::size_t begin = 0; begin < x.size(); begin += n) {
    double square = 0;
    for (std::size_t i = begin; i < begin + n; ++i) square += x[i] * x[i];
    for (std::size_t i = begin; i < begin + n; ++i) {
      y[i] = x[i] / std::sqrt(square / static_cast<double>(n) + 1e-5) * r.at(gain, i % gains);
    }
  }
  return y;
}

Row unit(Row x) {
  double square = 1e-6;
  for (const double v : x) square += v * v;
  for (double& v : x) v /= std::sqrt(square);
  return x;
}
Row part(const Row& x, std::size_t i, std::size_t n) {
  return {x.begin() + static_cast<std::ptrdiff_t>(i * n), x.begin() + static_cast<std::ptrdiff_t>((i + 1) * n)};
}

constexpr std::size_t kBatch = 2, kTime = 23, kD = 10, kHeads = 3, kKeys = 5, kValues = 4, kInner = kHeads * kValues, kTaps = 4;

// verify's verdict of these weights beside forward(sequence) of the restatement.
template <typename Forward>
void expect_verified(const Restated& r, const char* config, Forward forward) {
  Rng rng(3);
  SafetensorsFile checkpoint, io;
  checkpoint.tensors = r.weights;
  Tensor input(Shape{kBatch, kTime, kD}), output(Shape{kBatch, kTime, kD});
  for (float& v : input.values) v = static_cast<float>(rng.normal());
  for (std::size_t b = 0; b < kBatch; ++b) {
    Rows x(kTime);
    for (std::size_t t = 0; t < kTime; ++t) {
      for (std::size_t i = 0; i < kD; ++i) x[t].push_back(static_cast<double>(input.values[(b * kTime + t) * kD + i]));
    }
    const Rows y = forward(x);
    for (std::size_t t = 0; t < kTime; ++t) {
      for (std::size_t i = 0; i < kD; ++i) output.values[(b * kTime + t) * kD + i] = static_cast<float>(y[t][i]);
    }
  }
  io.tensors = {{"input", input}, {"output", output}, {"output_split", output}};
  const auto description = Json::parse(R"({"split_at": 9, "tolerance": {"fair": {"output": 2e-6}}})", "");
  const auto report = verify_checkpoint(checkpoint, io, *Json::parse(config, ""), *description, "the restatement");
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_GE(report->tensors.size(), 5u);  // run, step, a split, forward in both precisions
  for (const ComparedTensor& t : report->tensors)
    EXPECT_TRUE(t.good()) << t.name << " (" << t.path << "): " << t.max_abs << " > " << t.tolerance;
}

// S (K, V) of one head, and o = S^T q.
struct State {
  std::vector<double> s = std::vector<double>(kKeys * kValues);
  double& at(std::size_t n, std::size_t p) { return s[n * kValues + p]; }
  Row read(const Row& q) {
    Row o(kValues);
    for (std::size_t n = 0; n < kKeys; ++n) {
      for (std::size_t p = 0; p < kValues; ++p) o[p] += q[n] * at(n, p);
    }
    return o;
  }
};

TEST(PublishedLayers, GatedLinearAttention) {
  Restated r;
  for (const char* name : {"q_proj.weight", "k_proj.weight"}) r.random(name, {kHeads * kKeys, kD});
  for (const char* name : {"v_proj.weight", "g_proj.weight"}) r.random(name, {kInner, kD});
  r.random("gk_proj.0.weight", {3, kD});
  r.random("gk_proj.1.weight", {kHeads * kKeys, 3});
  r.random("gk_proj.1.bias", {kHeads * kKeys});
  r.random("g_norm_swish_gate.weight", {kValues}, 0.2, 1);
  r.random("o_proj.weight", {kD, kInner});
  expect_verified(r, R"({"num_heads": 3})", [&](const Rows& x) {
    Rows y;
    std::vector<State> states(kHeads);
    for (const Row& u : x) {
      const Row q = r.times("q_proj.weight", u), k = r.times("k_proj.weight", u), v = r.times("v_proj.weight", u);
      const Row gate = r.times("gk_proj.1.weight", r.times("gk_proj.0.weight", u)), g = r.times("g_proj.weight", u);
      Row all;
      for (std::size_t h = 0; h < kHeads; ++h) {
        Row scaled = part(q, h, kKeys);
        for (double& each : scaled) each /= std::sqrt(static_cast<double>(kKeys));
        for (std::size_t n = 0; n < kKeys; ++n) {
          const std::size_t key = h * kKeys + n;
          const double decay = std::exp(std::log(sigmoid(gate[key] + r.at("gk_proj.1.bias", key))) / 16);
          for (std::size_t p = 0; p < kValues; ++p) states[h].at(n, p) = decay * states[h].at(n, p) + k[key] * v[h * kValues + p];
        }
        const Row o = normed(r, "g_norm_swish_gate.weight", states[h].read(scaled), kValues);
        all.insert(all.end(), o.begin(), o.end());
      }
      for (std::size_t e = 0; e < kInner; ++e) all[e] *= silu(g[e]);
      y.push_back(r.times("o_proj.weight", all));
    }
    return y;
  });
}

TEST(PublishedLayers, Hgrn) {
  Restated r;
  for (const char* name : {"i_proj.weight", "f_proj.weight", "g_proj.weight"}) r.random(name, {kInner, kD});
  r.random("g_norm.weight", {kInner}, 0.2, 1);
  r.random("o_proj.weight", {kD, kInner});
  expect_verified(r, "{}", [&](const Rows& x) {
    Rows y;
    Row h(kInner);
    for (const Row& u : x) {
      const Row i = r.times("i_proj.weight", u), f = r.times("f_proj.weight", u), g = r.times("g_proj.weight", u);
      for (std::size_t e = 0; e < kInner; ++e) h[e] = sigmoid(f[e]) * h[e] + silu(i[e]) * (1 - sigmoid(f[e]));
      Row o = normed(r, "g_norm.weight", h, kInner);
      for (std::size_t e = 0; e < kInner; ++e) o[e] *= silu(g[e]);
      y.push_back(r.times("o_proj.weight", o));
    }
    return y;
  });
}

TEST(PublishedLayers, Hgrn2) {
  Restated r;
  for (const char* name : {"q_proj.weight", "f_proj.weight"}) r.random(name, {kHeads * kKeys, kD});
  r.random("i_proj.weight", {kInner, kD});
  r.random("g_norm.weight", {kInner}, 0.2, 1);
  r.random("o_proj.weight", {kD, kInner});
  expect_verified(r, R"({"expand_ratio": 5})", [&](const Rows& x) {
    Rows y;
    std::vector<State> states(kHeads);
    for (const Row& u : x) {
      Row q = r.times("q_proj.weight", u);
      for (double& each : q) each = silu(each) / std::sqrt(static_cast<double>(kKeys));
      const Row f = r.times("f_proj.weight", u), i = r.times("i_proj.weight", u);
      Row all;
      for (std::size_t h = 0; h < kHeads; ++h) {
        for (std::size_t n = 0; n < kKeys; ++n) {
          const double kept = sigmoid(f[h * kKeys + n]);
          for (std::size_t p = 0; p < kValues; ++p) states[h].at(n, p) = kept * states[h].at(n, p) + (1 - kept) * i[h * kValues + p];
        }
        const Row o = states[h].read(part(q, h, kKeys));
        all.insert(all.end(), o.begin(), o.end());
      }
      y.push_back(r.times("o_proj.weight", normed(r, "g_norm.weight", all, kInner)));
    }
    return y;
  });
}

// key_heads: of q and k; gated: Gated DeltaNet.
void expect_delta_verified(std::size_t key_heads, bool gated, const char* config) {
  Restated r;
  for (const char* each : {"q", "k"}) {
    r.random(std::string(each) + "_proj.weight", {key_heads * kKeys, kD});
    r.random(std::string(each) + "_conv1d.weight", {key_heads * kKeys, 1, kTaps});
  }
  r.random("v_proj.weight", {kInner, kD});
  r.random("v_conv1d.weight", {kInner, 1, kTaps});
  r.random("b_proj.weight", {kHeads, kD});
  r.random("o_norm.weight", {kValues}, 0.2, 1);
  r.random("o_proj.weight", {kD, kInner});
  if (gated) {
    r.random("a_proj.weight", {kHeads, kD});
    r.random("g_proj.weight", {kInner, kD});
    r.random("A_log", {kHeads});
    r.random("dt_bias", {kHeads}, 0.5, -1);
  }
  expect_verified(r, config, [&](const Rows& x) {
    const Rows q = r.convolved("q_conv1d.weight", r.times("q_proj.weight", x)),
               k = r.convolved("k_conv1d.weight", r.times("k_proj.weight", x)),
               v = r.convolved("v_conv1d.weight", r.times("v_proj.weight", x));
    Rows y;
    std::vector<State> states(kHeads);
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row b = r.times("b_proj.weight", x[t]);
      Row all;
      for (std::size_t h = 0; h < kHeads; ++h) {
        Row query = unit(part(q[t], h * key_heads / kHeads, kKeys));
        const Row key = unit(part(k[t], h * key_heads / kHeads, kKeys));
        for (double& each : query) each /= std::sqrt(static_cast<double>(kKeys));
        if (gated) {
          const double step = std::log1p(std::exp(r.times("a_proj.weight", x[t])[h] + r.at("dt_bias", h)));
          for (double& each : states[h].s) each *= std::exp(-std::exp(r.at("A_log", h)) * step);
        }
        const Row stored = states[h].read(key);
        for (std::size_t n = 0; n < kKeys; ++n) {
          for (std::size_t p = 0; p < kValues; ++p) {
            states[h].at(n, p) += sigmoid(b[h]) * key[n] * (v[t][h * kValues + p] - stored[p]);
          }
        }
        const Row o = normed(r, "o_norm.weight", states[h].read(query), kValues);
        all.insert(all.end(), o.begin(), o.end());
      }
      if (gated) {
        const Row g = r.times("g_proj.weight", x[t]);
        for (std::size_t e = 0; e < kInner; ++e) all[e] *= silu(g[e]);
      }
      y.push_back(r.times("o_proj.weight", all));
    }
    return y;
  });
}

TEST(PublishedLayers, DeltaNet) { expect_delta_verified(kHeads, false, R"({"num_heads": 3})"); }
TEST(PublishedLayers, GatedDeltaNet) { expect_delta_verified(kHeads, true, R"({"num_heads": 3})"); }
TEST(PublishedLayers, GatedDeltaNetWhoseKeysServeSeveralHeads) { expect_delta_verified(1, true, R"({"num_heads": 1, "num_v_heads": 3})"); }

TEST(PublishedLayers, RefuseOptionsThatChangeWhatTheyCompute) {
  Restated r;
  for (const char* name : {"i_proj.weight", "f_proj.weight", "g_proj.weight"}) r.random(name, {kInner, kD});
  r.random("g_norm.weight", {kInner});
  r.random("o_proj.weight", {kD, kInner});
  SafetensorsFile checkpoint, io;
  checkpoint.tensors = r.weights;
  const auto message = [&](const char* config) {
    const auto report = verify_checkpoint(checkpoint, io, *Json::parse(config, ""), Json::object(), "here");
    return report ? std::string("accepted") : report.error().text();
  };
  EXPECT_NE(message(R"({"hidden_act": "relu"})").find("relu"), std::string::npos);
  EXPECT_NE(message(R"({"allow_neg_eigval": true})").find("allow_neg_eigval"), std::string::npos);
  checkpoint.tensors["i_conv1d.weight"] = Tensor(Shape{kInner, 1, kTaps});
  EXPECT_NE(message("{}").find("i_conv1d.weight"), std::string::npos);
}

// Published: cumsum(softmax(lower_bounds, 0)) - softmax(lower_bounds, 0)[0], for steps and for training.
TEST(LowerBounds, RiseFromBlockToBlock) {
  constexpr std::size_t kBlocks = 4, kChannels = 6;
  Rng rng(11);
  NamedTensors weights;
  autograd::Tape<double> tape;
  WeightVars<double> vars;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    Tensor row(Shape{kChannels});
    for (float& v : row.values) v = static_cast<float>(2 * rng.normal());
    const std::string name = "layers." + std::to_string(i) + ".mixer.lower_bound";
    const std::vector<double> wide(row.values.begin(), row.values.end());
    vars.add(name, tape.leaf(autograd::Dims{kChannels}, std::span<const double>(wide)));
    weights[name] = std::move(row);
  }
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const std::string prefix = "layers." + std::to_string(block) + ".mixer.";
    const std::vector<float> steps = matrix_heads::lower_bounds(LayerWeights(weights, prefix), kBlocks);
    const auto training = matrix_heads::lower_bounds(vars, prefix, kBlocks);
    ASSERT_EQ(training.tape == nullptr, block == 0);
    for (std::size_t e = 0; e < kChannels; ++e) {
      const auto share = [&](std::size_t i) {
        return std::exp(static_cast<double>(weights["layers." + std::to_string(i) + ".mixer.lower_bound"].values[e]));
      };
      double all = 0, below = 0;
      for (std::size_t i = 0; i < kBlocks; ++i) all += share(i), below += i > 0 && i <= block ? share(i) : 0.0;
      EXPECT_NEAR(steps[e], below / all, 1e-7);
      if (block > 0) {
        EXPECT_NEAR(training.value()[e], below / all, 1e-14);
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
