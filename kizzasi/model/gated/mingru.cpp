#include "kizzasi/model/gated/mingru.h"

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/gated_scan.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

enum class Form { kGru, kLstm };

constexpr const char* kIn[] = {"to_hidden_and_gate.weight", "to_hidden_and_f_i_gate.weight"};
constexpr const char* kOut = "to_out.weight";
constexpr const char* in_name(Form form) { return kIn[form == Form::kLstm]; }

struct Sizes {
  explicit Sizes(const BackboneConfig& c) : d(static_cast<std::size_t>(c.d_model)), inner(static_cast<std::size_t>(c.inner())) {}
  std::size_t d, inner;
  bool has_out() const { return inner != d; }
  std::size_t projected(Form form) const { return (form == Form::kGru ? 2 : 3) * inner; }
};

// v <- g(v): positive and growing, so that sums of it never cancel.
void positive(std::span<float> v, std::span<float> scratch) noexcept {
  kernels::sigmoid(v, scratch);
  for (std::size_t e = 0; e < v.size(); ++e) v[e] = v[e] >= 0 ? v[e] + 0.5f : scratch[e];
}

template <Form kForm>
class MinGru final : public Layer {
 public:
  MinGru(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c), in_(w.pack(in_name(kForm))), h_at_(layout.add(name + ".h", FieldType::kF32, {s_.inner}, true)) {
    if (s_.has_out()) out_ = w.pack(kOut);
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (s_.projected(kForm) + s_.inner) + s_.inner; }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, s_.projected(kForm)), keep = take.rows(in.rows, s_.inner);
    const std::span<float> one = take.floats(s_.inner);
    kernels::linear(in_, in, {}, projected);
    for (std::size_t r = 0; r < in.rows; ++r) gates(projected.row(r), keep.row(r), one);
    const MatrixSpan x = projected.columns(0, s_.inner);
    const MatrixSpan h = s_.has_out() ? x : out;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      kernels::gated_scan(lane_rows(MatrixView(keep), lanes.size(), i), lane_rows(MatrixView(x), lanes.size(), i),
                          state_floats(lanes[i].state, h_at_, s_.inner), lane_rows(h, lanes.size(), i));
    }
    if (s_.has_out()) kernels::linear(out_, h, {}, out);
  }

 private:
  // row: (v, gates) -> (what enters, ...); keep: the share of the state that stays.
  void gates(std::span<float> row, std::span<float> keep, std::span<float> scratch) const noexcept {
    const std::span<float> v = row.first(s_.inner), gate = row.subspan(s_.inner, s_.inner);
    if constexpr (kForm == Form::kLstm) {
      // F / (F + I) = sigmoid(softplus(-i) - softplus(-f)), which holds where F and I vanish.
      const std::span<float> input = row.subspan(2 * s_.inner, s_.inner);
      for (float& each : gate) each = -each;
      for (float& each : input) each = -each;
      kernels::softplus(gate, gate);
      kernels::softplus(input, input);
      for (std::size_t e = 0; e < s_.inner; ++e) gate[e] -= input[e];
    }
    for (std::size_t e = 0; e < s_.inner; ++e) keep[e] = -gate[e];
    kernels::sigmoid(keep, keep);
    kernels::sigmoid(gate, gate);
    positive(v, scratch);
    for (std::size_t e = 0; e < s_.inner; ++e) v[e] *= gate[e];
  }

  Sizes s_;
  kernels::PackedWeight in_, out_;
  std::size_t h_at_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

template <Form kForm>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{in_name(kForm), {s.projected(kForm), s.d}}};
  if (s.has_out()) all.emplace(kOut, Shape{s.d, s.inner});
  return all;
}

void draw(const BackboneConfig&, std::int64_t, const std::string&, Tensor& tensor, Rng rng) {
  draw_linear(tensor.values, tensor.shape[1], rng);
}

template <Form kForm>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<MinGru<kForm>>(c, w, name, layout);
}

template <typename T, Form kForm>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config);
  const Var<T> projected = linear(x, w.at(prefix + in_name(kForm)));
  const Var<T> v = slice(projected, 2, 0, s.inner);
  Var<T> gate = slice(projected, 2, s.inner, 2 * s.inner);
  if constexpr (kForm == Form::kLstm) {
    const Var<T> input = slice(projected, 2, 2 * s.inner, 3 * s.inner);
    gate = sub(softplus(scale(gate, T{-1})), softplus(scale(input, T{-1})));
  }
  const Var<T> positive = add(relu(v), sigmoid(scale(relu(scale(v, T{-1})), T{-1})));
  const Var<T> h = gated_scan(sigmoid(scale(gate, T{-1})), mul(sigmoid(gate), positive));
  return s.has_out() ? linear(h, w.at(prefix + kOut)) : h;
}

}  // namespace

const LayerKind kMinGruLayer{check, shapes<Form::kGru>, draw, make<Form::kGru>, forward<float, Form::kGru>, forward<double, Form::kGru>};
const LayerKind kMinLstmLayer{
    check, shapes<Form::kLstm>, draw, make<Form::kLstm>, forward<float, Form::kLstm>, forward<double, Form::kLstm>};

}  // namespace kizzasi
