#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/layer.h"
#include "kizzasi/model/verification_lines.h"

namespace kizzasi::verification {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

// The input of a case: vectors, or ids that stand for rows of the embedding.
struct Input {
  std::size_t batch = 0, time = 0, d = 0;
  std::vector<std::size_t> ids;  // empty: vectors were given
  std::vector<float> rows;       // (batch, time, d)
  std::size_t size() const { return batch * time; }
};

// Ids (batch, time) of that name, or (time) of one stream, as vectors.
Result<Input> read_ids(const PublishedModel& model, const NamedTensors& published, Lines& lines, const std::string& name) {
  const auto refuse = [&](std::string what) {
    return fail({Fault::kBadInput, std::move(what), fmt::format("reference tensor '{}'", name), "", ""});
  };
  Input input;
  input.d = static_cast<std::size_t>(model.config.d_model);
  lines.used(name);
  const Shape& shape = lines.io().tensors.at(name).shape;
  const auto wide = lines.io().wide.find(name);
  if (shape.empty() || shape.size() > 2 || wide == lines.io().wide.end()) return refuse("no ids of one axis or two");
  input.batch = shape.size() == 2 ? shape[0] : 1, input.time = shape.back();
  if (model.embedding.empty()) return refuse("ids, and a model without an embedding");
  const std::vector<float>& table = published.at(model.embedding).values;
  for (const double id : wide->second) {
    if (!(id >= 0 && id < static_cast<double>(table.size() / input.d))) return refuse(fmt::format("id {} is outside the vocabulary", id));
    input.ids.push_back(static_cast<std::size_t>(id));
    const auto row = table.begin() + static_cast<std::ptrdiff_t>(input.ids.back() * input.d);
    input.rows.insert(input.rows.end(), row, row + static_cast<std::ptrdiff_t>(input.d));
  }
  return input;
}

Result<Input> read_input(const PublishedModel& model, const NamedTensors& published, Lines& lines) {
  const auto found = lines.io().tensors.find("input");
  if (found != lines.io().tensors.end() && found->second.shape.size() == 2) return read_ids(model, published, lines, "input");
  if (found == lines.io().tensors.end() && lines.has("tokens")) return read_ids(model, published, lines, "tokens");
  const auto shape = three_axes(lines, "input");
  if (!shape) return fail(shape.error());
  Input input;
  lines.used("input");
  input.d = static_cast<std::size_t>(model.config.d_model);
  if ((*shape)[2] != input.d) return fail({Fault::kBadInput, "vectors of another width than d_model", "reference tensor 'input'", "", ""});
  input.batch = (*shape)[0], input.time = (*shape)[1];
  input.rows = found->second.values;
  return input;
}

// Our model beside the reference, path by path.
class StackCase {
 public:
  StackCase(const PublishedModel& model, const NamedTensors& published, const Backbone& backbone, Input input, Lines& lines)
      : model_(model), published_(published), backbone_(backbone), in_(std::move(input)), lines_(lines) {
    if (!model.head.empty()) {
      const std::vector<float>& head = published.at(model.head).values;
      vocabulary_ = head.size() / in_.d;
      packed_head_ = kernels::PackedWeight::pack(head, vocabulary_, in_.d);
    }
    const auto output = lines.io().tensors.find("output");
    // Ids in, logits out; vectors in, vectors out, unless the width of the output says otherwise.
    const std::size_t width = output == lines.io().tensors.end() ? 0 : output->second.shape.back();
    gives_logits_ = in_.ids.empty() ? width != in_.d && width == vocabulary_ : width == vocabulary_;
    scratch_.resize(backbone.scratch_floats(in_.time));
  }

