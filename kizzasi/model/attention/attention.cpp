#include "kizzasi/model/attention/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "kizzasi/autograd/attention.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/kernels/ring_attention.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

enum class Form { kRotary, kGated, kUnplaced, kLocal, kPlain };

// Channels of a head: hybrids tell those of attention apart from those of their other layers.
std::int64_t width_of(const BackboneConfig& c) { return c.attention_head_dim > 0 ? c.attention_head_dim : c.head_dim; }

std::size_t rotated_of(const BackboneConfig& c, Form form) {
  const auto width = static_cast<std::size_t>(width_of(c));
  if (form == Form::kLocal) return width / 2;
  if (form == Form::kPlain || form == Form::kUnplaced) return 0;
  return static_cast<std::size_t>(std::lround(static_cast<double>(width) * c.rope_fraction));
}

struct Sizes {
  std::size_t d, heads, kv_heads, width, window, rotated;
  bool in_bias, out_bias;
  double theta;
  Sizes(const BackboneConfig& c, Form form)
      : d(static_cast<std::size_t>(c.d_model)),
        heads(static_cast<std::size_t>(c.n_heads > 0 ? c.n_heads : std::max<std::int64_t>(1, c.d_model / width_of(c)))),
        kv_heads(c.n_kv_heads > 0 ? static_cast<std::size_t>(c.n_kv_heads) : heads),
        width(static_cast<std::size_t>(width_of(c))),
        window(static_cast<std::size_t>(c.window)),
        rotated(rotated_of(c, form)),
        in_bias(form == Form::kPlain || (form != Form::kLocal && c.proj_bias)),
        out_bias(form == Form::kPlain || form == Form::kLocal || c.proj_bias),
        theta(c.rope_theta) {}
  kernels::RingAttention ring() const {
    return {heads, kv_heads, width, window, static_cast<float>(1 / std::sqrt(static_cast<double>(width)))};
  }
};

