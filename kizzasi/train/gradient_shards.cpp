#include "kizzasi/train/gradient_shards.h"

#include <algorithm>

namespace kizzasi {

struct GradientShards::Shard {
  autograd::Tape<float> tape;
  WeightVars<float> vars;           // made once: the same leaves have the same places after every clear
  std::vector<std::size_t> wanted;  // ids of the leaves of the layout, in its order
  AlignedVector<float> gradient;
  double loss = 0;
};

GradientShards::GradientShards(ParameterLayout layout, std::size_t shards) : layout_(std::move(layout)), sum_(layout_.total()) {
  for (std::size_t i = 0; i < std::max<std::size_t>(shards, 1); ++i) {
    shards_.push_back(std::make_unique<Shard>());
    shards_.back()->gradient.resize(layout_.total());
  }
}

GradientShards::~GradientShards() = default;

void GradientShards::run_shard(std::size_t index, const NamedTensors& weights, const Work& work) {
  Shard& shard = *shards_[index];
  const bool first = shard.vars.all().empty();
  shard.tape.clear();
  std::size_t next = 0;
  for (const auto& [name, tensor] : weights) {
    const bool wanted = next < layout_.entries().size() && layout_.entries()[next].name == name;
    next += wanted;
    const auto leaf = shard.tape.borrow(autograd::Dims(tensor.shape), tensor.values, wanted);
    if (!first) continue;
    shard.vars.add(name, leaf);
    if (wanted) shard.wanted.push_back(leaf.id);
  }
  shard.loss = work(index, shard.tape, shard.vars);
  float* to = shard.gradient.data();
  for (const std::size_t id : shard.wanted) {
    const std::span<const float> from = shard.tape.grad(id);
    to = std::copy(from.begin(), from.end(), to);
  }
}

double GradientShards::run(ThreadPool& pool, const NamedTensors& weights, const Work& work) {
  pool.run(shards_.size(), [&](std::size_t index) { run_shard(index, weights, work); });
  constexpr std::size_t piece = 1 << 16;
  pool.run((sum_.size() + piece - 1) / piece, [&](std::size_t index) {
    const std::size_t begin = index * piece, end = std::min(begin + piece, sum_.size());
    std::copy(shards_[0]->gradient.begin() + static_cast<std::ptrdiff_t>(begin),
              shards_[0]->gradient.begin() + static_cast<std::ptrdiff_t>(end), sum_.begin() + static_cast<std::ptrdiff_t>(begin));
    for (std::size_t s = 1; s < shards_.size(); ++s) {
      const float* from = shards_[s]->gradient.data();
      for (std::size_t i = begin; i < end; ++i) sum_[i] += from[i];
    }
  });
  double loss = 0;
  for (const auto& shard : shards_) loss += shard->loss;
  return loss;
}

}  // namespace kizzasi
