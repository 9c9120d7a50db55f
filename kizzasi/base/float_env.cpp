#include "kizzasi/base/float_env.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace kizzasi {

#if defined(__SSE2__)

// MXCSR: flush-to-zero (bit 15), denormals-are-zero (bit 6), all exceptions masked (bits 7 to 12), round to nearest (bits 13, 14 clear).
FloatEnv::FloatEnv(Denormals denormals) noexcept : saved_(_mm_getcsr()) {
  _mm_setcsr((denormals == Denormals::kFlush ? 0x8000u | 0x0040u : 0u) | 0x1f80u);
}
FloatEnv::~FloatEnv() { _mm_setcsr(static_cast<unsigned>(saved_)); }

#elif defined(__aarch64__)

// FPCR: flush-to-zero (bit 24); rounding and trap bits clear.
FloatEnv::FloatEnv(Denormals denormals) noexcept : saved_(0) {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  const std::uint64_t ours = denormals == Denormals::kFlush ? std::uint64_t{1} << 24 : 0;
  asm volatile("msr fpcr, %0" : : "r"(ours));
}
FloatEnv::~FloatEnv() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

#else

FloatEnv::FloatEnv(Denormals) noexcept : saved_(0) {}
FloatEnv::~FloatEnv() = default;

#endif

}  // namespace kizzasi
