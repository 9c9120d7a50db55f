#include "kizzasi/model/layer_weights.h"

#include "kizzasi/model/layer_pack.h"

namespace kizzasi {

std::vector<float> LayerWeights::values_or_none(std::string_view name) const {
  const auto found = all_->find(prefix_ + std::string(name));
  return found == all_->end() ? std::vector<float>{} : found->second.values;
}

LayerWeights LayerWeights::below(std::string_view part) const {
  LayerWeights inner = *this;
  inner.prefix_ += part;
  inner.noted_prefix_ += part;
  return inner;
}

LayerWeights LayerWeights::standing_for(const NamedTensors& others) const {
  LayerWeights same = *this;
  same.all_ = &others;
  same.prefix_.clear();
  return same;
}

kernels::Precision LayerWeights::note(std::string_view name, OutputsAxis axis) const {
  if (packed_ != nullptr) packed_->emplace(noted_prefix_ + std::string(name), axis);
  return at(name).storage.precision;
}

kernels::PackedWeight LayerWeights::pack(std::string_view name) const {
  const Tensor& w = at(name);
  return kernels::PackedWeight::pack(w.values, w.shape[0], w.shape[1], note(name, OutputsAxis::kFirst));
}

kernels::PackedWeight LayerWeights::pack_transposed(std::string_view name, std::size_t index) const {
  const Tensor& w = at(name);
  const std::size_t rows = w.shape[w.shape.size() - 2], cols = w.shape.back();
  const auto begin = w.values.begin() + static_cast<std::ptrdiff_t>(index * rows * cols);
  return kernels::PackedWeight::pack(transposed({begin, begin + static_cast<std::ptrdiff_t>(rows * cols)}, rows, cols), cols, rows,
                                     note(name, OutputsAxis::kLast));
}

kernels::PackedWeight LayerWeights::pack_of_stack(std::string_view name, std::size_t index) const {
  const Tensor& w = at(name);
  const std::size_t rows = w.shape[w.shape.size() - 2], cols = w.shape.back();
  return kernels::PackedWeight::pack(std::span(w.values).subspan(index * rows * cols, rows * cols), rows, cols,
                                     note(name, OutputsAxis::kLastButOne));
}

kernels::PackedWeight LayerWeights::pack_together(std::initializer_list<std::string_view> names) const {
  std::vector<float> all;
  std::size_t outputs = 0;
  for (const std::string_view name : names) {
    const Tensor& w = at(name);
    all.insert(all.end(), w.values.begin(), w.values.end());
    outputs += w.shape[0];
  }
  return pack_made(all, outputs, names);
}

kernels::PackedWeight LayerWeights::pack_made(std::span<const float> matrix, std::size_t outputs,
                                              std::initializer_list<std::string_view> names) const {
  kernels::Precision precision = kernels::Precision::kF32;
  for (const std::string_view name : names) precision = note(name, OutputsAxis::kFirst);
  return kernels::PackedWeight::pack(matrix, outputs, outputs == 0 ? 0 : matrix.size() / outputs, precision);
}

}  // namespace kizzasi
