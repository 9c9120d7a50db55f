#include "kizzasi/train/piece.h"

#include <algorithm>
#include <array>

#include "kizzasi/autograd/ops.h"

namespace kizzasi {

using autograd::Dims;
using autograd::Tape;
using autograd::Var;

std::vector<std::pair<std::uint32_t, Origin>> all_origins(const Dataset& data, const std::vector<RowRange>& ranges) {
  std::vector<std::pair<std::uint32_t, Origin>> list;
  for (std::uint32_t r = 0; r < ranges.size(); ++r) {
    for (const Origin& origin : data.origins(ranges[r])) list.emplace_back(r, origin);
  }
  return list;
}

void fill(const SignalModel& model, const Dataset& data, const std::vector<RowRange>& ranges, Windows windows,
          std::span<const std::size_t> rows_back, PointLoss point, Piece& piece) {
  std::vector<Origin> origins;
  std::vector<RowRange> own;
  for (const auto& [range, origin] : windows) {
    origins.push_back(origin);
    own.push_back(ranges[range]);
  }
  data.fill(origins, rows_back, own, piece.batch, piece.answers);
  piece.origins.clear();
  for (const Origin& origin : origins) {
    for (const std::size_t back : rows_back) piece.origins.push_back({origin.series, origin.lane, origin.row - std::min(back, origin.row)});
  }
  std::vector<float>& values = piece.answers.values;
  const std::size_t outputs = data.shape().horizon * data.shape().targets;
  piece.location.resize(values.size());
  piece.scale.resize(outputs);
  model.locate(piece.batch, piece.location, piece.scale);
  piece.weight = 0;
  const bool squared = model.config().head.which() == HeadKind::kPoint && point == PointLoss::kSquared;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = piece.answers.weight[i] > 0 ? (values[i] - piece.location[i]) / piece.scale[i % outputs] : 0.0f;
    // An error in other units is weight times as large, a squared one its square.
    if (squared) piece.answers.weight[i] *= piece.answers.weight[i];
    piece.weight += piece.answers.weight[i];
  }
}

void add_noise(SignalBatch& batch, double deviation, Rng rng) {
  for (float& x : batch.inputs) x += static_cast<float>(deviation * rng.normal());
}

Var<float> piece_parameters(const SignalModel& model, const WeightVars<float>& vars, Piece& piece) {
  return autograd::reshape(model.forward(piece.tape, vars, piece.batch), {piece.answers.values.size(), model.shape().parameters});
}

Var<float> piece_loss(const SignalModel& model, Var<float> out, PointLoss point, Piece& piece) {
  const std::size_t n = piece.answers.values.size();
  const Var<float> target = piece.tape.constant({n}, piece.answers.values), weight = piece.tape.constant({n}, piece.answers.weight);
  return head_loss(model.config().head, out, target, weight, point);
}

Var<float> piece_price(const SignalModel& model, const PredictionCost& cost, std::span<const double> state, Var<float> out, Piece& piece) {
  const std::size_t windows = piece.origins.size();
  piece.sums.assign(cost.sums(), 0.0);
  const PredictedBatch batch{piece.origins, piece.location, piece.scale, piece.answers.spread, piece.answers.anchor, model.shape().targets};
  const Var<float> parameters = autograd::reshape(out, {windows, out.value().size() / windows});
  return autograd::sum(prediction_cost<float>(model.config().head, cost, state, batch, parameters, piece.sums));
}

bool is_trained(std::string_view name) { return !name.starts_with("shortcut.") && name != "head.scale"; }

WeightVars<float> bound_weights(Tape<float>& tape, const NamedTensors& weights, bool gradients, std::vector<std::size_t>* ids) {
  WeightVars<float> vars;
  for (const auto& [name, tensor] : weights) {
    if (!is_trained(name)) continue;
    const Var<float> var = tape.borrow(Dims(tensor.shape), tensor.values, gradients);
    if (ids != nullptr) ids->push_back(var.id);
    vars.add(name, var);
  }
  return vars;
}

Merit merit_of(const SignalModel& model, const Dataset& data, const NamedTensors& weights, const std::vector<RowRange>& ranges,
               std::size_t most_windows, PointLoss point, const PredictionCost* cost, std::span<const double> state, ThreadPool& pool) {
  const auto all = all_origins(data, ranges);
  const std::size_t n = std::min(most_windows, all.size()), batch = 32, pieces = (n + batch - 1) / batch;
  std::vector<double> loss(pieces, 0.0), weight(pieces, 0.0), price(pieces, 0.0), windows(pieces, 0.0);
  std::vector<std::vector<double>> sums(pieces);
  const std::array<std::size_t, 1> here{0};
  pool.run(pieces, [&](std::size_t i) {
    std::vector<std::pair<std::uint32_t, Origin>> own;
    for (std::size_t w = i * batch; w < std::min(n, (i + 1) * batch); ++w) own.push_back(all[w * all.size() / n]);
    Piece piece;
    fill(model, data, ranges, own, here, point, piece);
    if (piece.weight == 0) return;
    const Var<float> out = piece_parameters(model, bound_weights(piece.tape, weights, false, nullptr), piece);
    loss[i] = piece.weight * piece_loss(model, out, point, piece).value()[0];
    weight[i] = piece.weight;
    if (cost == nullptr) return;
    price[i] = static_cast<double>(piece_price(model, *cost, state, out, piece).value()[0]);
    windows[i] = static_cast<double>(piece.origins.size());
    sums[i] = std::move(piece.sums);
  });
  Merit out;
  if (cost != nullptr) out.sums.assign(cost->sums(), 0.0);
  double total = 0, count = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    out.loss += loss[i], total += weight[i], out.price += price[i], count += windows[i];
    for (std::size_t j = 0; j < sums[i].size(); ++j) out.sums[j] += sums[i][j];
  }
  out.loss = total > 0 ? out.loss / total : 0;
  out.price = count > 0 ? out.price / count : 0;
  return out;
}

}  // namespace kizzasi
