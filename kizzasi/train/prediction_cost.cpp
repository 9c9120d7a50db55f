#include "kizzasi/train/prediction_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kizzasi/autograd/rowwise.h"

namespace kizzasi {
namespace {

// The point of one predicted value; slopes: its derivatives by the head's parameters.
template <typename T>
double point_of(const HeadConfig& head, const T* p, std::span<double> slopes) {
  std::fill(slopes.begin(), slopes.end(), 0.0);
  if (head.which() != HeadKind::kMixture) {
    slopes[0] = 1;
    return static_cast<double>(p[0]);  // value, mean, location, median
  }
  const auto count = static_cast<std::size_t>(head.components);
  const double top = static_cast<double>(*std::max_element(p, p + count));
  double total = 0, mean = 0;
  for (std::size_t k = 0; k < count; ++k) {
    slopes[count + k] = std::exp(static_cast<double>(p[k]) - top);
    total += slopes[count + k];
  }
  for (std::size_t k = 0; k < count; ++k) {
    slopes[count + k] /= total;
    mean += slopes[count + k] * static_cast<double>(p[count + k]);
  }
  for (std::size_t k = 0; k < count; ++k) slopes[k] = slopes[count + k] * (static_cast<double>(p[count + k]) - mean);
  return mean;
}

}  // namespace

template <typename T>
autograd::Var<T> prediction_cost(const HeadConfig& head, const PredictionCost& cost, std::span<const double> state,
                                 const PredictedBatch& batch, autograd::Var<T> parameters, std::span<double> sums) {
  const std::size_t outputs = batch.scale.size(), width = head.parameters(), targets = batch.targets, windows = batch.origins.size();
  assert(parameters.value().size() == windows * outputs * width);
  std::vector<double> values(outputs), gradient(outputs), slopes(outputs * width);
  std::size_t w = 0;
  return rowwise<T, 1>(autograd::Dims{windows}, {parameters}, [&](const auto& in, const auto& partial) {
    const auto spread = [&](std::size_t i) { return static_cast<double>(batch.spread[w * targets + i % targets]); };
    for (std::size_t i = 0; i < outputs; ++i) {
      const double point = point_of(head, in[0] + i * width, std::span(slopes).subspan(i * width, width));
      const double in_window = static_cast<double>(batch.location[w * outputs + i]) + static_cast<double>(batch.scale[i]) * point;
      values[i] = in_window * spread(i) + static_cast<double>(batch.anchor[w * targets + i % targets]);
    }
    const Origin& origin = batch.origins[w];
    const double price = cost.cost({origin.series, origin.lane, origin.row, values}, state, gradient, sums);
    for (std::size_t i = 0; i < outputs; ++i) {
      const double by_point = gradient[i] * spread(i) * static_cast<double>(batch.scale[i]);
      for (std::size_t k = 0; k < width; ++k) partial[0][i * width + k] = static_cast<T>(by_point * slopes[i * width + k]);
    }
    ++w;
    return price;
  });
}

template autograd::Var<float> prediction_cost(const HeadConfig&, const PredictionCost&, std::span<const double>, const PredictedBatch&,
                                              autograd::Var<float>, std::span<double>);
template autograd::Var<double> prediction_cost(const HeadConfig&, const PredictionCost&, std::span<const double>, const PredictedBatch&,
                                               autograd::Var<double>, std::span<double>);

}  // namespace kizzasi