  void compare_inference(std::size_t split_at) {
    const std::vector<float> whole = hidden_in_pieces({in_.time});
    lines_.compare("output", "run", outputs(whole));
    lines_.compare("output_f64", "run", outputs(whole));
    if (lines_.has("logits") && !lines_.has("input_ids")) lines_.compare("logits", "run", logits(whole));
    const std::vector<float> stepped = hidden_in_pieces(std::vector<std::size_t>(in_.time, 1), true);
    lines_.compare("output", "step", outputs(stepped));
    if (lines_.has("logits") && !lines_.has("input_ids")) lines_.compare("logits", "step", logits(stepped));
    if (split_at <= in_.time) lines_.compare("output_split", "run", outputs(hidden_in_pieces({split_at, in_.time - split_at})));
    for (const auto& [name, tensor] : lines_.io().tensors) {
      const std::int64_t k = number_between(name, "split.t", ".output");
      if (k < 0 || k > static_cast<std::int64_t>(in_.time)) continue;
      const auto first = static_cast<std::size_t>(k);
      lines_.compare(name, "run", outputs(hidden_in_pieces({first, in_.time - first})));
    }
  }

  // Of the ids that this case is given instead of vectors.
  void compare_logits() { lines_.compare("logits", "run", logits(hidden_in_pieces({in_.time}))); }

  void compare_states() {
    std::map<std::size_t, std::vector<std::string>> marks;  // time -> "layer0.conv", ...
    for (const auto& [name, tensor] : lines_.io().tensors) {
      const std::size_t dot = name.find('.', std::string_view("state.t").size());
      if (!name.starts_with("state.t") || dot == name.npos) continue;
      const std::int64_t t = number_between(name.substr(0, dot + 1), "state.t", ".");
      if (t >= 0 && t <= static_cast<std::int64_t>(in_.time)) marks[static_cast<std::size_t>(t)].push_back(name.substr(dot + 1));
    }
    // state.{i}.{field}, or state.{i} where there is but one: of layer i after the last frame.
    for (const auto& [name, tensor] : lines_.io().tensors) {
      const std::size_t dot = name.find('.', std::string_view("state.").size());
      const std::int64_t layer = number_between(name.substr(0, dot), "state.", "");
      if (layer >= 0) marks[in_.time].push_back(name);
    }
    // transformers' RWKV-4 broadcasts the state over the batch where it is given a single frame: every stream then holds that of the first.
    const bool mixes_streams = lines_.made_by().starts_with("transformers.Rwkv") && in_.batch > 1;
    for (const auto& [t, fields] : marks) {
      if (mixes_streams && t == 1) {
        for (const std::string& field : fields) lines_.known_wrong(fmt::format("state.t{}.{}", t, field));
        continue;
      }
      std::vector<State> states;
      hidden_in_pieces({t}, false, &states);
      for (const std::string& mark : fields) {
        const bool last = mark.starts_with("state.");
        const std::string field = last ? "layer" + mark.substr(std::string_view("state.").size()) : mark;
        if (const auto ours = model_.state(field, {backbone_.layout(), states})) {
          lines_.compare(last ? mark : fmt::format("state.t{}.{}", t, field), "run", *ours);
        }
      }
    }
  }

  // Through the tape of type T, as training goes.
  template <typename T>
  void compare_forward() {
    using namespace autograd;
    Tape<T> tape;
    const WeightVars<T> leaves = weight_leaves(tape, published_);
    const WeightVars<T> weights = ours(leaves);
    const Dims dims{in_.batch, in_.time, in_.d};
    const std::vector<T> rows(in_.rows.begin(), in_.rows.end());
    const Var<T> x =
        in_.ids.empty() ? tape.leaf(dims, std::span<const T>(rows)) : reshape(gather(leaves.at(model_.embedding), in_.ids), dims);
    std::vector<Var<T>> layers;
    const Var<T> hidden = backbone_.forward(weights, x, &layers);
    const Var<T> output = gives_logits_ ? linear(hidden, leaves.at(model_.head)) : hidden;
    lines_.compare("output", kForwardPath<T>, output.value());
    const bool plain = !model_.head.empty() && model_.logit_cap == 0;
    if (plain && lines_.has("logits") && !lines_.has("input_ids")) {
      lines_.compare("logits", kForwardPath<T>, linear(hidden, leaves.at(model_.head)).value());
    }
    for (std::size_t i = 0; i < layers.size(); ++i) lines_.compare(fmt::format("layer{}.output", i), kForwardPath<T>, layers[i].value());

    const auto cotangent = lines_.io().tensors.find("cotangent");
    if (cotangent == lines_.io().tensors.end() || cotangent->second.values.size() != output.value().size()) return;
    lines_.used("cotangent");
    const std::vector<T> seed(cotangent->second.values.begin(), cotangent->second.values.end());
    tape.backward(output, std::span<const T>(seed));
    if (in_.ids.empty()) lines_.compare("grad.input", kForwardPath<T>, std::span<const T>(tape.grad(x)));
    // The reference names gradients as Hugging Face does; mamba_ssm's files may lack the prefix, and call the embedding otherwise.
    constexpr std::string_view kPrefix = "backbone.";
    for (const auto& [name, leaf] : leaves.all()) {
      std::string bare = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
      if (bare == "embedding.weight") bare = "embeddings.weight";
      for (const std::string& each : std::set<std::string>{name, bare, std::string(kPrefix) + bare}) {
        lines_.compare("grad." + each, kForwardPath<T>, std::span<const T>(tape.grad(leaf)));
      }
    }
  }

