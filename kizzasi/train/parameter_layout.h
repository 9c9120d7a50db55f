// Where each trained tensor stands in one flat array: the common order of gradients, their sums over shards, and optimiser state.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// Thread: any. Immutable.
class ParameterLayout {
 public:
  struct Entry {
    std::string name;
    Shape shape;
    std::size_t offset = 0, count = 0;
  };

  ParameterLayout() = default;
  // In the order of the names; only those that `trained` picks, where given.
  explicit ParameterLayout(const NamedTensors& weights, const std::function<bool(std::string_view)>& trained = nullptr) {
    for (const auto& [name, tensor] : weights) {
      if (trained && !trained(name)) continue;
      entries_.push_back({name, tensor.shape, total_, tensor.values.size()});
      total_ += tensor.values.size();
    }
  }

  const std::vector<Entry>& entries() const noexcept { return entries_; }
  std::size_t total() const noexcept { return total_; }

 private:
  std::vector<Entry> entries_;
  std::size_t total_ = 0;
};

}  // namespace kizzasi
