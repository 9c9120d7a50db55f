#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/signal_parts.h"

namespace kizzasi {
namespace {

using autograd::Dims;
using autograd::Tape;
using autograd::Var;

template <typename T>
Var<T> constant(Tape<T>& tape, Dims dims, const std::vector<float>& values) {
  if constexpr (std::is_same_v<T, float>) {
    return tape.constant(std::move(dims), values);
  } else {
    const std::vector<T> wide(values.begin(), values.end());
    return tape.constant(std::move(dims), wide);
  }
}

// The weights below "backbone." under their own names.
template <typename T>
WeightVars<T> inner_weights(const WeightVars<T>& weights) {
  constexpr std::string_view kPrefix = "backbone.";
  WeightVars<T> inner;
  for (const auto& [name, var] : weights.all()) {
    if (name.starts_with(kPrefix)) inner.add(name.substr(kPrefix.size()), var);
  }
  return inner;
}

}  // namespace

template <typename T>
Var<T> SignalModel::forward(Tape<T>& tape, const WeightVars<T>& weights, const SignalBatch& batch) const {
  const Parts& p = *parts_;
  const SignalShape& s = p.shape;
  const std::size_t n = batch.windows * batch.origins, features = s.slots() + s.known;
  using namespace autograd;

  // (n, horizon, outputs), from the learned table alone where there is no backbone.
  Var<T> out;
  const Var<T> table = reshape(weights.at("head.bias"), {s.horizon * s.outputs()});
  if (s.has_backbone) {
    Var<T> rows =
        linear(constant(tape, {batch.windows, s.rows(), s.vector()}, batch.inputs), weights.at("embed.weight"), weights.at("embed.bias"));
    rows = p.backbone->forward(inner_weights(weights), rows);
    std::vector<std::size_t> chosen;
    for (std::size_t w = 0; w < batch.windows; ++w) {
      for (const std::size_t row : batch.rows) chosen.push_back(w * s.rows() + row);
    }
    const Var<T> hidden = gather(reshape(rows, {batch.windows * s.rows(), s.d_model}), chosen);  // (n, d_model)
    const Var<T> context = linear(hidden, weights.at("decoder.context.weight"), weights.at("decoder.context.bias"));
    // Every step ahead sees its origin's context.
    std::vector<std::size_t> repeated(n * s.horizon);
    for (std::size_t i = 0; i < repeated.size(); ++i) repeated[i] = i / s.horizon;
    Var<T> u = reshape(gather(context, repeated), {n, s.horizon, s.decoder});
    if (features > 0) u = add(u, linear(constant(tape, {n, s.horizon, features}, batch.ahead), weights.at("decoder.slots.weight")));
    u = silu(add(u, weights.at("decoder.step.weight")));
    const Var<T> v = add(silu(linear(u, weights.at("decoder.mix.weight"), weights.at("decoder.mix.bias"))), u);
    const Var<T> decoded = linear(v, weights.at("decoder.out.weight"));
    out = add(reshape(decoded, {n, s.horizon * s.outputs()}), table);
  } else {
    const std::vector<float> nothing(n * s.horizon * s.outputs(), 0.0f);
    out = add(constant(tape, {n, s.horizon * s.outputs()}, nothing), table);
  }
  return reshape(out, {n, s.horizon, s.targets, s.parameters});
}

template Var<float> SignalModel::forward(Tape<float>&, const WeightVars<float>&, const SignalBatch&) const;
template Var<double> SignalModel::forward(Tape<double>&, const WeightVars<double>&, const SignalBatch&) const;

}  // namespace kizzasi
