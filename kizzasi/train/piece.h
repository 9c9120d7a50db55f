// A part of a batch on its way to a loss: what the training loop and its validation do with windows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/model/signal_model.h"
#include "kizzasi/train/dataset.h"
#include "kizzasi/train/head_loss.h"
#include "kizzasi/train/prediction_cost.h"

namespace kizzasi {

struct Piece {
  SignalBatch batch;
  Answers answers;
  std::vector<float> location, scale;
  std::vector<Origin> origins;  // (windows * origins), for the cost of predictions
  std::vector<double> sums;     // of that cost
  double weight = 0;
  double loss = 0;
  autograd::Tape<float> tape;
};

using Windows = std::span<const std::pair<std::uint32_t, Origin>>;  // the range that each belongs to, and the window
std::vector<std::pair<std::uint32_t, Origin>> all_origins(const Dataset& data, const std::vector<RowRange>& ranges);

// Answers become what is left of them after the short-cut, in units of its error: what the decoder's parameters mean.
void fill(const SignalModel& model, const Dataset& data, const std::vector<RowRange>& ranges, Windows windows,
          std::span<const std::size_t> rows_back, PointLoss point, Piece& piece);
void add_noise(SignalBatch& batch, double deviation, Rng rng);

// Tensors that training moves: all but the short-cut and the units of the head, which are solved before.
bool is_trained(std::string_view name);
// The weights as leaves of a tape, in the order of the names, so that the i-th trained one has the i-th gradient; ids: of the leaves.
WeightVars<float> bound_weights(autograd::Tape<float>& tape, const NamedTensors& weights, bool gradients, std::vector<std::size_t>* ids);

// The model's parameters (values, parameters), on the piece's tape; its loss; and what its forecasts cost, summed over them (sums too).
autograd::Var<float> piece_parameters(const SignalModel& model, const WeightVars<float>& vars, Piece& piece);
autograd::Var<float> piece_loss(const SignalModel& model, autograd::Var<float> out, PointLoss point, Piece& piece);
autograd::Var<float> piece_price(const SignalModel& model, const PredictionCost& cost, std::span<const double> state,
                                 autograd::Var<float> out, Piece& piece);

// Mean loss of weights on the windows, and the mean cost of their forecasts where there is one. Bits do not depend on the pool's threads.
struct Merit {
  double loss = 0, price = 0;
  std::vector<double> sums;  // of the cost
  double all() const { return loss + price; }
};
Merit merit_of(const SignalModel& model, const Dataset& data, const NamedTensors& weights, const std::vector<RowRange>& ranges,
               std::size_t most_windows, PointLoss point, const PredictionCost* cost, std::span<const double> state, ThreadPool& pool);

}  // namespace kizzasi
