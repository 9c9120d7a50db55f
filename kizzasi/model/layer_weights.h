// The weights of one layer among those of a model, and how they are packed for the kernels.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/kernels/linear.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// The tensors that a model multiplies by through kernels::linear, by their full names: what a smaller precision can be chosen for.
using PackedNames = std::map<std::string, OutputsAxis>;

// At load time only. Packs each tensor in the precision in which it stands (Tensor::storage), and notes it in `packed`, where given.
class LayerWeights {
 public:
  LayerWeights(const NamedTensors& all, std::string prefix, PackedNames* packed = nullptr)
      : all_(&all), prefix_(std::move(prefix)), noted_prefix_(prefix_), packed_(packed) {}

  const Tensor& at(std::string_view name) const { return all_->at(prefix_ + std::string(name)); }
  // The values, or nothing where the layer has no such tensor: an optional bias.
  std::vector<float> values_or_none(std::string_view name) const;
  const std::string& prefix() const { return prefix_; }
  // Those of another layer, for what layers share.
  LayerWeights under(std::string prefix) const { return {*all_, std::move(prefix), packed_}; }
  // Those of a part of this layer: "inner."
  LayerWeights below(std::string_view part) const;
  // `others`, under their own names, in the place of these: for a layer that is another one but for some tensors. All must outlive the
  // result.
  LayerWeights standing_for(const NamedTensors& others) const;

  // (outputs, inputs), or (outputs, inputs, 1) as a convolution of width 1 stores it.
  kernels::PackedWeight pack(std::string_view name) const;
  // x @ w as published, w (inputs, outputs), packed as what it is the transpose of. Of a stack of such matrices the one at `index`.
  kernels::PackedWeight pack_transposed(std::string_view name, std::size_t index = 0) const;
  // Of a stack of matrices (outputs, inputs) the one at `index`.
  kernels::PackedWeight pack_of_stack(std::string_view name, std::size_t index) const;
  // Several projections of the same rows as one: their outputs one after the other.
  kernels::PackedWeight pack_together(std::initializer_list<std::string_view> names) const;
  // A matrix (outputs, inputs) that was put together from these tensors, in the precision of the first.
  kernels::PackedWeight pack_made(std::span<const float> matrix, std::size_t outputs, std::initializer_list<std::string_view> names) const;

 private:
  kernels::Precision note(std::string_view name, OutputsAxis axis) const;

  const NamedTensors* all_;
  std::string prefix_, noted_prefix_;
  PackedNames* packed_;
};

}  // namespace kizzasi
