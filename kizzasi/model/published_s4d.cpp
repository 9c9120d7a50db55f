#include "kizzasi/model/published_s4d.h"

#include <array>
#include <cmath>
#include <complex>
#include <memory>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/s4d.h"
#include "kizzasi/model/state_space/published_dss.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

// Sizes, and the published numbers that states and kernels need.
struct Format {
  bool block = false;  // S4Block
  std::size_t d = 0, states = 0;
  autograd::Discretization rule{};
  std::vector<double> step;           // (d)
  std::vector<Complex> lambda, c, b;  // (d, states); b: S4Block's, 1 in s4d.py
};

// The weights of S4Block as those of our layer: -A_imag for A_imag, C B for C.
template <typename T>
WeightVars<T> ours(const Format& f, const WeightVars<T>& published) {
  using namespace autograd;
  WeightVars<T> all;
  if (!f.block) {
    for (const auto& [name, var] : published.all()) all.add("0." + name, var);
    return all;
  }
  const Var<T> b = reshape(published.at("layer.kernel.B"), {f.d, f.states, 2}), c = reshape(published.at("layer.kernel.C"), b.dims());
  const Var<T> br = slice(b, 2, 0, 1), bi = slice(b, 2, 1, 2), cr = slice(c, 2, 0, 1), ci = slice(c, 2, 1, 2);
  const std::array<Var<T>, 2> product{sub(mul(cr, br), mul(ci, bi)), add(mul(cr, bi), mul(ci, br))};
  all.add("0.kernel.log_dt", reshape(published.at("layer.kernel.inv_dt"), {f.d}));
  all.add("0.kernel.log_A_real", published.at("layer.kernel.A_real"));
  all.add("0.kernel.A_imag", scale(published.at("layer.kernel.A_imag"), T{-1}));
  all.add("0.kernel.C", concat(std::span<const Var<T>>(product), 2));
  all.add("0.D", reshape(published.at("layer.D"), {f.d}));
  all.add("0.output_linear.0.weight", reshape(published.at("output_linear.0.weight"), {2 * f.d, f.d, 1}));
  all.add("0.output_linear.0.bias", published.at("output_linear.0.bias"));
  return all;
}

autograd::DiscreteElement element(const Format& f, std::size_t i) {
  return autograd::discretize(f.rule, f.lambda[i], f.step[i / f.states]);
}

// (batch, d, states, re/im). S4Block keeps the discretised B in its state, s4d.py in C, as we do.
std::vector<float> published_states(const Format& f, const StateBatch& states) {
  std::vector<float> out;
  for (std::size_t stream = 0; stream < states.blocks.size(); ++stream) {
    const std::span<const float> values = states.floats(stream, "layer0.ssm");
    for (std::size_t i = 0; i < f.d * f.states; ++i) {
      const std::size_t at = i % f.states * f.d + i / f.states;
      Complex s(values[at], values[f.d * f.states + at]);
      if (f.block) s *= element(f, i).b * f.b[i];
      out.push_back(static_cast<float>(s.real()));
      out.push_back(static_cast<float>(s.imag()));
    }
  }
  return out;
}

// (d, frames): 2 Re sum C b a^l, the answer to an impulse without D.
std::vector<float> kernel(const Format& f, std::size_t frames) {
  std::vector<float> out;
  for (std::size_t e = 0; e < f.d; ++e) {
    for (std::size_t l = 0; l < frames; ++l) {
      double sum = 0;
      for (std::size_t i = e * f.states; i < (e + 1) * f.states; ++i) {
        const autograd::DiscreteElement x = element(f, i);
        sum += 2 * (f.c[i] * f.b[i] * x.b * std::pow(x.a, static_cast<double>(l))).real();
      }
      out.push_back(static_cast<float>(sum));
    }
  }
  return out;
}

