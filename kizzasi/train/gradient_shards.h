// The gradient of a batch, computed in shards on many threads with the same bits on any number of them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/aligned.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/model/backbone.h"
#include "kizzasi/train/parameter_layout.h"

namespace kizzasi {

// Each shard has a tape and a gradient of its own; they are added in the order of the shards. The number of shards is part of the result
// (it groups the sums), the number of threads is not. Thread: one at a time. Real-time: no.
class GradientShards {
 public:
  GradientShards(ParameterLayout layout, std::size_t shards);
  ~GradientShards();

  // Records one shard's part of the loss on an empty tape, calls backward, and returns that part (not finite: seen in the sum). The weights
  // are leaves that read the tensors in place; those of the layout want gradients.
  using Work = std::function<double(std::size_t shard, autograd::Tape<float>& tape, const WeightVars<float>& weights)>;

  // Calls work for every shard; returns the sum of the parts. `weights` must hold the same tensors at every call.
  double run(ThreadPool& pool, const NamedTensors& weights, const Work& work);

  // Of the last run, in the order of the layout.
  std::span<float> gradient() noexcept { return sum_; }
  const ParameterLayout& layout() const noexcept { return layout_; }

 private:
  struct Shard;
  void run_shard(std::size_t index, const NamedTensors& weights, const Work& work);

  ParameterLayout layout_;
  std::vector<std::unique_ptr<Shard>> shards_;
  AlignedVector<float> sum_;
};

}  // namespace kizzasi
