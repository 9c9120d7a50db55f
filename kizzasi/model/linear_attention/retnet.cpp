#include "kizzasi/model/linear_attention/retnet.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/linear_attention/heads.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr std::size_t kMostHeads = 16;  // that of head 20 would be 1 in f32: its sums would grow for ever

struct Sizes : matrix_heads::HeadSizes {
  using HeadSizes::HeadSizes;
  std::size_t projected() const { return 2 * key_width() + 2 * inner; }
  double key_scale() const { return 1 / std::sqrt(static_cast<double>(keys)); }
};

double decay_of(std::size_t head) { return 1 - std::exp2(-5.0 - static_cast<double>(head)); }

// Radians a step of each pair of keys.
std::vector<double> angles(std::size_t keys) {
  const std::size_t pairs = keys / 2;
  std::vector<double> all;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double share = pairs > 1 ? static_cast<double>(i) / static_cast<double>(pairs - 1) : 0.0;
    all.push_back(static_cast<double>(1.0f / static_cast<float>(std::pow(10000.0, share))));
  }
  return all;
}

class RetNet final : public Layer {
 public:
  RetNet(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        epsilon_(static_cast<float>(c.norm_eps)),
        in_(w.pack_together({"q_proj.weight", "k_proj.weight", "v_proj.weight", "g_proj.weight"})),
        out_(w.pack("out_proj.weight")),
        angles_(angles(s_.keys)),
        state_at_(layout.add(name + ".state", FieldType::kF32, {s_.heads, s_.keys, s_.values}, true)),
        scale_at_(layout.add(name + ".scale", FieldType::kF32, {s_.heads})),
        position_at_(layout.add(name + ".position", FieldType::kU64, {1})) {
    for (std::size_t h = 0; h < s_.heads; ++h) decays_.push_back(static_cast<float>(decay_of(h)));
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * s_.projected() + s_.keys; }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, s_.projected());
    const std::span<float> turn = take.floats(s_.keys);
    kernels::linear(in_, in, {}, projected);
    matrix_heads::Columns columns(projected);
    const MatrixSpan q = columns.next(s_.key_width()), k = columns.next(s_.key_width()), y = columns.next(s_.inner),
                     g = columns.next(s_.inner);
    const kernels::LinearAttention retention{s_.heads, s_.keys, s_.values, {}};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan queries = lane_rows(q, lanes.size(), i), keys = lane_rows(k, lanes.size(), i), v = lane_rows(y, lanes.size(), i);
      turn_rows(lanes[i], queries, keys, turn);
      kernels::linear_attention(retention, queries, keys, v, {decays_.data(), 1, s_.heads},
                                state_floats(lanes[i].state, state_at_, s_.state()), v);
      scale_rows(lanes[i], v);
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::rms_norm_groups(y.row(r), s_.heads, {}, epsilon_, y.row(r));
      kernels::mul_silu(y.row(r), g.row(r), y.row(r));
    }
    kernels::linear(out_, y, {}, out);
  }

 private:
  // turn: (cos, sin) of each pair. In double: a position may be large.
  void turn_rows(const Lane& lane, MatrixSpan q, MatrixSpan k, std::span<float> turn) const noexcept {
    std::uint64_t position = 0;
    std::memcpy(&position, lane.state + position_at_, sizeof(position));
    for (std::size_t r = 0; r < q.rows; ++r, ++position) {
      for (std::size_t i = 0; i < angles_.size(); ++i) {
        const double angle = angles_[i] * static_cast<double>(position);
        turn[2 * i] = static_cast<float>(std::cos(angle));
        turn[2 * i + 1] = static_cast<float>(std::sin(angle));
      }
      matrix_heads::scale(k.row(r), static_cast<float>(s_.key_scale()));
      for (float* x : {q.row(r).data(), k.row(r).data()}) {
        for (std::size_t n = 0; n < s_.key_width(); n += 2) {
          const float cos = turn[n % s_.keys], sin = turn[n % s_.keys + 1], even = x[n], odd = x[n + 1];
          x[n] = even * cos - odd * sin;
          x[n + 1] = odd * cos + even * sin;
        }
      }
    }
    std::memcpy(lane.state + position_at_, &position, sizeof(position));
  }

  void scale_rows(const Lane& lane, MatrixSpan o) const noexcept {
    const std::span<float> scale = state_floats(lane.state, scale_at_, s_.heads);
    for (std::size_t r = 0; r < o.rows; ++r) {
      for (std::size_t h = 0; h < s_.heads; ++h) {
        scale[h] = scale[h] * decays_[h] + 1;
        matrix_heads::scale(o.row(r).subspan(h * s_.values, s_.values), 1 / std::sqrt(scale[h]));
      }
    }
  }

  Sizes s_;
  float epsilon_;
  kernels::PackedWeight in_, out_;
  std::vector<double> angles_;
  std::vector<float> decays_;
  std::size_t state_at_, scale_at_, position_at_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (auto good = matrix_heads::check_heads(c, where); !good) return good;
  if (c.d_state % 2 != 0) {
    return fail(
        {Fault::kBadUse, fmt::format("d_state is {}, but keys are turned in pairs", c.d_state), std::string(where), "an even d_state", ""});
  }
  if (const std::size_t heads = Sizes(c).heads; heads > kMostHeads) {
    return fail({Fault::kBadUse, fmt::format("{} heads, of which the last would never forget", heads), std::string(where),
                 fmt::format("at most {} heads of head_dim in the inner width", kMostHeads), "Make head_dim larger."});
  }
  return {};
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  return {{"q_proj.weight", {s.key_width(), s.d}},
          {"k_proj.weight", {s.key_width(), s.d}},
          {"v_proj.weight", {s.inner, s.d}},
          {"g_proj.weight", {s.inner, s.d}},
          {"out_proj.weight", {s.d, s.inner}}};
}

