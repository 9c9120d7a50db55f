#include "kizzasi/model/gated/published.h"

#include <fmt/format.h>

#include <array>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/gated/lstm.h"
#include "kizzasi/model/gated/mingru.h"

namespace kizzasi {
namespace {

constexpr const char* kGruIn = "to_hidden_and_gate.weight";
constexpr const char* kLstmIn = "to_hidden_and_f_i_gate.weight";

// All weights under their own names, as layer 0.
template <typename T>
WeightVars<T> as_first_layer(const WeightVars<T>& published) {
  WeightVars<T> ours;
  for (const auto& [name, var] : published.all()) ours.add("0." + name, var);
  return ours;
}

Result<PublishedLayer> minimal(const LayerKind& kind, const char* in, std::size_t parts, const NamedTensors& tensors,
                               std::string_view where) {
  const Shape& shape = tensors.at(in).shape;
  if (shape.size() != 2 || shape[0] % parts != 0 || shape[0] == 0 || shape[1] == 0) {
    return fail({Fault::kBadInput, fmt::format("the shape is {}", shape_text(shape)), fmt::format("{}: '{}'", where, in),
                 fmt::format("({} * inner, inputs)", parts), ""});
  }
  PublishedLayer layer;
  layer.kind = &kind;
  layer.config.architecture = parts == 2 ? "mingru" : "minlstm";
  layer.config.d_model = static_cast<std::int64_t>(shape[1]);
  layer.config.d_inner = static_cast<std::int64_t>(shape[0] / parts);
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  if (auto good = check_published(tensors, kind.shapes(layer.config), layer.config.architecture, where); !good) return fail(good.error());
  layer.ours = as_first_layer<float>;
  layer.ours64 = as_first_layer<double>;
  layer.state = [](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name != "state") return std::nullopt;
    std::vector<float> all;
    for (std::size_t b = 0; b < states.blocks.size(); ++b) {
      const std::span<const float> h = states.floats(b, "layer0.h");
      all.insert(all.end(), h.begin(), h.end());
    }
    return all;
  };
  return layer;
}

// weight_ih_l0 of fewer inputs than units gets columns of zeros.
template <typename T>
WeightVars<T> as_chain(const WeightVars<T>& published, std::size_t layers, std::size_t width) {
  using namespace autograd;
  WeightVars<T> ours;
  for (std::size_t i = 0; i < layers; ++i) {
    for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"}) {
      const std::string theirs = fmt::format("{}_l{}", name, i);
      if (!published.has(theirs)) continue;
      Var<T> var = published.at(theirs);
      if (var.dims().size() == 2 && var.dims()[1] < width) {
        const std::size_t rows = var.dims()[0], missing = width - var.dims()[1];
        const std::vector<T> zeros(rows * missing);
        const std::array<Var<T>, 2> both{var, var.tape->constant({rows, missing}, zeros)};
        var = concat(std::span<const Var<T>>(both), 1);
      }
      ours.add(fmt::format("{}.{}_l0", i, name), var);
    }
  }
  return ours;
}

Result<PublishedLayer> torch_layers(const LayerKind& kind, std::size_t gates, std::string_view format, const NamedTensors& tensors,
                                    const Json& config, std::string_view where) {
  const Shape& recurrent = tensors.at("weight_hh_l0").shape;
  const auto input = tensors.find("weight_ih_l0");
  if (recurrent.size() != 2 || input == tensors.end() || input->second.shape.size() != 2 || input->second.shape[1] > recurrent[1]) {
    return fail({Fault::kBadInput, "weight_ih_l0 and weight_hh_l0 do not fit together", std::string(where),
                 "(gates, inputs) and (gates, units), no more inputs than units", ""});
  }
  for (const char* other : {"bidirectional", "proj_size", "dropout"}) {
    const Json* value = config.find(other);
    const bool on = value != nullptr && ((value->is_bool() && value->boolean()) || (value->is_number() && value->number() != 0));
    if (on) return fail({Fault::kBadInput, fmt::format("{} is {}", other, value->dump()), std::string(where), "none of it", ""});
  }
  const std::size_t width = recurrent[1], inputs = input->second.shape[1];
  std::size_t layers = 0;
  while (tensors.count(fmt::format("weight_hh_l{}", layers)) != 0) ++layers;
  const bool biased = tensors.count("bias_ih_l0") != 0;
  std::map<std::string, Shape> wanted;
  for (std::size_t i = 0; i < layers; ++i) {
    wanted.emplace(fmt::format("weight_ih_l{}", i), Shape{gates * width, i == 0 ? inputs : width});
    wanted.emplace(fmt::format("weight_hh_l{}", i), Shape{gates * width, width});
    if (!biased) continue;
    for (const char* name : {"bias_ih", "bias_hh"}) wanted.emplace(fmt::format("{}_l{}", name, i), Shape{gates * width});
  }
  if (auto good = check_published(tensors, wanted, format, where); !good) return fail(good.error());

  PublishedLayer layer;
  layer.kind = &kind;
  layer.layers = layers;
  layer.config.architecture = std::string(format);
  layer.config.d_model = static_cast<std::int64_t>(width);
  layer.config.proj_bias = biased;
  layer.ours = [=](const WeightVars<float>& published) { return as_chain(published, layers, width); };
  layer.ours64 = [=](const WeightVars<double>& published) { return as_chain(published, layers, width); };
  // (batch, layer, units)
  layer.state = [layers](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name != "state_h" && name != "state_c") return std::nullopt;
    std::vector<float> all;
    for (std::size_t b = 0; b < states.blocks.size(); ++b) {
      for (std::size_t i = 0; i < layers; ++i) {
        const std::span<const float> values = states.floats(b, fmt::format("layer{}.{}", i, name.back()));
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  };
  return layer;
}

// Rows of the recurrent matrix over its columns: the gates of the cell; 0 where there is none.
std::size_t gates_of(const NamedTensors& tensors) {
  const auto found = tensors.find("weight_hh_l0");
  if (found == tensors.end() || found->second.shape.size() != 2 || found->second.shape[1] == 0) return 0;
  return found->second.shape[0] % found->second.shape[1] == 0 ? found->second.shape[0] / found->second.shape[1] : 0;
}

}  // namespace

bool is_published_mingru(const NamedTensors& tensors) { return tensors.count(kGruIn) != 0; }
bool is_published_minlstm(const NamedTensors& tensors) { return tensors.count(kLstmIn) != 0; }
bool is_published_lstm(const NamedTensors& tensors) { return gates_of(tensors) == 4; }
bool is_published_gru(const NamedTensors& tensors) { return gates_of(tensors) == 3; }

Result<PublishedLayer> published_mingru(const NamedTensors& tensors, const Json&, std::string_view where) {
  return minimal(kMinGruLayer, kGruIn, 2, tensors, where);
}
Result<PublishedLayer> published_minlstm(const NamedTensors& tensors, const Json&, std::string_view where) {
  return minimal(kMinLstmLayer, kLstmIn, 3, tensors, where);
}
Result<PublishedLayer> published_lstm(const NamedTensors& tensors, const Json& config, std::string_view where) {
  return torch_layers(kLstmLayer, 4, "lstm", tensors, config, where);
}
Result<PublishedLayer> published_gru(const NamedTensors& tensors, const Json& config, std::string_view where) {
  return torch_layers(kGruLayer, 3, "gru", tensors, config, where);
}

}  // namespace kizzasi
