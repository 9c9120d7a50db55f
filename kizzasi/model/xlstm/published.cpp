#include "kizzasi/model/xlstm/published.h"

#include <fmt/format.h>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/state_space/published_block.h"
#include "kizzasi/model/xlstm/mlstm.h"
#include "kizzasi/model/xlstm/mlstm_block.h"
#include "kizzasi/model/xlstm/slstm.h"

namespace kizzasi {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
  return text;
}

// Of one fused tensor the pieces that ours are, in order: name below the layer, rows.
struct Piece {
  std::string name;
  std::size_t rows;
};
std::vector<Piece> pieces_of(const std::string& fused, std::size_t keys, std::size_t d, std::size_t heads, std::size_t inner) {
  if (fused == "qkv_opreact") return {{"q", keys}, {"k", keys}, {"v", d}, {"ogate_preact", d}};
  if (fused == "ifgate_preact") return {{"igate_preact", heads}, {"fgate_preact", heads}};
  return {{"gate_proj", inner}, {"up_proj", inner}};  // proj_up_gate_z
}

std::string stack_name(const std::string& published) {
  std::string name = published.substr(std::string_view("backbone.").size());
  if (name == "out_norm.weight") return "norm_f.weight";
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"blocks.", "layers."},        {".norm_mlstm.", ".norm."},        {".mlstm_layer.", ".mixer."},
      {".norm_ffn.", ".ffn_norm."},  {".proj_up_gate.", ".gate_proj."}, {".proj_up.", ".up_proj."},
      {".proj_down.", ".down_proj."}};
  for (const auto& [theirs, ours] : kParts) name = replaced(std::move(name), theirs, ours);
  return name;
}

// One block after the other, tensors "cell.*" and "ffn.*".
class Pair final : public Layer {
 public:
  Pair(std::unique_ptr<Layer> first, std::unique_ptr<Layer> second) : first_(std::move(first)), second_(std::move(second)) {}
  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return std::max(first_->scratch_floats(rows), second_->scratch_floats(rows));
  }
  void advance(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out,
               std::span<float> scratch) const noexcept override {
    first_->advance(lanes, in, out, scratch);
    second_->advance(lanes, out, out, scratch);
  }

 private:
  std::unique_ptr<Layer> first_, second_;
};

template <const LayerKind& kKind>
inline constexpr const LayerKind& kInBlock = published_block::kBlock<kKind, published_block::Norm::kLayer>;
constexpr const LayerKind& kFeedForwardBlock = kInBlock<kExactGeGlu>;

template <const LayerKind& kCell>
std::map<std::string, Shape> pair_shapes(const BackboneConfig& c) {
  std::map<std::string, Shape> all;
  for (const auto& [name, shape] : kInBlock<kCell>.shapes(c)) all.emplace("cell." + name, shape);
  for (const auto& [name, shape] : kFeedForwardBlock.shapes(c)) all.emplace("ffn." + name, shape);
  return all;
}

template <typename T, const LayerKind& kCell>
autograd::Var<T> pair_forward(const BackboneConfig& c, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return kFeedForwardBlock.forward64(c, w, prefix + "ffn.", kInBlock<kCell>.forward64(c, w, prefix + "cell.", x));
  } else {
    return kFeedForwardBlock.forward(c, w, prefix + "ffn.", kInBlock<kCell>.forward(c, w, prefix + "cell.", x));
  }
}

template <const LayerKind& kCell>
const LayerKind kPair{
    [](const BackboneConfig& c, std::string_view where) { return kCell.check(c, where); },
    pair_shapes<kCell>,
    [](const BackboneConfig&, std::int64_t, const std::string&, Tensor&, Rng) {},
    [](const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) -> std::unique_ptr<Layer> {
      return std::make_unique<Pair>(kInBlock<kCell>.make(c, w.below("cell."), name, layout),
                                    kFeedForwardBlock.make(c, w.below("ffn."), name, layout));
    },
    pair_forward<float, kCell>,
    pair_forward<double, kCell>};

