// The fold of an associative operation over the last `width` elements of a stream, without inverting it: blocks of `width`, the one that
// ended turned into its suffixes, the one that runs folded from its start (van Herk 1992, Gil and Werman 1993).
#pragma once

#include <cstdint>

namespace kizzasi::logic {

// A window is suffix [at + 1, width) of the last block, then the running prefix [0, at]. One buffer serves both: an element is written
// where a suffix has just gone out of use. No sum is ever taken back, so nothing drifts and a NaN leaves with the window.
// State: `buffer` of width elements, `running`, and two counters. Work: two operations an element; at the end of each block, width
// operations at once. Real-time: yes.
template <typename T>
struct BlockWindow {
  T* buffer = nullptr;
  T* running = nullptr;
  std::int64_t* at = nullptr;    // place in the running block
  std::int64_t* full = nullptr;  // 1 once a block has ended

  // Takes the next element; `fold(older, newer)` joins two neighbours. Returns the fold of the last min(width, elements so far).
  template <typename Fold>
  T push(std::int64_t width, const T& element, const Fold& fold) const noexcept {
    const std::int64_t here = *at;
    buffer[here] = element;
    *running = here == 0 ? element : fold(*running, element);
    if (here + 1 < width) {
      *at = here + 1;
      return *full != 0 ? fold(buffer[here + 1], *running) : *running;
    }
    for (std::int64_t i = width - 2; i >= 0; --i) buffer[i] = fold(buffer[i], buffer[i + 1]);
    *at = 0;
    *full = 1;
    return *running;
  }
};

}  // namespace kizzasi::logic
