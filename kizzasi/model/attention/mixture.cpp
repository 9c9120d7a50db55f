#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

struct Sizes {
  std::size_t d, inner, shared, experts, used;
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        inner(static_cast<std::size_t>(c.d_expert > 0 ? c.d_expert
                                       : c.d_ffn > 0  ? c.d_ffn
                                                      : (c.d_model * 8 / 3 + 7) / 8 * 8)),
        shared(c.d_shared_expert > 0 ? static_cast<std::size_t>(c.d_shared_expert) : inner),
        experts(static_cast<std::size_t>(c.n_experts)),
        used(static_cast<std::size_t>(c.experts_used)) {}
};

std::string weight_name(std::size_t expert, std::string_view name) { return fmt::format("experts.{}.{}.weight", expert, name); }

// The numbers of the `count` largest scores, the largest first; of equal ones the earlier. order: scratch.
template <typename T>
void highest(std::span<const T> scores, std::size_t count, std::span<std::uint32_t> order) {
  std::iota(order.begin(), order.end(), 0u);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); });
}

// The chosen experts' shares of the softmax over all: divided by their sum (Mixtral; Qwen, with one expert more that every row has), or as
// they are (Jamba). Each has names of its own.
enum class Form { kSumsToOne, kAsRated, kShared };
struct Names {
  std::string_view router, gate, down, up;
};
template <Form kForm>
constexpr Names kNames = kForm == Form::kSumsToOne ? Names{"gate", "w1", "w2", "w3"}
                         : kForm == Form::kAsRated ? Names{"router", "gate_proj", "down_proj", "up_proj"}
                                                   : Names{"gate", "gate_proj", "down_proj", "up_proj"};
constexpr const char *kSharedGate = "shared_expert.gate_proj.weight", *kSharedDown = "shared_expert.down_proj.weight",
                     *kSharedUp = "shared_expert.up_proj.weight", *kSharedShare = "shared_expert_gate.weight";

constexpr std::size_t kMostExperts = 256;

template <Form kForm>
std::string router_name() {
  return std::string(kNames<kForm>.router) + ".weight";
}

template <Form kForm>
class Mixture final : public Layer {
 public:
  Mixture(const BackboneConfig& c, const LayerWeights& w) : s_(c), router_(w.pack(router_name<kForm>())) {
    for (std::size_t e = 0; e < s_.experts; ++e) {
      const auto packed = [&](std::string_view name) { return w.pack(weight_name(e, name)); };
      experts_.push_back({packed(kNames<kForm>.gate), packed(kNames<kForm>.down), packed(kNames<kForm>.up)});
    }
    if constexpr (kForm == Form::kShared) {
      shared_ = {w.pack(kSharedGate), w.pack(kSharedDown), w.pack(kSharedUp)};
      share_ = w.pack(kSharedShare);
    }
  }
  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * (s_.experts + s_.d) + (kForm == Form::kShared ? rows * (2 * s_.shared + s_.d + 1) : 0) + 2 * s_.inner + s_.d;
  }

  void advance(std::span<const Lane>, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan scores = take.rows(in.rows, s_.experts), sums = take.rows(in.rows, s_.d);
    const MatrixSpan gate = take.rows(1, s_.inner), up = take.rows(1, s_.inner), one = take.rows(1, s_.d);
    kernels::linear(router_, in, {}, scores);
    std::array<std::uint32_t, kMostExperts> order{};
    std::array<float, kMostExperts> shares{};
    for (std::size_t r = 0; r < in.rows; ++r) {
      highest<float>(scores.row(r), s_.used, std::span(order).first(s_.experts));
      if (kForm == Form::kAsRated) kernels::softmax(scores.row(r), scores.row(r));
      for (std::size_t i = 0; i < s_.used; ++i) shares[i] = scores.row(r)[order[i]];
      if (kForm != Form::kAsRated) kernels::softmax(std::span(shares).first(s_.used), std::span(shares).first(s_.used));
      std::fill(sums.row(r).begin(), sums.row(r).end(), 0.0f);
      for (std::size_t i = 0; i < s_.used; ++i) {
        const Expert& expert = experts_[order[i]];
        kernels::linear(expert.gate, in.slice(r, 1), {}, gate);
        kernels::linear(expert.up, in.slice(r, 1), {}, up);
        kernels::mul_silu(up.row(0), gate.row(0), up.row(0));
        kernels::linear(expert.down, up, {}, one);
        for (std::size_t c = 0; c < s_.d; ++c) sums.row(r)[c] += shares[i] * one.row(0)[c];
      }
    }
    if constexpr (kForm == Form::kShared) add_shared(in, sums, take);
    for (std::size_t r = 0; r < in.rows; ++r) std::copy_n(sums.row(r).data(), s_.d, out.row(r).data());
  }

 private:
  struct Expert {
    kernels::PackedWeight gate, down, up;
  };

  // The expert of every row, times a share of its own.
  void add_shared(MatrixView in, MatrixSpan sums, Scratch& take) const noexcept {
    const MatrixSpan gate = take.rows(in.rows, s_.shared), up = take.rows(in.rows, s_.shared), y = take.rows(in.rows, s_.d);
    const MatrixSpan share = take.rows(in.rows, 1);
    kernels::linear(shared_.gate, in, {}, gate);
    kernels::linear(shared_.up, in, {}, up);
    for (std::size_t r = 0; r < in.rows; ++r) kernels::mul_silu(up.row(r), gate.row(r), up.row(r));
    kernels::linear(shared_.down, up, {}, y);
    kernels::linear(share_, in, {}, share);
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::sigmoid(share.row(r), share.row(r));
      for (std::size_t c = 0; c < s_.d; ++c) sums.row(r)[c] += share.row(r)[0] * y.row(r)[c];
    }
  }

  Sizes s_;
  kernels::PackedWeight router_;
  std::vector<Expert> experts_;
  Expert shared_;
  kernels::PackedWeight share_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (c.experts_used <= c.n_experts) return {};
  return fail({Fault::kBadUse, fmt::format("{} of {} experts are used", c.experts_used, c.n_experts), std::string(where),
               "experts_used at most n_experts", ""});
}

