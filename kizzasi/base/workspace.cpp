#include "kizzasi/base/workspace.h"

#include <bit>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define KIZZASI_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KIZZASI_ADDRESS_SANITIZER
#endif
#endif
#ifdef KIZZASI_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace kizzasi {

// Stands before the values, which begin 64 bytes later.
struct alignas(64) Workspace::Block {
  Block* next = nullptr;
  void* values() { return this + 1; }
};

namespace {

constexpr std::align_val_t kLine{64};

std::size_t class_of(std::size_t bytes) { return static_cast<std::size_t>(std::bit_width((bytes == 0 ? 0 : bytes - 1) / 64)); }
std::size_t class_bytes(std::size_t index) { return std::size_t{64} << index; }

void forbid([[maybe_unused]] void* values, [[maybe_unused]] std::size_t bytes) {
#ifdef KIZZASI_ADDRESS_SANITIZER
  __asan_poison_memory_region(values, bytes);
#endif
}
void permit([[maybe_unused]] void* values, [[maybe_unused]] std::size_t bytes) {
#ifdef KIZZASI_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(values, bytes);
#endif
}

}  // namespace

void* Workspace::take(std::size_t bytes) {
  const std::size_t index = class_of(bytes), size = class_bytes(index);
  if (index >= kClasses) throw std::bad_alloc();
  Block* block = nullptr;
  {
    const std::lock_guard lock(classes_[index].mutex);
    block = classes_[index].idle;
    if (block != nullptr) classes_[index].idle = block->next;
  }
  if (block == nullptr) {
    block = new (::operator new(sizeof(Block) + size, kLine)) Block;
    ++heap_calls_;
  } else {
    idle_ -= size;
    permit(block->values(), size);
  }
  ++borrowings_;
  const std::size_t lent = lent_ += size;
  for (std::size_t most = most_lent_; lent > most && !most_lent_.compare_exchange_weak(most, lent);) {
  }
  return block->values();
}

void Workspace::give_back(void* values, std::size_t bytes) noexcept {
  const std::size_t index = class_of(bytes), size = class_bytes(index);
  Block* block = static_cast<Block*>(values) - 1;
  forbid(values, size);
  lent_ -= size;
  idle_ += size;
  const std::lock_guard lock(classes_[index].mutex);
  block->next = classes_[index].idle;
  classes_[index].idle = block;
}

void Workspace::trim() noexcept {
  for (std::size_t index = 0; index < kClasses; ++index) {
    Block* block = nullptr;
    {
      const std::lock_guard lock(classes_[index].mutex);
      block = std::exchange(classes_[index].idle, nullptr);
    }
    while (block != nullptr) {
      Block* next = block->next;
      permit(block->values(), class_bytes(index));
      idle_ -= class_bytes(index);
      ::operator delete(block, kLine);
      block = next;
    }
  }
}

Workspace::Counters Workspace::counters() const noexcept { return {borrowings_, heap_calls_, lent_, most_lent_, idle_}; }

}  // namespace kizzasi