template <Form kForm>
class Attention final : public Layer {
 public:
  Attention(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c, kForm), k_(project(w, "k_proj")), v_(project(w, "v_proj")), out_(project(w, "o_proj")) {
    if constexpr (kForm == Form::kGated) {
      q_ = half_of_heads(w, 0);
      gate_ = half_of_heads(w, 1);
      q_gain_ = w.at("q_norm.weight").values;
      k_gain_ = w.at("k_norm.weight").values;
      norm_epsilon_ = static_cast<float>(c.norm_eps);
    } else {
      q_ = project(w, "q_proj");
    }
    frequencies_ = autograd::rotary_frequencies(s_.theta, s_.rotated);
    const kernels::RingAttention ring = s_.ring();
    keys_at_ = layout.add(name + ".keys", FieldType::kF32, {ring.kv_heads, ring.head_dim, ring.window}, true);
    values_at_ = layout.add(name + ".values", FieldType::kF32, {ring.kv_heads, ring.window, ring.head_dim}, true);
    frames_at_ = layout.add(name + ".frames", FieldType::kU64, {1});
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * ((kForm == Form::kGated ? 2 : 1) * s_.heads + 2 * s_.kv_heads) * s_.width + s_.window + s_.rotated;
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan q = take.rows(in.rows, s_.heads * s_.width);
    const MatrixSpan k = take.rows(in.rows, s_.kv_heads * s_.width), v = take.rows(in.rows, s_.kv_heads * s_.width);
    const std::span<float> scores = take.floats(s_.window), turn = take.floats(s_.rotated);
    kernels::linear(q_.weight, in, q_.bias, q);
    kernels::linear(k_.weight, in, k_.bias, k);
    kernels::linear(v_.weight, in, v_.bias, v);
    const MatrixSpan gate = kForm == Form::kGated ? take.rows(in.rows, s_.heads * s_.width) : MatrixSpan();
    if constexpr (kForm == Form::kGated) kernels::linear(gate_.weight, in, gate_.bias, gate);
    const kernels::RingAttention ring = s_.ring();
    const std::size_t rows = in.rows / lanes.size();
    for (std::size_t r = 0; r < in.rows; ++r) {
      std::byte* state = lanes[r / rows].state;
      std::uint64_t frames = 0;
      std::memcpy(&frames, state + frames_at_, sizeof frames);
      angles(frames, turn);
      if constexpr (kForm == Form::kGated) {
        norm(q.row(r), q_gain_);
        norm(k.row(r), k_gain_);
      }
      rotate(q.row(r), turn);
      rotate(k.row(r), turn);
      const std::span<float> keys = state_floats(state, keys_at_, ring.cache_size());
      const std::span<float> values = state_floats(state, values_at_, ring.cache_size());
      kernels::ring_store(ring, k.row(r), v.row(r), static_cast<std::size_t>(frames % s_.window), keys, values);
      ++frames;
      std::memcpy(state + frames_at_, &frames, sizeof frames);
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(frames, s_.window));
      kernels::ring_attention(ring, q.row(r), keys, values, count, scores, q.row(r));
      if constexpr (kForm == Form::kGated) {
        kernels::sigmoid(gate.row(r), gate.row(r));
        for (std::size_t c = 0; c < q.cols; ++c) q.row(r)[c] *= gate.row(r)[c];
      }
    }
    kernels::linear(out_.weight, q, out_.bias, out);
  }

 private:
  struct Projection {
    kernels::PackedWeight weight;
    std::vector<float> bias;
  };
  static Projection project(const LayerWeights& w, const std::string& name) {
    return {w.pack(name + ".weight"), w.values_or_none(name + ".bias")};
  }

  // Of q_proj whose heads hold queries and then gates: the rows of the one or of the other.
  Projection half_of_heads(const LayerWeights& w, std::size_t half) const {
    const std::vector<float>&weight = w.at("q_proj.weight").values, bias = w.values_or_none("q_proj.bias");
    std::vector<float> rows, terms;
    for (std::size_t h = 0; h < s_.heads; ++h) {
      const auto first = static_cast<std::ptrdiff_t>((2 * h + half) * s_.width), last = first + static_cast<std::ptrdiff_t>(s_.width);
      const auto d = static_cast<std::ptrdiff_t>(s_.d);
      rows.insert(rows.end(), weight.begin() + first * d, weight.begin() + last * d);
      if (!bias.empty()) terms.insert(terms.end(), bias.begin() + first, bias.begin() + last);
    }
    return {w.pack_made(rows, s_.heads * s_.width, {"q_proj.weight"}), std::move(terms)};
  }

  void norm(std::span<float> row, std::span<const float> gain) const noexcept {
    for (std::size_t at = 0; at < row.size(); at += s_.width) {
      const std::span<float> head = row.subspan(at, s_.width);
      kernels::rms_norm(head, gain, norm_epsilon_, head);
    }
  }

  // Cosines, then sines. The angle in double: it grows for ever, and only differences matter.
  void angles(std::uint64_t frame, std::span<float> turn) const noexcept {
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
      const double angle = static_cast<double>(frame) * frequencies_[i];
      turn[i] = static_cast<float>(std::cos(angle));
      turn[i + frequencies_.size()] = static_cast<float>(std::sin(angle));
    }
  }
  void rotate(std::span<float> row, std::span<const float> turn) const noexcept {
    const std::size_t half = frequencies_.size();
    for (std::size_t at = 0; at < row.size() && half > 0; at += s_.width) {
      for (std::size_t i = 0; i < half; ++i) {
        const float a = row[at + i], b = row[at + half + i];
        row[at + i] = a * turn[i] - b * turn[half + i];
        row[at + half + i] = b * turn[i] + a * turn[half + i];
      }
    }
  }

  Sizes s_;
  Projection q_, k_, v_, gate_, out_;
  std::vector<float> q_gain_, k_gain_;
  float norm_epsilon_ = 0;
  std::vector<double> frequencies_;  // radians a frame
  std::size_t keys_at_ = 0, values_at_ = 0, frames_at_ = 0;
};

