#include "kizzasi/engine/allocation_count_test.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> count{0};
}  // namespace

// Replaces the global functions for the whole test binary.
void* operator new(std::size_t bytes) {
  ++count;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++count;
  const auto to = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(to, (bytes + to - 1) / to * to)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace kizzasi {

std::size_t allocations_so_far() { return count; }

}  // namespace kizzasi
