// What training pays for its predictions beside the loss: limits, and whatever else can be said of a whole forecast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/json.h"
#include "kizzasi/signal/head.h"
#include "kizzasi/train/dataset.h"

namespace kizzasi {

// The forecast of one lane of a model from one moment. Point: the median or mean that the head tells.
struct PredictedWindow {
  std::uint32_t series = 0, lane = 0;
  std::size_t row = 0;             // the newest known one; the first answer is row + 1
  std::span<const double> values;  // (horizon, targets of the lane), as the normaliser of the model gives them
};

// A cost of predictions with its gradient, and numbers of its own (multipliers, say) that move once a step and are part of the checkpoint.
// Everything follows from the arguments. Thread: any, but for `step`.
class PredictionCost {
 public:
  virtual ~PredictionCost() = default;

  // The numbers before the first step, and how many sums a window adds to.
  virtual std::vector<double> start() const = 0;
  virtual std::size_t sums() const = 0;
  // False: `step` changes nothing that `cost` reads.
  virtual bool moves() const = 0;

  // The cost, on the scale of a mean over predicted values; gradient (horizon, targets of the lane) is overwritten, sums are added to.
  virtual double cost(const PredictedWindow& window, std::span<const double> state, std::span<double> gradient,
                      std::span<double> sums) const = 0;
  // After training step `step` (1, 2, ...), with the sums over its windows.
  virtual void step(std::int64_t step, std::span<double> state, std::span<const double> sums) const = 0;
  // What the history of the training says of the numbers, from sums over the validation windows; null: nothing.
  virtual Json note(std::span<const double> state, std::span<const double> sums) const = 0;
};

// Where the parameters of a batch stand: normalised value = (location + scale * point) * spread + anchor.
struct PredictedBatch {
  std::span<const Origin> origins;         // (windows)
  std::span<const float> location, scale;  // (windows, horizon, targets), (horizon, targets)
  std::span<const float> spread, anchor;   // (windows, targets)
  std::size_t targets = 1;
};

// The costs of the points that the parameters (windows, horizon * targets * parameters of the head) tell, as an operation on the tape:
// -> (windows). A mixture's point is its mean. sums: added to, in the order of the windows.
template <typename T>
autograd::Var<T> prediction_cost(const HeadConfig& head, const PredictionCost& cost, std::span<const double> state,
                                 const PredictedBatch& batch, autograd::Var<T> parameters, std::span<double> sums);

}  // namespace kizzasi
