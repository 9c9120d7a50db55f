#include "kizzasi/model/state_space/s5.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/s4d.h"
#include "kizzasi/model/state_space/complex_unit.h"
#include "kizzasi/model/state_space/hippo.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

constexpr std::size_t kLargestBlock = 64;  // of a start that names no blocks

struct Sizes {
  explicit Sizes(const BackboneConfig& c) : d(static_cast<std::size_t>(c.d_model)), states(complex_unit::states_of(c)) {}
  std::size_t d, states;
};

// States of one block of the start, both conjugate halves; even.
std::size_t block_of(const BackboneConfig& c) {
  const std::size_t pairs = complex_unit::states_of(c);
  if (c.s5_blocks > 0) return 2 * (pairs / static_cast<std::size_t>(c.s5_blocks));
  std::size_t blocks = (2 * pairs + kLargestBlock - 1) / kLargestBlock;
  while (pairs % blocks != 0) ++blocks;
  return 2 * (pairs / blocks);
}

class Sampler final : public complex_unit::Sampler {
 public:
  Sampler(const BackboneConfig& c, const LayerWeights& w)
      : rule_(discretization_of(c)),
        real_(w.at("seq.Lambda_re").values),
        imaginary_(w.at("seq.Lambda_im").values),
        log_step_(w.at("seq.log_step").values) {}

  void sample(double dt, std::span<float> a, std::span<float> b) const noexcept override {
    const std::size_t states = real_.size();
    for (std::size_t n = 0; n < states; ++n) {
      const Complex lambda(static_cast<double>(std::min(real_[n], kS5LargestReal)), static_cast<double>(imaginary_[n]));
      const autograd::DiscreteElement e = autograd::discretize(rule_, lambda, dt * std::exp(static_cast<double>(log_step_[n])));
      a[n] = static_cast<float>(e.a.real());
      a[states + n] = static_cast<float>(e.a.imag());
      b[n] = static_cast<float>(e.b.real());
      b[states + n] = static_cast<float>(e.b.imag());
    }
  }

 private:
  autograd::Discretization rule_;
  std::vector<float> real_, imaginary_, log_step_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (c.bidirectional) {
    return fail({Fault::kBadUse, "bidirectional is true", std::string(where), "false",
                 "The second scan runs from the end: a stream has none. `verify` computes such a layer over whole sequences."});
  }
  const auto pairs = static_cast<std::int64_t>(complex_unit::states_of(c));
  if (c.s5_blocks > 0 && (pairs % c.s5_blocks != 0 || 2 * (pairs / c.s5_blocks) > kLargestHippo)) {
    return fail({Fault::kBadUse, fmt::format("s5_blocks {} for {} conjugate pairs of states", c.s5_blocks, pairs), std::string(where),
                 fmt::format("equal blocks of at most {} pairs", kLargestHippo / 2), "0 chooses them."});
  }
  return {};
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{"seq.Lambda_re", {s.states}},
                                   {"seq.Lambda_im", {s.states}},
                                   {"seq.log_step", {s.states, 1}},
                                   {"seq.B", {s.states, s.d, 2}},
                                   {"seq.D", {s.d}}};
  if (c.bidirectional) {
    all.emplace("seq.C1", Shape{s.d, s.states, 2});
    all.emplace("seq.C2", Shape{s.d, s.states, 2});
  } else {
    all.emplace("seq.C", Shape{s.d, s.states, 2});
  }
  complex_unit::add_shapes(c, all);
  return all;
}

