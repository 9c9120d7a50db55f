#include "kizzasi/kernels/associative_scan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kizzasi/kernels/every_target_test.h"
#include "kizzasi/kernels/ssm_scan.h"

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

// ---- ssm_scan

struct SsmCase {
  std::size_t rows, channels;
  std::vector<float> a, x, start;
  std::vector<std::uint8_t> begins;

  SsmCase(std::size_t r, std::size_t e, bool packed, unsigned seed)
      : rows(r),
        channels(e),
        a(uniform_values(r * e, -1.0f, 1.0f, seed)),
        x(normal_values(r * e, 1.0f, seed + 1)),
        start(normal_values(e, 1.0f, seed + 2)) {
    std::mt19937 engine(seed);
    if (packed) begins.resize(rows);
    for (auto& b : begins) b = engine() % (1 + seed % 30) == 0;
  }
  MatrixView decay() const { return {a.data(), rows, channels}; }
  MatrixView input() const { return {x.data(), rows, channels}; }
};

TEST(SsmScan, IsTheRecurrenceForAnyPiecesOfWholeAndPackedSequences) {
  for (unsigned seed = 1; seed < 200; ++seed) {
    const SsmCase c(1 + seed * 7 % 90, 1 + seed % 19, seed % 2 == 0, seed);
    std::vector<double> h(c.start.begin(), c.start.end()), truth;
    for (std::size_t t = 0; t < c.rows; ++t) {
      for (std::size_t e = 0; e < c.channels; ++e) {
        if (!c.begins.empty() && c.begins[t] != 0) h[e] = 0;
        h[e] = double{c.a[t * c.channels + e]} * h[e] + c.x[t * c.channels + e];
        truth.push_back(h[e]);
      }
    }
    for (const std::size_t pieces : {1, 2, 3, 7, 64, 200}) {
      std::vector<float> scratch(2 * pieces * c.channels), state = c.start, y = c.x;  // in place
      ssm_scan(c.decay(), MatrixView(y.data(), c.rows, c.channels), c.begins, state, MatrixSpan(y.data(), c.rows, c.channels), pieces,
               scratch, kInOrder);
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], truth[i], 2e-6 * std::max(1.0, std::abs(truth[i]))) << seed << " " << i;
      for (std::size_t e = 0; e < c.channels; ++e) ASSERT_NEAR(state[e], truth[truth.size() - c.channels + e], 1e-5);
    }
  }
}

TEST(SsmScan, OfPackedSequencesAndOfABatchHasTheBitsOfEachAlone) {
  const SsmCase c(120, 5, true, 12);
  const auto alone = [&](std::size_t first, std::size_t end, std::vector<float> h) {
    std::vector<float> y((end - first) * c.channels);
    gated_scan(c.decay().slice(first, end - first), c.input().slice(first, end - first), h, {y.data(), end - first, c.channels});
    return y;
  };
  std::vector<float> truth, scratch(2 * c.channels), h = c.start, y(c.x.size());
  for (std::size_t t = 0; t < c.rows;) {
    std::size_t end = t + 1;
    while (end < c.rows && c.begins[end] == 0) ++end;
    const auto part = alone(t, end, t == 0 && c.begins[0] == 0 ? c.start : std::vector<float>(c.channels));
    truth.insert(truth.end(), part.begin(), part.end());
    t = end;
  }
  ssm_scan(c.decay(), c.input(), c.begins, h, {y.data(), c.rows, c.channels}, 1, scratch, kInOrder);
  EXPECT_EQ(bits(y), bits(truth));

  std::vector<float> batch, states(6 * c.channels);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto part = alone(i * 20, i * 20 + 20, std::vector<float>(c.channels));
    batch.insert(batch.end(), part.begin(), part.end());
  }
  ssm_scan_batch(c.decay(), c.input(), 20, states, {y.data(), c.rows, c.channels}, Threads{3});
  EXPECT_EQ(bits(y), bits(batch));
}

TEST(SsmScan, GivesTheSameBitsForAnyNumberOfThreadsAndKeepsInfinityInItsSequence) {
  SsmCase c(1000, 3, true, 5);
  c.x[100 * 3] = std::numeric_limits<float>::infinity();
  std::size_t next = 101;
  while (c.begins[next] == 0) ++next;
  std::vector<float> first;
  for (const std::size_t threads : {1, 2, 3, 8}) {
    std::vector<float> scratch(2 * 13 * 3), state = c.start, y(c.x.size());
    ssm_scan(c.decay(), c.input(), c.begins, state, {y.data(), c.rows, 3}, 13, scratch, Threads{threads});
    if (first.empty()) first = y;
    ASSERT_EQ(bits(y), bits(first));
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::isfinite(y[i]), i % 3 != 0 || i / 3 < 100 || i / 3 >= next) << i / 3;
    }
  }
}

}  // namespace
}  // namespace kizzasi::kernels
