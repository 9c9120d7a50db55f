#include "kizzasi/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace kizzasi {
namespace {

TEST(ThreadPool, DoesEveryPieceExactlyOnceForAnyNumberOfThreads) {
  for (const std::size_t threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (std::size_t pieces = 0; pieces < 60; ++pieces) {
      std::vector<std::atomic<int>> done(pieces);
      pool.run(pieces, [&](std::size_t i) { ++done[i]; });
      for (const auto& count : done) EXPECT_EQ(count.load(), 1);
    }
  }
}

}  // namespace
}  // namespace kizzasi
