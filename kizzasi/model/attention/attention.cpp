#include "kizzasi/model/attention/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "kizzasi/autograd/attention.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/ring_attention.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

enum class Form { kRotary, kLocal, kPlain };

struct Sizes {
  std::size_t d, heads, kv_heads, width, window, rotated;
  bool in_bias, out_bias;
  double theta;
  Sizes(const BackboneConfig& c, Form form)
      : d(static_cast<std::size_t>(c.d_model)),
        heads(static_cast<std::size_t>(c.n_heads > 0 ? c.n_heads : std::max<std::int64_t>(1, c.d_model / c.head_dim))),
        kv_heads(c.n_kv_heads > 0 ? static_cast<std::size_t>(c.n_kv_heads) : heads),
        width(static_cast<std::size_t>(c.head_dim)),
        window(static_cast<std::size_t>(c.window)),
        rotated(form == Form::kRotary  ? width
                : form == Form::kLocal ? width / 2
                                       : 0),
        in_bias(form == Form::kPlain || (form == Form::kRotary && c.proj_bias)),
        out_bias(form != Form::kRotary || c.proj_bias),
        theta(c.rope_theta) {}
  kernels::RingAttention ring() const {
    return {heads, kv_heads, width, window, static_cast<float>(1 / std::sqrt(static_cast<double>(width)))};
  }
};

template <Form kForm>
class Attention final : public Layer {
 public:
  Attention(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c, kForm), q_(project(w, "q_proj")), k_(project(w, "k_proj")), v_(project(w, "v_proj")), out_(project(w, "o_proj")) {
    frequencies_ = autograd::rotary_frequencies(s_.theta, s_.rotated);
    const kernels::RingAttention ring = s_.ring();
    keys_at_ = layout.add(name + ".keys", FieldType::kF32, {ring.kv_heads, ring.head_dim, ring.window}, true);
    values_at_ = layout.add(name + ".values", FieldType::kF32, {ring.kv_heads, ring.window, ring.head_dim}, true);
    frames_at_ = layout.add(name + ".frames", FieldType::kU64, {1});
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * (s_.heads + 2 * s_.kv_heads) * s_.width + s_.window + s_.rotated;
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan q = take.rows(in.rows, s_.heads * s_.width);
    const MatrixSpan k = take.rows(in.rows, s_.kv_heads * s_.width), v = take.rows(in.rows, s_.kv_heads * s_.width);
    const std::span<float> scores = take.floats(s_.window), turn = take.floats(s_.rotated);
    kernels::linear(q_.weight, in, q_.bias, q);
    kernels::linear(k_.weight, in, k_.bias, k);
    kernels::linear(v_.weight, in, v_.bias, v);
    const kernels::RingAttention ring = s_.ring();
    const std::size_t rows = in.rows / lanes.size();
    for (std::size_t r = 0; r < in.rows; ++r) {
      std::byte* state = lanes[r / rows].state;
      std::uint64_t frames = 0;
      std::memcpy(&frames, state + frames_at_, sizeof frames);
      angles(frames, turn);
      rotate(q.row(r), turn);
      rotate(k.row(r), turn);
      const std::span<float> keys = state_floats(state, keys_at_, ring.cache_size());
      const std::span<float> values = state_floats(state, values_at_, ring.cache_size());
      kernels::ring_store(ring, k.row(r), v.row(r), static_cast<std::size_t>(frames % s_.window), keys, values);
      ++frames;
      std::memcpy(state + frames_at_, &frames, sizeof frames);
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(frames, s_.window));
      kernels::ring_attention(ring, q.row(r), keys, values, count, scores, q.row(r));
    }
    kernels::linear(out_.weight, q, out_.bias, out);
  }

 private:
  struct Projection {
    kernels::PackedWeight weight;
    std::vector<float> bias;
  };
  static Projection project(const LayerWeights& w, const std::string& name) {
    return {pack(w.at(name + ".weight")), w.values_or_none(name + ".bias")};
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
  Projection q_, k_, v_, out_;
  std::vector<double> frequencies_;  // radians a frame
  std::size_t keys_at_ = 0, values_at_ = 0, frames_at_ = 0;
};

template <Form kForm>
Result<void> check(const BackboneConfig& c, std::string_view where) {
  const Sizes s(c, kForm);
  const auto refuse = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (c.n_heads == 0 && c.d_model % c.head_dim != 0) {
    return refuse(fmt::format("d_model {} is no multiple of head_dim {}", c.d_model, c.head_dim), "whole heads, or n_heads");
  }
  if (s.heads % s.kv_heads != 0) {
    return refuse(fmt::format("{} query heads for {} heads of keys", s.heads, s.kv_heads), "a multiple");
  }
  if (s.rotated % 2 != 0) return refuse(fmt::format("{} channels of a head turn", s.rotated), "an even number: another head_dim");
  return {};
}

template <Form kForm>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c, kForm);
  const std::size_t wide = s.heads * s.width, narrow = s.kv_heads * s.width;
  std::map<std::string, Shape> all{
      {"q_proj.weight", {wide, s.d}}, {"k_proj.weight", {narrow, s.d}}, {"v_proj.weight", {narrow, s.d}}, {"o_proj.weight", {s.d, wide}}};
  if (s.in_bias) all.insert({{"q_proj.bias", {wide}}, {"k_proj.bias", {narrow}}, {"v_proj.bias", {narrow}}});
  if (s.out_bias) all.emplace("o_proj.bias", Shape{s.d});
  return all;
}

void draw(const BackboneConfig&, std::int64_t, const std::string&, Tensor& tensor, Rng rng) {
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
  Var<T> q = heads("q_proj", s.heads), k = heads("k_proj", s.kv_heads);
  if (s.rotated > 0) q = rotary(q, s.theta, s.rotated), k = rotary(k, s.theta, s.rotated);
  const Var<T> y = attention(q, k, heads("v_proj", s.kv_heads), s.window);
  return project("o_proj", reshape(y, {batch, time, s.heads * s.width}));
}

template <Form kForm>
constexpr LayerKind kind_of() {
  return {check<kForm>, shapes<kForm>, draw, make<kForm>, forward<float, kForm>, forward<double, kForm>};
}

}  // namespace

const LayerKind kRotaryAttention = kind_of<Form::kRotary>(), kLocalAttention = kind_of<Form::kLocal>(),
                kPlainAttention = kind_of<Form::kPlain>();

}  // namespace kizzasi