// A block of the first release around kCell, whose sizes are in `c` but for the width and the feed-forward block.
template <const LayerKind& kCell>
Result<PublishedLayer> block_of(BackboneConfig c, const NamedTensors& tensors, std::string_view where) {
  const bool with_ffn = tensors.count("ffn.proj_down.weight") != 0;
  PublishedLayer layer;
  layer.kind = with_ffn ? &kPair<kCell> : &kInBlock<kCell>;
  c.d_model = size_of(tensors, "xlstm_norm.weight", 0);
  if (with_ffn) c.d_ffn = size_of(tensors, "ffn.proj_down.weight", 1);
  if (auto good = c.check(where); !good) return fail(good.error());
  layer.config = c;
  const auto inner = static_cast<std::size_t>(c.d_ffn), d = static_cast<std::size_t>(c.d_model);
  std::map<std::string, Shape> wanted{{"xlstm_norm.weight", {d}}};
  for (const auto& [name, shape] : kCell.shapes(c)) wanted.emplace("xlstm." + name, shape);
  const bool biased = with_ffn && c.proj_bias;
  if (with_ffn) wanted.insert({{"ffn_norm.weight", {d}}, {"ffn.proj_up.weight", {2 * inner, d}}, {"ffn.proj_down.weight", {d, inner}}});
  if (biased) wanted.insert({{"ffn.proj_up.bias", {2 * inner}}, {"ffn.proj_down.bias", {d}}});
  if (auto good = check_published(tensors, wanted, c.architecture, where); !good) return fail(good.error());
  set_ours(layer, [with_ffn, inner, d](const auto& theirs) {
    using namespace autograd;
    std::decay_t<decltype(theirs)> ours;
    const std::string cell = with_ffn ? "0.cell." : "0.";
    for (const auto& [name, var] : theirs.all()) {
      using T = std::decay_t<decltype(var.value()[0])>;
      const auto norm = [&](const std::string& before) {
        const std::vector<T> zeros(d);
        ours.add(before + "norm.bias", var.tape->constant({d}, std::span<const T>(zeros)));
        ours.add(before + "norm.scale", add_scalar(var, T{1}));
      };
      if (name == "xlstm_norm.weight") {
        norm(cell);
      } else if (name == "ffn_norm.weight") {
        norm("0.ffn.");
      } else if (name.starts_with("ffn.proj_up.")) {
        const std::string rest = name.substr(std::string_view("ffn.proj_up").size());
        ours.add("0.ffn.gate_proj" + rest, slice(var, 0, 0, inner));
        ours.add("0.ffn.up_proj" + rest, slice(var, 0, inner, 2 * inner));
      } else if (name.starts_with("ffn.proj_down.")) {
        ours.add("0.ffn.down_proj" + name.substr(std::string_view("ffn.proj_down").size()), var);
      } else if (name.ends_with("norm.weight")) {
        ours.add(cell + name.substr(std::string_view("xlstm.").size()), add_scalar(var, T{1}));
      } else {
        ours.add(cell + name.substr(std::string_view("xlstm.").size()), var);
      }
    }
    return ours;
  });
  return layer;
}

// Ours keeps n as the last column of C: field "....C" or "....n" of it.
std::vector<float> cell_part(const StateBatch& states, const std::string& cell, bool matrix) {
  const Shape& shape = states.layout.find(cell)->shape;
  std::vector<float> all;
  for (std::size_t b = 0; b < states.blocks.size(); ++b) {
    const std::span<const float> values = states.floats(b, cell);
    for (std::size_t row = 0; row < shape[0] * shape[1]; ++row) {
      const std::span<const float> one = values.subspan(row * shape[2], shape[2]);
      if (matrix) {
        all.insert(all.end(), one.begin(), one.end() - 1);
      } else {
        all.push_back(one.back());
      }
    }
  }
  return all;
}

}  // namespace

bool is_published_xlstm(const NamedTensors& tensors) { return tensors.count("backbone.blocks.0.norm_mlstm.weight") != 0; }

