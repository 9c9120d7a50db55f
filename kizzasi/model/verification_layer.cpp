#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/verification_lines.h"

namespace kizzasi::verification {
namespace {

using autograd::Var;
using kernels::MatrixSpan;
using kernels::MatrixView;

// A chain of lone layers beside the reference, path by path.
class LayerCase {
 public:
  LayerCase(const PublishedLayer& layer, const NamedTensors& published, Shape shape, Lines& lines)
      : layer_(layer),
        published_(published),
        batch_(shape[0]),
        time_(shape[1]),
        inputs_(shape[2]),
        d_(static_cast<std::size_t>(layer.config.d_model)),
        lines_(lines) {
    weights_ = taken_over(published, layer.ours64);
    for (std::size_t i = 0; i < layer.layers && layer.streams; ++i) {
      made_.push_back(layer.kind->make(layer.config, {weights_, fmt::format("{}.", i)}, fmt::format("layer{}", i), layout_));
    }
    input_.resize(batch_ * time_ * d_);
    const std::vector<float>& given = lines.io().tensors.at("input").values;
    for (std::size_t row = 0; row < batch_ * time_; ++row) {
      std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(row * inputs_), inputs_,
                  input_.begin() + static_cast<std::ptrdiff_t>(row * d_));
    }
    lines.used("input");
  }

  void compare_inference(std::size_t split_at) {
    std::vector<StateBlock> whole, stepped;
    const std::vector<float> run = outputs({time_}, 1.0f, &whole), step = outputs(std::vector<std::size_t>(time_, 1), 1.0f, &stepped);
    lines_.compare("output", "run", run);
    lines_.compare("output_f64", "run", run);
    lines_.compare("output", "step", step);
    lines_.compare("output_step", "step", step);
    lines_.compare("output_chunkwise", "run", run);
    if (split_at <= time_) lines_.compare("output_split", "run", outputs({split_at, time_ - split_at}, 1.0f));
    constexpr std::string_view kAtSplit = "_at_split";
    std::vector<StateBlock> first_part;
    if (split_at <= time_) outputs({split_at}, 1.0f, &first_part);
    for (const auto& [name, tensor] : lines_.io().tensors) {
      if (name.ends_with(kAtSplit) && !first_part.empty()) {
        const auto ours = layer_.state(name.substr(0, name.size() - kAtSplit.size()), {layout_, first_part});
        if (ours) lines_.compare(name, "run", *ours);
        continue;
      }
      const bool by_step = name.ends_with("_step");
      if (const auto ours = layer_.state(name, {layout_, by_step ? stepped : whole})) lines_.compare(name, by_step ? "step" : "run", *ours);
    }
    compare_other_rates();
  }

  void compare_derived() {
    if (!layer_.derived) return;
    for (const auto& [name, tensor] : lines_.io().tensors) {
      if (const auto ours = layer_.derived(name, time_)) lines_.compare(name, "closed form", *ours);
    }
  }

  template <typename T>
  void compare_forward() {
    autograd::Tape<T> tape;
    const WeightVars<T> leaves = weight_leaves(tape, published_);
    const std::vector<float>& given = lines_.io().tensors.at("input").values;
    const Var<T> x = tape.leaf({batch_, time_, inputs_}, std::span<const T>(std::vector<T>(given.begin(), given.end())));
    Var<T> y = widened(x);
    const WeightVars<T> weights = ours(leaves);
    for (std::size_t i = 0; i < layer_.layers; ++i) y = forward<T>()(layer_.config, weights, fmt::format("{}.", i), y);
    lines_.compare("output", kForwardPath<T>, y.value());
    const auto cotangent = lines_.io().tensors.find("cotangent");
    if (cotangent == lines_.io().tensors.end() || cotangent->second.values.size() != y.value().size()) return;
    lines_.used("cotangent");
    const std::vector<T> seed(cotangent->second.values.begin(), cotangent->second.values.end());
    tape.backward(y, std::span<const T>(seed));
    lines_.compare("grad.input", kForwardPath<T>, tape.grad(x));
    for (const auto& [name, leaf] : leaves.all()) lines_.compare("grad." + name, kForwardPath<T>, tape.grad(leaf));
  }

 private:
  WeightVars<float> ours(const WeightVars<float>& published) const { return layer_.ours(published); }
  WeightVars<double> ours(const WeightVars<double>& published) const { return layer_.ours64(published); }
  template <typename T>
  LayerForward<T> forward() const {
    if constexpr (std::is_same_v<T, double>) {
      return layer_.kind->forward64;
    } else {
      return layer_.kind->forward;
    }
  }
  template <typename T>
  Var<T> widened(Var<T> x) const {
    if (inputs_ == d_) return x;
    const std::vector<T> zeros(batch_ * time_ * (d_ - inputs_));
    const std::array<Var<T>, 2> parts{x, x.tape->constant({batch_, time_, d_ - inputs_}, zeros)};
    return concat(std::span<const Var<T>>(parts), 2);
  }

  // output_rate_0.5: the same weights on frames half as far apart.
  void compare_other_rates() {
    constexpr std::string_view kRate = "output_rate_";
    for (const auto& [name, tensor] : lines_.io().tensors) {
      float rate = 0;
      if (!name.starts_with(kRate)) continue;
      const auto [end, fault] = std::from_chars(name.data() + kRate.size(), name.data() + name.size(), rate);
      if (fault == std::errc{} && end == name.data() + name.size()) lines_.compare(name, "run", outputs({time_}, rate));
    }
  }

  // Each stream of the batch fed in these pieces, from reset state.
  std::vector<float> outputs(const std::vector<std::size_t>& pieces, float dt, std::vector<StateBlock>* states = nullptr) const {
    std::vector<float> out = input_, scratch;
    for (const auto& layer : made_) scratch.resize(std::max(scratch.size(), layer->scratch_floats(time_)));
    for (std::size_t b = 0; b < batch_; ++b) {
      StateBlock state(layout_.bytes());
      const Lane lane{state.data(), dt};
      std::size_t at = b * time_;
      for (const std::size_t n : pieces) {
        const MatrixSpan rows(out.data() + at * d_, n, d_);
        for (const auto& layer : made_) layer->advance({&lane, 1}, rows, rows, scratch);
        at += n;
      }
      if (states != nullptr) states->push_back(std::move(state));
    }
    return out;
  }

  const PublishedLayer& layer_;
  const NamedTensors& published_;
  std::size_t batch_, time_, inputs_, d_;
  Lines& lines_;
  std::vector<float> input_;  // (batch, time, d), zeros beyond the inputs
  NamedTensors weights_;      // under the names of our layers
  StateLayout layout_;
  std::vector<std::unique_ptr<Layer>> made_;
};

}  // namespace

Result<void> verify_layer(const PublishedLayer& layer, const NamedTensors& published, Lines& lines) {
  const auto shape = three_axes(lines, "input");
  if (!shape) return fail(shape.error());
  if ((*shape)[2] > static_cast<std::size_t>(layer.config.d_model)) {
    return fail({Fault::kBadInput, "vectors wider than d_model", "reference tensor 'input'", "", ""});
  }
  LayerCase the_case(layer, published, *shape, lines);
  if (layer.streams) the_case.compare_inference(lines.split_at().value_or((*shape)[1] / 2));
  the_case.compare_derived();
  the_case.compare_forward<float>();
  the_case.compare_forward<double>();
  return {};
}

}  // namespace kizzasi::verification