// Rows of B, columns of C: of numbers drawn in the basis of HiPPO, turned into that of the eigenvectors, block by block.
void draw_turned(const BackboneConfig& c, bool out, Tensor& tensor, Rng& rng) {
  const Sizes s(c);
  const std::size_t block = block_of(c), half = block / 2;
  const NormalLegS legs = normal_legs(block);
  const double spread = 1 / std::sqrt(static_cast<double>(2 * s.states));
  std::vector<Complex> drawn(block);
  for (std::size_t e = 0; e < s.d; ++e) {
    for (std::size_t begin = 0; begin < s.states; begin += half) {
      for (Complex& each : drawn) each = {spread * rng.normal(), out ? spread * rng.normal() : 0.0};
      for (std::size_t k = 0; k < half; ++k) {
        Complex sum = 0;
        for (std::size_t i = 0; i < block; ++i) sum += drawn[i] * (out ? legs.vector(i, k) : std::conj(legs.vector(i, k)));
        const std::size_t at = 2 * (out ? e * s.states + begin + k : (begin + k) * s.d + e);
        tensor.values[at] = static_cast<float>(sum.real());
        tensor.values[at + 1] = static_cast<float>(sum.imag());
      }
    }
  }
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  if (complex_unit::draw(name, tensor, rng)) return;
  const std::span<float> out = tensor.values;
  if (name == "seq.Lambda_re") std::fill(out.begin(), out.end(), -0.5f);
  if (name == "seq.Lambda_im") {
    const NormalLegS legs = normal_legs(block_of(c));
    for (std::size_t n = 0; n < out.size(); ++n) out[n] = static_cast<float>(legs.lambda[n % legs.lambda.size()].imag());
  }
  if (name == "seq.log_step") {
    draw_uniform(out, std::log(c.dt_min), std::log(c.dt_max), rng);
    if (c.discretization == "euler") {
      const NormalLegS legs = normal_legs(block_of(c));
      for (std::size_t n = 0; n < out.size(); ++n) {
        const Complex lambda(-0.5, legs.lambda[n % legs.lambda.size()].imag());
        out[n] = stable_under_euler(out[n], std::span(&lambda, 1));
      }
    }
  }
  if (name == "seq.D") {
    for (float& value : out) value = static_cast<float>(rng.normal());
  }
  if (name == "seq.B") draw_turned(c, false, tensor, rng);
  if (name.starts_with("seq.C")) draw_turned(c, true, tensor, rng);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  const Sizes s(c);
  std::vector<float> in, out;
  const std::vector<float>&b = w.at("seq.B").values, &to = w.at("seq.C").values;
  for (const std::size_t part : {0u, 1u}) {
    for (std::size_t i = part; i < b.size(); i += 2) in.push_back(b[i]);
  }
  for (std::size_t e = 0; e < s.d; ++e) {
    for (std::size_t n = 0; n < s.states; ++n) out.push_back(2 * to[2 * (e * s.states + n)]);
    for (std::size_t n = 0; n < s.states; ++n) out.push_back(-2 * to[2 * (e * s.states + n) + 1]);
  }
  complex_unit::Maps maps{w.pack_made(in, 2 * s.states, {"seq.B"}), w.pack_made(out, s.d, {"seq.C"}), w.at("seq.D").values};
  return complex_unit::make(c, w, std::make_unique<Sampler>(c, w), std::move(maps), name, layout);
}

// (batch, time, width), the last frame first.
template <typename T>
autograd::Var<T> reversed(autograd::Var<T> x) {
  const std::size_t time = x.dims()[1];
  std::vector<std::size_t> order(time);
  for (std::size_t t = 0; t < time; ++t) order[t] = time - 1 - t;
  return permute(gather(permute(x, {1, 0, 2}), std::move(order)), {1, 0, 2});
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const char* name) { return w.at(prefix + "seq." + name); };
  const Var<T> real = clamp(weight("Lambda_re"), -std::numeric_limits<T>::max(), T{kS5LargestReal});
  std::vector<T> unit(2 * s.states);  // C of diagonal_discretize that leaves b as it is
  for (std::size_t n = 0; n < s.states; ++n) unit[2 * n] = T{0.5};
  const Var<T> discrete = diagonal_discretize(discretization_of(config), reshape(weight("log_step"), {s.states}),
                                              reshape(log(scale(real, T{-1})), {s.states, 1}), reshape(weight("Lambda_im"), {s.states, 1}),
                                              u.tape->constant({s.states, 1, 2}, std::span<const T>(unit)));
  const auto plane = [&](std::size_t i) { return reshape(slice(discrete, 0, i, i + 1), {2, s.states}); };
  // The real or the imaginary part of (rows, columns, 2).
  const auto part = [](Var<T> of, std::size_t i) { return reshape(slice(of, 2, i, i + 1), {of.dims()[0], of.dims()[1]}); };
  const std::array<Var<T>, 2> in{part(weight("B"), 0), part(weight("B"), 1)};
  const Var<T> inputs = linear(u, concat(std::span<const Var<T>>(in), 0));
  const auto read = [&](const char* name, Var<T> h) {
    const std::array<Var<T>, 2> out{scale(part(weight(name), 0), T{2}), scale(part(weight(name), 1), T{-2})};
    return linear(h, concat(std::span<const Var<T>>(out), 1));
  };
  const Var<T> h = complex_scan(inputs, plane(0), plane(1));
  Var<T> y = read(config.bidirectional ? "C1" : "C", h);
  if (config.bidirectional) y = add(y, read("C2", reversed(complex_scan(reversed(inputs), plane(0), plane(1)))));
  return complex_unit::activation(config, w, prefix, add(y, mul(u, weight("D"))));
}

}  // namespace

const LayerKind kS5Layer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