 private:
  WeightVars<float> ours(const WeightVars<float>& published) const { return model_.ours(published); }
  WeightVars<double> ours(const WeightVars<double>& published) const { return model_.ours64(published); }
  // The backbone's output (batch, time, d), each stream fed in these pieces; rows beyond their sum stay zero.
  std::vector<float> hidden_in_pieces(const std::vector<std::size_t>& pieces, bool by_step = false, std::vector<State>* states = nullptr) {
    std::vector<float> out(in_.rows.size());
    for (std::size_t b = 0; b < in_.batch; ++b) {
      State state(backbone_.layout().bytes());
      backbone_.reset(state);
      const Lane lane{state.data(), 1.0f};
      std::size_t at = b * in_.time;
      for (const std::size_t n : pieces) {
        const MatrixView rows(in_.rows.data() + at * in_.d, n, in_.d);
        const MatrixSpan result(out.data() + at * in_.d, n, in_.d);
        if (by_step) {
          backbone_.step({&lane, 1}, rows, result, scratch_);
        } else {
          backbone_.run(lane, rows, result, scratch_);
        }
        at += n;
      }
      if (states != nullptr) states->push_back(std::move(state));
    }
    return out;
  }

  std::vector<float> logits(const std::vector<float>& hidden) const {
    std::vector<float> out(in_.size() * vocabulary_);
    if (vocabulary_ > 0) {
      kernels::linear(packed_head_, MatrixView(hidden.data(), in_.size(), in_.d), {}, MatrixSpan(out.data(), in_.size(), vocabulary_));
    }
    const double cap = model_.logit_cap;
    for (float& each : out) each = cap > 0 ? static_cast<float>(cap * std::tanh(static_cast<double>(each) / cap)) : each;
    return out;
  }
  std::vector<float> outputs(const std::vector<float>& hidden) const { return gives_logits_ ? logits(hidden) : hidden; }

  const PublishedModel& model_;
  const NamedTensors& published_;
  const Backbone& backbone_;
  Input in_;
  Lines& lines_;
  std::size_t vocabulary_ = 0;
  kernels::PackedWeight packed_head_;
  bool gives_logits_ = false;
  std::vector<float> scratch_;
};

}  // namespace

Result<void> verify_stack(const PublishedModel& model, const NamedTensors& published, Lines& lines) {
  const auto architecture = find_architecture(model.config.architecture);
  if (!architecture) return fail(architecture.error());
  const auto backbone = (*architecture)->load(model.config, taken_over(published, model.ours64));
  if (!backbone) return fail(backbone.error());
  auto input = read_input(model, published, lines);
  if (!input) return fail(input.error());
  const std::size_t in_time = input->time;
  StackCase the_case(model, published, **backbone, std::move(*input), lines);
  the_case.compare_inference(lines.split_at().value_or(in_time / 2));
  the_case.compare_states();
  the_case.compare_forward<float>();
  the_case.compare_forward<double>();
  if (lines.has("logits") && lines.has("input_ids")) {
    auto ids = read_ids(model, published, lines, "input_ids");
    if (!ids) return fail(ids.error());
    StackCase(model, published, **backbone, std::move(*ids), lines).compare_logits();
  }
  return {};
}

}  // namespace kizzasi::verification
