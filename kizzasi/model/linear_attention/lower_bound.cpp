#include "kizzasi/model/linear_attention/lower_bound.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/ops.h"

namespace kizzasi::matrix_heads {
namespace {

constexpr std::string_view kDigits = "0123456789";

// "layers.3.mixer." -> 3, and "layers.<block>.mixer."
std::size_t block_of(const std::string& prefix) { return std::stoul(prefix.substr(prefix.find_first_of(kDigits))); }
std::string in_block(const std::string& prefix, std::size_t block) {
  const std::size_t begin = prefix.find_first_of(kDigits), end = prefix.find_first_not_of(kDigits, begin);
  return prefix.substr(0, begin) + std::to_string(block) + prefix.substr(end);
}

}  // namespace

std::vector<float> lower_bounds(const LayerWeights& weights, std::size_t blocks) {
  const std::size_t channels = weights.at(kLowerBound).values.size(), own = block_of(weights.prefix());
  std::vector<float> bounds(channels);
  for (std::size_t e = 0; e < channels; ++e) {
    std::vector<double> logits;
    for (std::size_t i = 0; i < blocks; ++i) logits.push_back(weights.under(in_block(weights.prefix(), i)).at(kLowerBound).values[e]);
    const double largest = *std::max_element(logits.begin(), logits.end());
    double all = 0, below = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
      const double share = std::exp(logits[i] - largest);
      all += share;
      if (i > 0 && i <= own) below += share;
    }
    bounds[e] = static_cast<float>(below / all);
  }
  return bounds;
}

template <typename T>
autograd::Var<T> lower_bounds(const WeightVars<T>& weights, const std::string& prefix, std::size_t blocks) {
  using namespace autograd;
  const std::size_t own = block_of(prefix);
  if (own == 0) return {};
  std::vector<Var<T>> rows;
  for (std::size_t i = 0; i < blocks; ++i) {
    const Var<T> row = weights.at(in_block(prefix, i) + kLowerBound);
    rows.push_back(reshape(row, {row.value().size(), 1}));
  }
  return sum_last(slice(softmax(concat(std::span<const Var<T>>(rows), 1)), 1, 1, own + 1));
}

template autograd::Var<float> lower_bounds(const WeightVars<float>&, const std::string&, std::size_t);
template autograd::Var<double> lower_bounds(const WeightVars<double>&, const std::string&, std::size_t);

}  // namespace kizzasi::matrix_heads
