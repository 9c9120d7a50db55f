// How often a test program has asked the system for memory through operator new.
#pragma once

#include <cstddef>

namespace kizzasi {

#if defined(__has_feature)
#define KIZZASI_HAS_FEATURE(name) __has_feature(name)
#else
#define KIZZASI_HAS_FEATURE(name) 0
#endif

// The thread sanitizer has an operator new of its own; tests that count are skipped there.
#if defined(__SANITIZE_THREAD__) || KIZZASI_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kAllocationsAreCounted = false;
#else
inline constexpr bool kAllocationsAreCounted = true;
#endif

// Every load and store is checked there, so the long counts are made shorter.
#if defined(__SANITIZE_ADDRESS__) || KIZZASI_HAS_FEATURE(address_sanitizer)
inline constexpr bool kEveryAccessIsChecked = true;
#else
inline constexpr bool kEveryAccessIsChecked = false;
#endif

// Never less than before. Thread: any.
std::size_t allocations_so_far() noexcept;

}  // namespace kizzasi
