#include "kizzasi/base/workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

TEST(Workspace, LendsAlignedMemoryThatNobodyElseHas) {
  Workspace workspace;
  std::vector<Workspace::Borrowing<std::uint32_t>> held;
  for (std::uint32_t i = 0; i < 200; ++i) {
    held.push_back(workspace.borrow<std::uint32_t>(i * 7));
    EXPECT_EQ(held.back().size(), i * 7);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(held.back().data()) % 64, 0u);
    std::fill(held.back().values().begin(), held.back().values().end(), i);
  }
  for (std::uint32_t i = 0; i < 200; ++i) {
    for (const std::uint32_t v : held[i].values()) ASSERT_EQ(v, i);
  }
  const auto counters = workspace.counters();
  EXPECT_EQ(counters.borrowings, 200u);
  EXPECT_EQ(counters.heap_calls, 200u);
  EXPECT_EQ(counters.bytes_idle, 0u);
  held.clear();
  EXPECT_EQ(workspace.counters().bytes_lent, 0u);
  EXPECT_EQ(workspace.counters().bytes_idle, counters.bytes_lent);
  EXPECT_EQ(workspace.counters().most_bytes_lent, counters.bytes_lent);
  workspace.trim();
  EXPECT_EQ(workspace.counters().bytes_idle, 0u);
}

TEST(Workspace, GivesAMovedBorrowingBackOnce) {
  Workspace workspace;
  {
    auto first = workspace.borrow<double>(10);
    first[9] = 3;
    auto second = std::move(first);
    EXPECT_EQ(second[9], 3);
    first = std::move(second);
    EXPECT_EQ(first[9], 3);
    EXPECT_EQ(workspace.counters().bytes_lent, 128u);
  }
  EXPECT_EQ(workspace.counters().bytes_lent, 0u);
  EXPECT_EQ(workspace.counters().bytes_idle, 128u);
}

// Eight threads, 100,000 borrowings of changing sizes: nobody sees another's values, and once warm the system is not asked again.
TEST(Workspace, IsWarmAfterTheFirstRound) {
  constexpr std::size_t kThreads = 8, kBorrowings = 12'500;
  Workspace workspace;
  {  // as much of each size as all threads together ever hold
    std::vector<Workspace::Borrowing<std::size_t>> warm;
    for (std::size_t size = 1; size <= 1024; size *= 2) {
      for (std::size_t i = 0; i < 2 * kThreads; ++i) warm.push_back(workspace.borrow<std::size_t>(size));
    }
  }
  const auto before = workspace.counters();
  std::vector<std::thread> threads;
  std::atomic<std::size_t> wrong = 0;
  for (std::size_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      Rng rng(id);
      Workspace::Borrowing<std::size_t> kept;
      std::size_t kept_mark = 0;
      for (std::size_t i = 0; i < kBorrowings; ++i) {
        const std::size_t mark = id * kBorrowings + i;
        auto now = workspace.borrow<std::size_t>(1 + rng.below(1024));
        std::fill(now.values().begin(), now.values().end(), mark);
        for (const std::size_t v : kept.values()) wrong += v != kept_mark;
        kept = std::move(now);
        kept_mark = mark;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto after = workspace.counters();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(after.heap_calls, before.heap_calls);
  EXPECT_EQ(after.borrowings - before.borrowings, kThreads * kBorrowings);
  EXPECT_EQ(after.bytes_lent, 0u);
  EXPECT_EQ(after.bytes_idle, before.bytes_idle);
}

}  // namespace
}  // namespace kizzasi