template <Form kForm>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  const Names& names = kNames<kForm>;
  std::map<std::string, Shape> all{{router_name<kForm>(), {s.experts, s.d}}};
  for (std::size_t e = 0; e < s.experts; ++e) {
    all.emplace(weight_name(e, names.down), Shape{s.d, s.inner});
    for (const std::string_view each : {names.gate, names.up}) all.emplace(weight_name(e, each), Shape{s.inner, s.d});
  }
  if (kForm == Form::kShared) {
    all.insert({{kSharedGate, {s.shared, s.d}}, {kSharedUp, {s.shared, s.d}}, {kSharedDown, {s.d, s.shared}}, {kSharedShare, {1, s.d}}});
  }
  return all;
}

void draw(const BackboneConfig&, std::int64_t, const std::string&, Tensor& tensor, Rng rng) {
  draw_linear(tensor.values, tensor.shape[1], rng);
}

template <Form kForm>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string&, StateLayout&) {
  return std::make_unique<Mixture<kForm>>(c, w);
}

// Every expert sees every row; those that were not chosen have the weight zero.
template <typename T, Form kForm>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config);
  const std::size_t batch = x.dims()[0], time = x.dims()[1];
  const Var<T> scores = linear(x, w.at(prefix + router_name<kForm>()));
  std::vector<T> chosen(scores.value().size());
  std::vector<std::uint32_t> order(s.experts);
  for (std::size_t row = 0; row < batch * time; ++row) {
    highest<T>(scores.value().subspan(row * s.experts, s.experts), s.used, order);
    for (std::size_t i = 0; i < s.used; ++i) chosen[row * s.experts + order[i]] = T{1};
  }
  const Var<T> kept = mul(softmax(scores), x.tape->constant(scores.dims(), std::span<const T>(chosen)));
  Var<T> shares = permute(kept, {2, 0, 1});  // (experts, batch, time)
  if (kForm != Form::kAsRated) shares = div(shares, sum_last(kept));
  Var<T> sum;
  for (std::size_t e = 0; e < s.experts; ++e) {
    const auto project = [&](std::string_view name, Var<T> rows) { return linear(rows, w.at(prefix + weight_name(e, name))); };
    const Names& names = kNames<kForm>;
    const Var<T> y = project(names.down, mul(project(names.up, x), silu(project(names.gate, x))));
    const Var<T> weighted = mul(permute(y, {2, 0, 1}), reshape(slice(shares, 0, e, e + 1), {batch, time}));
    sum = sum.tape == nullptr ? weighted : add(sum, weighted);
  }
  if constexpr (kForm == Form::kShared) {
    const auto weight = [&](const char* name) { return w.at(prefix + name); };
    const Var<T> y = linear(mul(linear(x, weight(kSharedUp)), silu(linear(x, weight(kSharedGate)))), weight(kSharedDown));
    const Var<T> share = reshape(sigmoid(linear(x, weight(kSharedShare))), {batch, time});
    return add(permute(sum, {1, 2, 0}), scale_rows(y, share));
  }
  return permute(sum, {1, 2, 0});
}

template <Form kForm>
constexpr LayerKind kind_of() {
  return {check, shapes<kForm>, draw, make<kForm>, forward<float, kForm>, forward<double, kForm>};
}

}  // namespace

const LayerKind kMixtureOfExperts = kind_of<Form::kSumsToOne>(), kJambaExperts = kind_of<Form::kAsRated>(),
                kQwenExperts = kind_of<Form::kShared>();

}  // namespace kizzasi
