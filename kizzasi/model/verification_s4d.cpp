#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <complex>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/s4d.h"
#include "kizzasi/model/verification_lines.h"

namespace kizzasi::verification {
namespace {

using autograd::Dims;
using autograd::Var;
using kernels::MatrixSpan;
using kernels::MatrixView;

// The weights of S4Block as those of our layer: -A_imag for A_imag, C B for C.
template <typename T>
WeightVars<T> layer_weights(const PublishedS4d& layer, const WeightVars<T>& published) {
  if (!layer.block) return published;
  using namespace autograd;
  const auto d = static_cast<std::size_t>(layer.config.d_model), n = static_cast<std::size_t>(layer.config.d_state / 2);
  const Var<T> b = reshape(published.at("layer.kernel.B"), {d, n, 2}), c = reshape(published.at("layer.kernel.C"), {d, n, 2});
  const Var<T> br = slice(b, 2, 0, 1), bi = slice(b, 2, 1, 2), cr = slice(c, 2, 0, 1), ci = slice(c, 2, 1, 2);
  const std::array<Var<T>, 2> product{sub(mul(cr, br), mul(ci, bi)), add(mul(cr, bi), mul(ci, br))};
  WeightVars<T> ours;
  ours.add("kernel.log_dt", reshape(published.at("layer.kernel.inv_dt"), {d}));
  ours.add("kernel.log_A_real", published.at("layer.kernel.A_real"));
  ours.add("kernel.A_imag", scale(published.at("layer.kernel.A_imag"), T{-1}));
  ours.add("kernel.C", concat(std::span<const Var<T>>(product), 2));
  ours.add("D", reshape(published.at("layer.D"), {d}));
  ours.add("output_linear.0.weight", reshape(published.at("output_linear.0.weight"), {2 * d, d, 1}));
  ours.add("output_linear.0.bias", published.at("output_linear.0.bias"));
  return ours;
}

class S4dCase {
 public:
  S4dCase(const PublishedS4d& layer, const NamedTensors& published, Shape shape, Lines& lines)
      : layer_(layer), published_(published), batch_(shape[0]), time_(shape[1]), d_(shape[2]), lines_(lines) {
    autograd::Tape<double> tape;
    const WeightVars<double> vars = layer_weights(layer, weight_leaves(tape, published));
    for (const auto& [name, var] : vars.all()) {
      Tensor tensor(Shape(var.dims().begin(), var.dims().end()));
      for (std::size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = static_cast<float>(var.value()[i]);
      weights_.emplace(name, std::move(tensor));
    }
    made_ = kS4dLayer.make(layer.config, {weights_, ""}, "layer0", layout_);
    lines.used("input");
  }

  void compare_inference(std::size_t split_at) {
    std::vector<State> states;
    const std::vector<float> whole = outputs({time_}, 1.0f, &states);
    lines_.compare("output", "run", whole);
    lines_.compare("output_f64", "run", whole);
    lines_.compare("state", "run", published_state(states));
    states.clear();
    const std::vector<float> stepped = outputs(std::vector<std::size_t>(time_, 1), 1.0f, &states);
    lines_.compare("output", "step", stepped);
    lines_.compare("output_step", "step", stepped);
    lines_.compare("state_step", "step", published_state(states));
    if (split_at <= time_) lines_.compare("output_split", "run", outputs({split_at, time_ - split_at}, 1.0f));
    for (const auto& [name, tensor] : lines_.io().tensors) {
      constexpr std::string_view kRate = "output_rate_";
      float rate = 0;
      if (!name.starts_with(kRate)) continue;
      const auto [end, fault] = std::from_chars(name.data() + kRate.size(), name.data() + name.size(), rate);
      if (fault == std::errc{} && end == name.data() + name.size()) lines_.compare(name, "run", outputs({time_}, rate));
    }
    lines_.compare("kernel", "closed form", kernel());
  }

  template <typename T>
  void compare_forward() {
    autograd::Tape<T> tape;
    const WeightVars<T> leaves = weight_leaves(tape, published_);
    const std::vector<T> rows(input().begin(), input().end());
    const Var<T> x = tape.leaf({batch_, time_, d_}, std::span<const T>(rows));
    const LayerForward<T> forward = forward_of<T>();
    const Var<T> output = forward(layer_.config, layer_weights(layer_, leaves), "", x);
    lines_.compare("output", kForwardPath<T>, output.value());
    const auto cotangent = lines_.io().tensors.find("cotangent");
    if (cotangent == lines_.io().tensors.end() || cotangent->second.values.size() != output.value().size()) return;
    lines_.used("cotangent");
    const std::vector<T> seed(cotangent->second.values.begin(), cotangent->second.values.end());
    tape.backward(output, std::span<const T>(seed));
    lines_.compare("grad.input", kForwardPath<T>, tape.grad(x));
    for (const auto& [name, leaf] : leaves.all()) lines_.compare("grad." + name, kForwardPath<T>, tape.grad(leaf));
  }

 private:
  template <typename T>
  static LayerForward<T> forward_of() {
    if constexpr (std::is_same_v<T, double>)
      return kS4dLayer.forward64;
    else
      return kS4dLayer.forward;
  }
  const std::vector<float>& input() const { return lines_.io().tensors.at("input").values; }

  std::vector<float> outputs(const std::vector<std::size_t>& pieces, float dt, std::vector<State>* states = nullptr) const {
    std::vector<float> out(batch_ * time_ * d_), scratch(made_->scratch_floats(time_));
    for (std::size_t b = 0; b < batch_; ++b) {
      State state(layout_.bytes());
      const Lane lane{state.data(), dt};
      std::size_t at = b * time_;
      for (const std::size_t n : pieces) {
        made_->advance({&lane, 1}, MatrixView(input().data() + at * d_, n, d_), MatrixSpan(out.data() + at * d_, n, d_), scratch);
        at += n;
      }
      if (states != nullptr) states->push_back(std::move(state));
    }
    return out;
  }

  struct Element {
    std::complex<double> a, b, weight;  // discretised, and C of our layer
  };
  Element element(std::size_t e, std::size_t n) const {
    const std::size_t states = layout_.fields().front().shape[1], i = e * states + n;
    const auto at = [&](const char* name, std::size_t k) { return static_cast<double>(weights_.at(name).values[k]); };
    const std::complex<double> lambda(-std::exp(at("kernel.log_A_real", i)), at("kernel.A_imag", i));
    const auto d = autograd::discretize(discretization_of(layer_.config), lambda, std::exp(at("kernel.log_dt", e)));
    return {d.a, d.b, {at("kernel.C", 2 * i), at("kernel.C", 2 * i + 1)}};
  }

  // (batch, d, states, re/im). S4Block keeps the discretised B in its state, s4d.py in C, as we do.
  std::vector<float> published_state(const std::vector<State>& states) const {
    const StateField& field = layout_.fields().front();
    const std::size_t n_states = field.shape[1], plane = n_states * d_;
    std::vector<float> out;
    for (const State& state : states) {
      const auto* values = reinterpret_cast<const float*>(state.data() + field.offset);
      for (std::size_t e = 0; e < d_; ++e) {
        for (std::size_t n = 0; n < n_states; ++n) {
          std::complex<double> s(values[n * d_ + e], values[plane + n * d_ + e]);
          if (layer_.block) {
            const auto& b = published_.at("layer.kernel.B").values;
            const std::size_t i = 2 * (e * n_states + n);
            s *= element(e, n).b * std::complex<double>(b[i], b[i + 1]);
          }
          out.push_back(static_cast<float>(s.real()));
          out.push_back(static_cast<float>(s.imag()));
        }
      }
    }
    return out;
  }

  // (d, time): 2 Re sum C b a^l, the answer to an impulse without D.
  std::vector<float> kernel() const {
    const std::size_t n_states = layout_.fields().front().shape[1];
    std::vector<float> out;
    for (std::size_t e = 0; e < d_; ++e) {
      for (std::size_t l = 0; l < time_; ++l) {
        double sum = 0;
        for (std::size_t n = 0; n < n_states; ++n) {
          const Element x = element(e, n);
          sum += 2 * (x.weight * x.b * std::pow(x.a, static_cast<double>(l))).real();
        }
        out.push_back(static_cast<float>(sum));
      }
    }
    return out;
  }

  const PublishedS4d& layer_;
  const NamedTensors& published_;
  std::size_t batch_, time_, d_;
  Lines& lines_;
  NamedTensors weights_;  // under the names of our layer
  StateLayout layout_;
  std::unique_ptr<Layer> made_;
};

}  // namespace

Result<void> verify_s4d(const PublishedS4d& layer, const NamedTensors& published, const Json& description, Lines& lines) {
  const auto shape = three_axes(lines, "input");
  if (!shape) return fail(shape.error());
  if ((*shape)[2] != static_cast<std::size_t>(layer.config.d_model)) {
    return fail({Fault::kBadInput, "vectors of another width than d_model", "reference tensor 'input'", "", ""});
  }
  const Json* split = description.find("split_at");
  const bool known = split != nullptr && split->is_integer() && split->integer() >= 0;
  S4dCase the_case(layer, published, *shape, lines);
  the_case.compare_inference(known ? static_cast<std::size_t>(split->integer()) : (*shape)[1] / 2);
  the_case.compare_forward<float>();
  the_case.compare_forward<double>();
  return {};
}

}  // namespace kizzasi::verification
