// The floating-point settings under which everything here computes.
#pragma once

#include <cstdint>

namespace kizzasi {

enum class Denormals {
  kFlush,  // count as zero: a step costs the same in silence as in noise
  kKeep,   // are numbers like any other: where limits are tested as their user would test them
};

// While it lives: denormals as said, rounding is to nearest, no traps. On leaving, the caller's settings are as they were. So the caller's
// settings change no result.
// Real-time: yes. Thread: any (settings belong to the thread).
class FloatEnv {
 public:
  explicit FloatEnv(Denormals denormals = Denormals::kFlush) noexcept;
  ~FloatEnv();
  FloatEnv(const FloatEnv&) = delete;
  FloatEnv& operator=(const FloatEnv&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace kizzasi
