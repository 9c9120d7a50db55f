#include "kizzasi/base/thread_pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "kizzasi/base/float_env.h"

namespace kizzasi {

struct ThreadPool::Shared {
  std::mutex mutex;
  std::condition_variable begin, end;
  const std::function<void(std::size_t)>* work = nullptr;
  std::size_t next = 0, pieces = 0, busy = 0;
  bool stop = false;
  std::vector<std::jthread> workers;

  // Takes pieces until none is left; the lock is held outside `work` only for the count.
  void drain(std::unique_lock<std::mutex>& lock) {
    while (next < pieces) {
      const std::size_t piece = next++;
      ++busy;
      const auto* job = work;
      lock.unlock();
      (*job)(piece);
      lock.lock();
      if (--busy == 0 && next >= pieces) end.notify_all();
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) : shared_(std::make_unique<Shared>()) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < threads; ++i) {
    shared_->workers.emplace_back([shared = shared_.get()] {
      const FloatEnv guard;
      std::unique_lock lock(shared->mutex);
      for (;;) {
        shared->begin.wait(lock, [&] { return shared->stop || shared->next < shared->pieces; });
        if (shared->stop) return;
        shared->drain(lock);
      }
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->begin.notify_all();
}

std::size_t ThreadPool::threads() const noexcept { return shared_->workers.size() + 1; }

void ThreadPool::run(std::size_t pieces, const std::function<void(std::size_t)>& work) {
  if (pieces == 0) return;
  const FloatEnv guard;
  std::unique_lock lock(shared_->mutex);
  shared_->work = &work;
  shared_->next = 0;
  shared_->pieces = pieces;
  if (pieces > 1) shared_->begin.notify_all();
  shared_->drain(lock);
  shared_->end.wait(lock, [&] { return shared_->busy == 0 && shared_->next >= shared_->pieces; });
  shared_->pieces = 0;
  shared_->next = 0;
}

}  // namespace kizzasi
