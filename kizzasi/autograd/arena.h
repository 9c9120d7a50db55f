// Memory for many small things that all go at once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace kizzasi::autograd {

// Hands out pieces of large blocks and takes them all back with clear(), keeping the blocks. Runs no destructors.
// Thread: one at a time.
class Arena {
 public:
  void* take(std::size_t bytes, std::size_t alignment) {
    std::size_t begin = (used_ + alignment - 1) / alignment * alignment;
    if (block_ == blocks_.size() || begin + bytes > blocks_[block_].size) {
      if (block_ < blocks_.size()) ++block_;
      while (block_ < blocks_.size() && blocks_[block_].size < bytes) ++block_;
      if (block_ == blocks_.size()) {
        const std::size_t size = bytes > kBlock ? bytes : kBlock;
        blocks_.push_back({std::make_unique<std::byte[]>(size), size});
      }
      begin = 0;
    }
    used_ = begin + bytes;
    return blocks_[block_].memory.get() + begin;
  }
  void clear() noexcept { block_ = used_ = 0; }

 private:
  static constexpr std::size_t kBlock = 16384;
  struct Block {
    std::unique_ptr<std::byte[]> memory;  // aligned for every fundamental type
    std::size_t size;
  };
  std::vector<Block> blocks_;
  std::size_t block_ = 0, used_ = 0;
};

}  // namespace kizzasi::autograd
