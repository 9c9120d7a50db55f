// Memory that is borrowed, given back and borrowed again: after the first round nobody asks the system for more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>

namespace kizzasi {

// Blocks of 64 bytes and every power of two above, each kept in a list of its size while nobody has it. Under AddressSanitizer a block
// that was given back is poisoned, so a use after that is reported. Thread: any. Real-time: no (a lock for a few instructions).
class Workspace {
 public:
  // A piece of memory for as long as this object lives. It must not outlive its workspace. Thread: one at a time.
  template <typename T>
  class Borrowing {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 64);

   public:
    Borrowing() = default;
    Borrowing(Borrowing&& other) noexcept : from_(std::exchange(other.from_, nullptr)), values_(std::exchange(other.values_, {})) {}
    Borrowing& operator=(Borrowing&& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(values_, other.values_);
      return *this;
    }
    ~Borrowing() {
      if (from_ != nullptr) from_->give_back(values_.data(), values_.size_bytes());
    }

    std::span<T> values() const noexcept { return values_; }
    T* data() const noexcept { return values_.data(); }
    std::size_t size() const noexcept { return values_.size(); }
    T& operator[](std::size_t i) const noexcept { return values_[i]; }

   private:
    friend class Workspace;
    Borrowing(Workspace* from, std::span<T> values) : from_(from), values_(values) {}
    Workspace* from_ = nullptr;
    std::span<T> values_;
  };

  struct Counters {
    std::uint64_t borrowings = 0;  // ever
    std::uint64_t heap_calls = 0;  // ever: blocks that had to be asked for
    std::size_t bytes_lent = 0;    // now, in whole blocks
    std::size_t most_bytes_lent = 0;
    std::size_t bytes_idle = 0;  // now
  };

  Workspace() = default;
  ~Workspace() { trim(); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // `count` uninitialised values on a 64-byte boundary. Throws std::bad_alloc where the system has no more.
  template <typename T>
  Borrowing<T> borrow(std::size_t count) {
    return {this, {static_cast<T*>(take(count * sizeof(T))), count}};
  }

  // Returns all idle blocks to the system.
  void trim() noexcept;
  Counters counters() const noexcept;

 private:
  struct Block;
  static constexpr std::size_t kClasses = 58;  // block of class i: 64 << i bytes
  struct alignas(64) Class {
    std::mutex mutex;
    Block* idle = nullptr;
  };

  void* take(std::size_t bytes);
  void give_back(void* values, std::size_t bytes) noexcept;

  std::array<Class, kClasses> classes_;
  std::atomic<std::uint64_t> borrowings_ = 0, heap_calls_ = 0;
  std::atomic<std::size_t> lent_ = 0, most_lent_ = 0, idle_ = 0;
};

}  // namespace kizzasi
