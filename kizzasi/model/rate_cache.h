// A continuous layer's recurrence at steps other than the training's, discretised once for each step size that was announced.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kizzasi/base/aligned.h"

namespace kizzasi {

// Keyed on the step size, as S4's and S5's own code keeps its kernels. What was not announced is computed anew in the caller's scratch, to
// the same bits.
// Thread: any for at and counts, once every prepare is over.
class RateCache {
 public:
  // floats: of the planes of one step size. Both forms of `sample(double dt, std::span<float> planes)` below fill all of them.
  explicit RateCache(std::size_t floats) : floats_(floats) {}

  std::size_t floats() const noexcept { return floats_; }

  // Before the layer is shared. Takes memory; of a step size that is known already none.
  template <typename Sample>
  void prepare(float dt, Sample sample) {
    if (find(dt) != nullptr) return;
    Entry& entry = entries_.emplace_back(Entry{dt, AlignedVector<float>(floats_)});
    sample(static_cast<double>(dt), std::span<float>(entry.planes));
  }

  // The planes for steps of dt: those that are kept, or made in `scratch` (floats()). Real-time: yes.
  template <typename Sample>
  std::span<const float> at(float dt, std::span<float> scratch, Sample sample) const noexcept {
    if (const Entry* kept = find(dt); kept != nullptr) return kept->planes;
    misses_.fetch_add(1, std::memory_order_relaxed);
    sample(static_cast<double>(dt), scratch);
    return scratch;
  }

  // How often `at` had to compute.
  std::size_t misses() const noexcept { return misses_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    float dt;
    AlignedVector<float> planes;
  };
  const Entry* find(float dt) const noexcept {
    for (const Entry& entry : entries_) {
      if (entry.dt == dt) return &entry;
    }
    return nullptr;
  }

  std::size_t floats_;
  std::vector<Entry> entries_;
  mutable std::atomic<std::size_t> misses_{0};
};

}  // namespace kizzasi
