#include "kizzasi/kernels/associative_scan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

// Pieces on several threads, last first.
struct Threads {
  std::size_t threads;
  template <typename Work>
  void operator()(std::size_t count, Work work) const {
    std::atomic<std::size_t> left = count;
    std::vector<std::thread> pool;
    for (std::size_t i = 0; i < threads; ++i) {
      pool.emplace_back([&] {
        for (std::size_t now = left; now > 0;) {
          if (left.compare_exchange_weak(now, now - 1)) work(now - 1);
        }
      });
    }
    for (std::thread& thread : pool) thread.join();
  }
};

const auto append = [](const std::string& a, const std::string& b) { return a + b; };  // associative, far from commutative

std::vector<std::string> letters(std::size_t size) {
  std::vector<std::string> x;
  for (std::size_t i = 0; i < size; ++i) x.emplace_back(1, static_cast<char>('a' + i * 7 % 26));
  return x;
}

TEST(AssociativeScan, HoldsEveryPrefixForAnyPieces) {
  for (const std::size_t size : {0, 1, 2, 3, 10, 64, 101}) {
    for (const std::size_t pieces : {1, 2, 3, 7, 64, 200}) {
      auto x = letters(size), whole = letters(size);
      associative_scan(std::span(x), append, pieces, kInOrder);
      std::string prefix;
      for (std::size_t i = 0; i < size; ++i) {
        prefix += whole[i];
        ASSERT_EQ(x[i], prefix) << size << " in " << pieces;
      }
    }
  }
}

TEST(AssociativeScan, BeginsAgainWhereASegmentBegins) {
  std::mt19937 engine(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t size = 1 + engine() % 90, pieces = 1 + engine() % 12;
    std::vector<std::uint8_t> begins(size);
    for (auto& b : begins) b = engine() % (1 + round % 20) == 0;
    const auto single = letters(size);
    auto x = letters(size), in_order = x;
    segmented_scan(std::span(x), std::span<const std::uint8_t>(begins), append, pieces, kInOrder);
    segmented_scan(std::span(in_order), std::span<const std::uint8_t>(begins), append);
    std::string running;
    for (std::size_t i = 0; i < size; ++i) {
      running = begins[i] != 0 ? single[i] : running + single[i];
      ASSERT_EQ(x[i], running) << size << " in " << pieces << " at " << i;
      ASSERT_EQ(in_order[i], running);
    }
  }
}

TEST(AssociativeScan, KeepsTheSequencesOfABatchApart) {
  auto x = letters(60);
  associative_scan_batch(std::span(x), 12, append, kInOrder);
  const auto single = letters(60);
  for (std::size_t i = 0; i < 60; i += 12) {
    std::string prefix;
    for (std::size_t t = 0; t < 12; ++t) ASSERT_EQ(x[i + t], prefix += single[i + t]);
  }
}

TEST(AssociativeScan, OfAffineStepsIsTheRecurrence) {
  const auto decay = uniform_values(1000, 0.5f, 1.0f, 1), input = normal_values(1000, 1.0f, 2);
  std::vector<AffineStep<double>> steps;
  for (std::size_t i = 0; i < 1000; ++i) steps.push_back({decay[i], input[i]});
  associative_scan(std::span(steps), kThenStep, 16, Threads{4});
  double h = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    h = decay[i] * h + input[i];
    ASSERT_NEAR(steps[i].shift, h, 1e-12);
  }
}

TEST(AssociativeScan, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto values = normal_values(5000, 1.0f, 3);
  const auto add = [](float a, float b) { return a + b; };
  auto first = values;
  associative_scan(std::span(first), add, 13, kInOrder);
  for (const std::size_t threads : {1, 2, 3, 8}) {
    auto x = values;
    associative_scan(std::span(x), add, 13, Threads{threads});
    ASSERT_EQ(bits(x), bits(first));
  }
}

}  // namespace
}  // namespace kizzasi::kernels