template <Form kForm>
Result<void> check(const BackboneConfig& c, std::string_view where) {
  const Sizes s(c, kForm);
  const auto refuse = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (c.n_heads == 0 && c.d_model % width_of(c) != 0) {
    return refuse(fmt::format("d_model {} is no multiple of {}, the channels of a head", c.d_model, width_of(c)),
                  "whole heads, or n_heads");
  }
  if (s.heads % s.kv_heads != 0) {
    return refuse(fmt::format("{} query heads for {} heads of keys", s.heads, s.kv_heads), "a multiple");
  }
  if (s.rotated % 2 != 0) {
    return refuse(fmt::format("{} of {} channels of a head turn", s.rotated, s.width), "an even number: another head_dim or rope_fraction");
  }
  return {};
}

template <Form kForm>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c, kForm);
  const std::size_t wide = s.heads * s.width, narrow = s.kv_heads * s.width;
  const std::size_t asked = kForm == Form::kGated ? 2 * wide : wide;
  std::map<std::string, Shape> all{
      {"q_proj.weight", {asked, s.d}}, {"k_proj.weight", {narrow, s.d}}, {"v_proj.weight", {narrow, s.d}}, {"o_proj.weight", {s.d, wide}}};
  if (s.in_bias) all.insert({{"q_proj.bias", {asked}}, {"k_proj.bias", {narrow}}, {"v_proj.bias", {narrow}}});
  if (s.out_bias) all.emplace("o_proj.bias", Shape{s.d});
  if (kForm == Form::kGated) all.insert({{"q_norm.weight", {s.width}}, {"k_norm.weight", {s.width}}});
  return all;
}

void draw(const BackboneConfig&, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  if (name.ends_with("norm.weight")) std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  if (tensor.shape.size() == 2) draw_linear(tensor.values, tensor.shape[1], rng);  // biases start at zero
}

template <Form kForm>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Attention<kForm>>(c, w, name, layout);
}

template <typename T, Form kForm>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config, kForm);
  const std::size_t batch = x.dims()[0], time = x.dims()[1];
  const auto project = [&](const std::string& name, Var<T> rows) {
    const std::string bias = prefix + name + ".bias";
    return linear(rows, w.at(prefix + name + ".weight"), w.has(bias) ? w.at(bias) : Var<T>{});
  };
  const auto heads = [&](const char* name, std::size_t count) { return reshape(project(name, x), {batch, time, count, s.width}); };
  Var<T> q, gate, k = heads("k_proj", s.kv_heads);
  if constexpr (kForm == Form::kGated) {
    const Var<T> both = reshape(project("q_proj", x), {batch, time, s.heads, 2 * s.width});
    const auto normed = [&](Var<T> rows, const char* gain) { return rms_norm(rows, w.at(prefix + gain), static_cast<T>(config.norm_eps)); };
    q = normed(slice(both, 3, 0, s.width), "q_norm.weight");
    k = normed(k, "k_norm.weight");
    gate = sigmoid(slice(both, 3, s.width, 2 * s.width));
  } else {
    q = heads("q_proj", s.heads);
  }
  if (s.rotated > 0) q = rotary(q, s.theta, s.rotated), k = rotary(k, s.theta, s.rotated);
  Var<T> y = attention(q, k, heads("v_proj", s.kv_heads), s.window);
  if constexpr (kForm == Form::kGated) y = mul(y, gate);
  return project("o_proj", reshape(y, {batch, time, s.heads * s.width}));
}

template <Form kForm>
constexpr LayerKind kind_of() {
  return {check<kForm>, shapes<kForm>, draw, make<kForm>, forward<float, kForm>, forward<double, kForm>};
}

}  // namespace

const LayerKind kRotaryAttention = kind_of<Form::kRotary>(), kGatedAttention = kind_of<Form::kGated>(),
                kUnplacedAttention = kind_of<Form::kUnplaced>(), kLocalAttention = kind_of<Form::kLocal>(),
                kPlainAttention = kind_of<Form::kPlain>();

}  // namespace kizzasi