// Glorot's uniform law with the published gains.
void draw(const BackboneConfig&, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const double gain = name == "out_proj.weight" ? 0.5 : std::exp2(-2.5);
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(tensor.shape[0] + tensor.shape[1]));
  draw_uniform(tensor.values, -bound, bound, rng);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<RetNet>(c, w, name, layout);
}

// x (batch, time, heads, keys) turned by its positions; cos, sin: (time, heads, keys).
template <typename T>
autograd::Var<T> turned(autograd::Var<T> x, autograd::Var<T> cos, autograd::Var<T> sin) {
  using namespace autograd;
  const Dims dims = x.dims();
  const std::size_t pairs = dims.back() / 2;
  const Var<T> split = reshape(x, {dims[0], dims[1], dims[2], pairs, 2});
  const Var<T> swapped[] = {scale(slice(split, 4, 1, 2), T{-1}), slice(split, 4, 0, 1)};
  return add(mul(x, cos), mul(reshape(concat(std::span<const Var<T>>(swapped), 4), dims), sin));
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config);
  Tape<T>& tape = *x.tape;
  const std::size_t batch = x.dims()[0], time = x.dims()[1];
  const Dims keys{batch, time, s.heads, s.keys}, values{batch, time, s.heads, s.values};
  const auto projected = [&](const char* name) { return linear(x, w.at(prefix + name)); };

  std::vector<T> decays, cos, sin, inverse(batch * time * s.heads);
  for (std::size_t h = 0; h < s.heads; ++h) decays.push_back(static_cast<T>(decay_of(h)));
  const std::vector<double> angle = angles(s.keys);
  for (std::size_t t = 0; t < time; ++t) {
    for (std::size_t n = 0; n < s.key_width(); ++n) {
      if (n >= s.keys) {  // every head turns alike
        cos.push_back(cos[cos.size() - s.keys]);
        sin.push_back(sin[sin.size() - s.keys]);
        continue;
      }
      const double turn = angle[n / 2] * static_cast<double>(t);
      cos.push_back(static_cast<T>(std::cos(turn)));
      sin.push_back(static_cast<T>(std::sin(turn)));
    }
  }
  std::vector<T> sums(s.heads);
  for (std::size_t t = 0; t < time; ++t) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      sums[h] = sums[h] * decays[h] + 1;
      for (std::size_t b = 0; b < batch; ++b) inverse[(b * time + t) * s.heads + h] = 1 / std::sqrt(sums[h]);
    }
  }
  const auto constant = [&](Dims dims, const std::vector<T>& of) { return tape.constant(dims, std::span<const T>(of)); };
  const Var<T> cosines = constant({time, s.heads, s.keys}, cos), sines = constant({time, s.heads, s.keys}, sin);

  const Var<T> q = turned(reshape(projected("q_proj.weight"), keys), cosines, sines);
  const Var<T> k = turned(reshape(scale(projected("k_proj.weight"), static_cast<T>(s.key_scale())), keys), cosines, sines);
  const Var<T> o = linear_attention(q, k, reshape(projected("v_proj.weight"), values), constant({s.heads}, decays));
  const Var<T> normal = rms_norm(scale_rows(o, constant({batch, time, s.heads}, inverse)), Var<T>{}, static_cast<T>(config.norm_eps));
  return linear(mul(reshape(normal, {batch, time, s.inner}), silu(projected("g_proj.weight"))), w.at(prefix + "out_proj.weight"));
}

}  // namespace

const LayerKind kRetNetLayer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
