// A fixed set of threads that share out numbered pieces of work.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace kizzasi {

// Thread: one caller at a time. Real-time: no.
class ThreadPool {
 public:
  // `threads` workers in all, the caller included; 0 means as many as the machine has cores.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const noexcept;

  // work(0), ..., work(pieces - 1), each exactly once, in any order, on any thread; returns when all are done. `work` must not throw.
  // Results must not depend on which thread did which piece: give every piece its own output and join them in order afterwards.
  void run(std::size_t pieces, const std::function<void(std::size_t)>& work);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace kizzasi