Result<PublishedModel> published_xlstm(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  std::map<std::string, std::string> names;
  for (const auto& [published, tensor] : tensors) {
    if (published == "backbone.embeddings.weight" || published == "backbone.embedding.weight") {
      model.embedding = published;
    } else if (published == "lm_head.weight") {
      model.head = published;
    } else if (published.starts_with("backbone.")) {
      names.emplace(published, stack_name(published));
    } else {
      return refused(fmt::format("tensor '{}' belongs to no xLSTM known here", published), where);
    }
  }
  const Json* tied = config.find("tie_word_embeddings");
  if (model.head.empty() && tied != nullptr && tied->is_bool() && tied->boolean()) model.head = model.embedding;
  const double heads = python_number(config.find("num_heads"), 0);
  if (!(heads >= 1 && heads <= 65536)) return refused("num_heads is missing or no whole number", where, "from 1");
  BackboneConfig& c = model.config;
  c.architecture = "xlstm";
  c.norm_eps = python_number(config.find("norm_eps"), 1e-6);
  c.mixer_norm_eps = python_number(config.find("eps"), 1e-6);
  if (const double cap = python_number(config.find("gate_soft_cap"), 15); cap != 15) {
    return refused(fmt::format("gate_soft_cap is {}", cap), where, "15");
  }
  model.logit_cap = python_number(config.find("output_logit_soft_cap"), 0);
  const std::string first = "backbone.blocks.0.";
  c.d_model = size_of(tensors, "backbone.out_norm.weight", 0);
  c.n_layers = 0;
  while (tensors.count(fmt::format("backbone.blocks.{}.norm_mlstm.weight", c.n_layers)) != 0) ++c.n_layers;
  c.n_heads = static_cast<std::int64_t>(heads);
  const std::int64_t fused = size_of(tensors, first + "mlstm_layer.qkv_opreact.weight", 0);
  const std::int64_t keys = fused > 0 ? (fused - 2 * c.d_model) / 2 : size_of(tensors, first + "mlstm_layer.q.weight", 0);
  if (keys < c.n_heads || keys % c.n_heads != 0)
    return refused(fmt::format("keys of a width {} in {} heads", keys, c.n_heads), where, "whole heads");
  c.d_state = keys / c.n_heads;
  c.d_ffn = size_of(tensors, first + "ffn.proj_down.weight", 1);
  if (auto good = c.check(where); !good) return fail(good.error());
  const auto d = static_cast<std::size_t>(c.d_model), inner = static_cast<std::size_t>(c.d_ffn);
  set_ours(model, [names, d, inner, keys = static_cast<std::size_t>(keys), n = static_cast<std::size_t>(heads)](const auto& theirs) {
    const auto taken = renamed(theirs, names);
    std::decay_t<decltype(taken)> ours;
    for (const auto& [name, var] : taken.all()) {
      const std::size_t end = name.rfind('.'), begin = name.rfind('.', end - 1) + 1;
      const std::string part = name.substr(begin, end - begin);
      if (part != "qkv_opreact" && part != "ifgate_preact" && part != "proj_up_gate_z") {
        ours.add(name, var);
        continue;
      }
      std::size_t at = 0;
      for (const Piece& piece : pieces_of(part, keys, d, n, inner)) {
        ours.add(name.substr(0, begin) + piece.name + name.substr(end), autograd::slice(var, 0, at, at + piece.rows));
        at += piece.rows;
      }
    }
    return ours;
  });
  model.state = [](const std::string& field, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (field.ends_with(".m")) return states.all(field);
    if (!field.ends_with(".C") && !field.ends_with(".n")) return std::nullopt;
    return cell_part(states, field.substr(0, field.find('.')) + ".C", field.ends_with(".C"));
  };
  return model;
}

bool is_published_mlstm(const NamedTensors& tensors) { return tensors.count("xlstm.mlstm_cell.igate.weight") != 0; }

Result<PublishedLayer> published_mlstm(const NamedTensors& tensors, const Json&, std::string_view where) {
  BackboneConfig c;
  c.architecture = "mlstm";
  c.d_inner = size_of(tensors, "xlstm.proj_down.weight", 1);
  c.n_heads = size_of(tensors, "xlstm.mlstm_cell.igate.weight", 0);
  c.d_conv = size_of(tensors, "xlstm.conv1d.conv.weight", 2);
  c.qkv_block = size_of(tensors, "xlstm.q_proj.weight", 2);
  c.proj_bias = tensors.count("xlstm.proj_up.bias") != 0;
  auto layer = block_of<kMlstmInner>(c, tensors, where);
  if (!layer) return layer;
  layer->state = [](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name == "state.m" || name == "state.conv") return states.all("layer0." + name.substr(6));
    if (name != "state.C" && name != "state.n") return std::nullopt;
    return cell_part(states, "layer0.C", name == "state.C");
  };
  return layer;
}

bool is_published_slstm(const NamedTensors& tensors) { return tensors.count("xlstm.slstm_cell._recurrent_kernel_") != 0; }

Result<PublishedLayer> published_slstm(const NamedTensors& tensors, const Json&, std::string_view where) {
  BackboneConfig c;
  c.architecture = "slstm";
  c.n_heads = size_of(tensors, "xlstm.slstm_cell._recurrent_kernel_", 0);
  c.slstm_conv = tensors.count("xlstm.conv1d.conv.weight") != 0;
  if (c.slstm_conv) c.d_conv = size_of(tensors, "xlstm.conv1d.conv.weight", 2);
  auto layer = block_of<kSlstm>(c, tensors, where);
  if (!layer) return layer;
  layer->state = [](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (!name.starts_with("state.")) return std::nullopt;
    const std::string field = "layer0." + name.substr(6);
    if (name != "state.conv") return states.all(field);
    // Theirs holds one frame less than ours.
    const Shape& shape = states.layout.find(field)->shape;
    std::vector<float> all;
    for (std::size_t b = 0; b < states.blocks.size(); ++b) {
      const std::span<const float> window = states.floats(b, field).subspan(shape[1]);
      all.insert(all.end(), window.begin(), window.end());
    }
    return all;
  };
  return layer;
}

}  // namespace kizzasi
