#include "kizzasi/model/state_space/published_h3.h"

#include <fmt/format.h>

#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/s4d.h"
#include "kizzasi/model/state_space/h3.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

// Names whose published shape has an axis of one before it.
bool has_channels_axis(const std::string& name) { return name == "ssm_k_kernel.kernel.C" || name == "kernel.kernel.C"; }

// state_k (batch, d, N): the register holds its inputs after B, x[n] = sum over j <= n of B[n - j] k[t - j]; ours holds them before it.
std::vector<float> register_states(const BackboneConfig& c, const Tensor& b, const StateBatch& states) {
  const auto d = static_cast<std::size_t>(c.d_model), taps = static_cast<std::size_t>(c.d_state);
  std::vector<float> out;
  for (std::size_t stream = 0; stream < states.blocks.size(); ++stream) {
    const std::span<const float> window = states.floats(stream, "layer0.conv");
    for (std::size_t e = 0; e < d; ++e) {
      for (std::size_t n = 0; n < taps; ++n) {
        double sum = 0;
        for (std::size_t j = 0; j <= n; ++j) {
          sum += static_cast<double>(b.values[e * taps + n - j]) * static_cast<double>(window[(taps - 1 - j) * d + e]);
        }
        out.push_back(static_cast<float>(sum));
      }
    }
  }
  return out;
}

// state (batch, d, N / 2, re/im), of heads of one channel: B and its discretisation are in it, with us in C.
std::vector<float> diagonal_states(const BackboneConfig& c, const NamedTensors& tensors, const StateBatch& states) {
  const auto d = static_cast<std::size_t>(c.d_model), count = static_cast<std::size_t>(c.d_state / 2);
  const auto at = [&](const char* name, std::size_t i) { return static_cast<double>(tensors.at(name).values[i]); };
  std::vector<float> out;
  for (std::size_t stream = 0; stream < states.blocks.size(); ++stream) {
    const std::span<const float> values = states.floats(stream, "layer0.ssm");
    for (std::size_t i = 0; i < d * count; ++i) {
      const std::size_t from = i % count * d + i / count;
      const Complex lambda(-std::exp(at("kernel.kernel.inv_A_real", i)), at("kernel.kernel.A_imag", i));
      const auto element = autograd::discretize(discretization_of(c), lambda, std::exp(at("kernel.kernel.log_dt", i / count)));
      const Complex b(at("kernel.kernel.B", 2 * i), at("kernel.kernel.B", 2 * i + 1));
      const Complex s = Complex(static_cast<double>(values[from]), static_cast<double>(values[d * count + from])) * element.b * b;
      out.push_back(static_cast<float>(s.real()));
      out.push_back(static_cast<float>(s.imag()));
    }
  }
  return out;
}

}  // namespace

bool is_published_h3(const NamedTensors& tensors) { return tensors.count("ssm_k_kernel.kernel.C") != 0; }

Result<PublishedLayer> published_h3(const NamedTensors& tensors, const Json& config, std::string_view where) {
  const auto in = tensors.find("ssm_k_kernel.kernel.B"), heads = tensors.find("D");
  if (in == tensors.end() || in->second.shape.size() != 2 || heads == tensors.end() || heads->second.shape.size() != 1 ||
      heads->second.shape[0] == 0 || in->second.shape[0] % heads->second.shape[0] != 0) {
    return fail({Fault::kBadInput, "the register and D do not fit together", std::string(where),
                 "ssm_k_kernel.kernel.B (d_model, d_state) and D (heads), whole heads", ""});
  }
  PublishedLayer layer;
  layer.kind = &kH3Layer;
  layer.config.architecture = "h3";
  layer.config.d_model = static_cast<std::int64_t>(in->second.shape[0]);
  layer.config.d_state = static_cast<std::int64_t>(in->second.shape[1]);
  layer.config.head_dim = static_cast<std::int64_t>(in->second.shape[0] / heads->second.shape[0]);
  const Json* rule = config.find("disc");
  layer.config.discretization = rule != nullptr && rule->is_string() ? rule->string() : "bilinear";
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  std::map<std::string, Shape> wanted = layer.kind->shapes(layer.config);
  for (auto& [name, shape] : wanted) {
    if (has_channels_axis(name)) shape.insert(shape.begin(), 1);
  }
  if (auto good = check_published(tensors, wanted, "H3", where); !good) return fail(good.error());
  set_ours(layer, [heads = heads->second.shape[0]]<typename T>(const WeightVars<T>& theirs) {
    WeightVars<T> all;
    for (const auto& [name, var] : theirs.all()) {
      const autograd::Dims dims = var.dims();
      if (name == "output_linear.weight") {
        const std::size_t d = dims[0];
        all.add("0." + name, autograd::reshape(autograd::permute(autograd::reshape(var, {d, d / heads, heads}), {0, 2, 1}), {d, d}));
        continue;
      }
      all.add("0." + name, has_channels_axis(name) ? autograd::reshape(var, autograd::Dims(dims.begin() + 1, dims.end())) : var);
    }
    return all;
  });
  layer.state = [c = layer.config, tensors](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name == "state_k") return register_states(c, tensors.at("ssm_k_kernel.kernel.B"), states);
    if (name == "state" && c.head_dim == 1) return diagonal_states(c, tensors, states);
    return std::nullopt;
  };
  return layer;
}

}  // namespace kizzasi