std::map<std::string, Shape> shapes_of(const Format& f) {
  const std::size_t d = f.d, n = f.states;
  if (f.block) {
    return {{"layer.D", {1, d}},
            {"layer.kernel.A_imag", {d, n}},
            {"layer.kernel.A_real", {d, n}},
            {"layer.kernel.B", {1, d, n, 2}},
            {"layer.kernel.C", {1, d, n, 2}},
            {"layer.kernel.inv_dt", {d, 1}},
            {"output_linear.0.bias", {2 * d}},
            {"output_linear.0.weight", {2 * d, d}}};
  }
  return {{"D", {d}},
          {"kernel.A_imag", {d, n}},
          {"kernel.C", {d, n, 2}},
          {"kernel.log_A_real", {d, n}},
          {"kernel.log_dt", {d}},
          {"output_linear.0.bias", {2 * d}},
          {"output_linear.0.weight", {2 * d, d, 1}}};
}

void take_numbers(const NamedTensors& tensors, Format& f) {
  const auto values = [&](const char* block, const char* alone) -> const std::vector<float>& {
    return tensors.at(f.block ? block : alone).values;
  };
  const auto& log_dt = values("layer.kernel.inv_dt", "kernel.log_dt");
  const auto& real = values("layer.kernel.A_real", "kernel.log_A_real");
  const auto& imaginary = values("layer.kernel.A_imag", "kernel.A_imag");
  const auto& c = values("layer.kernel.C", "kernel.C");
  for (const float value : log_dt) f.step.push_back(std::exp(static_cast<double>(value)));
  for (std::size_t i = 0; i < f.d * f.states; ++i) {
    const double angle = static_cast<double>(imaginary[i]);
    f.lambda.emplace_back(-std::exp(static_cast<double>(real[i])), f.block ? -angle : angle);
    f.c.emplace_back(c[2 * i], c[2 * i + 1]);
    if (f.block) {
      const auto& b = tensors.at("layer.kernel.B").values;
      f.b.emplace_back(b[2 * i], b[2 * i + 1]);
    } else {
      f.b.emplace_back(1, 0);
    }
  }
}

}  // namespace

bool is_published_s4d(const NamedTensors& tensors) {
  return tensors.count("kernel.log_dt") != 0 || tensors.count("layer.kernel.inv_dt") != 0;
}

Result<PublishedLayer> published_s4d(const NamedTensors& tensors, const Json& config, std::string_view where) {
  const Json* rule = config.find("disc");
  if (rule != nullptr && rule->is_string() && rule->string() == "dss") return published_dss(tensors, config, where);
  auto format = std::make_shared<Format>();
  format->block = tensors.count("layer.kernel.inv_dt") != 0;
  const auto eigenvalues = tensors.find(format->block ? "layer.kernel.A_real" : "kernel.log_A_real");
  if (eigenvalues == tensors.end() || eigenvalues->second.shape.size() != 2) {
    return fail({Fault::kBadInput, "there are no eigenvalues", std::string(where), "A_real (d_model, d_state / 2)", ""});
  }
  format->d = eigenvalues->second.shape[0];
  format->states = eigenvalues->second.shape[1];
  if (auto good = check_published(tensors, shapes_of(*format), "S4D", where); !good) return fail(good.error());

  PublishedLayer layer;
  layer.kind = &kS4dLayer;
  layer.config.architecture = "s4d";
  layer.config.d_model = static_cast<std::int64_t>(format->d);
  layer.config.d_state = static_cast<std::int64_t>(2 * format->states);
  layer.config.discretization = rule != nullptr && rule->is_string() ? rule->string() : "zoh";
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  format->rule = discretization_of(layer.config);
  take_numbers(tensors, *format);
  layer.ours = [format](const WeightVars<float>& published) { return ours(*format, published); };
  layer.ours64 = [format](const WeightVars<double>& published) { return ours(*format, published); };
  layer.state = [format](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name != "state" && name != "state_step") return std::nullopt;
    return published_states(*format, states);
  };
  layer.derived = [format](const std::string& name, std::size_t frames) -> std::optional<std::vector<float>> {
    if (name != "kernel") return std::nullopt;
    return kernel(*format, frames);
  };
  return layer;
}

}  // namespace kizzasi
