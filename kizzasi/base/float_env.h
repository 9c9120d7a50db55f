// The floating-point settings under which everything here computes.
#pragma once

#include <cstdint>

namespace kizzasi {

// While it lives: denormals count as zero, rounding is to nearest, no traps. On leaving, the caller's settings are as they were.
// So a step costs the same in silence as in noise, and the caller's settings change no result.
// Real-time: yes. Thread: any (settings belong to the thread).
class FloatEnv {
 public:
  FloatEnv() noexcept;
  ~FloatEnv();
  FloatEnv(const FloatEnv&) = delete;
  FloatEnv& operator=(const FloatEnv&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace kizzasi
