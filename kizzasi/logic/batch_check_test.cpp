#include "kizzasi/logic/batch_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

Schema channels() { return {{{"a", "", Role::kTarget}, {"b", "", Role::kTarget}, {"c", "", Role::kTarget}}, 1'000'000'000, ""}; }

std::vector<ConstraintText> texts(std::initializer_list<const char*> list) {
  std::vector<ConstraintText> out;
  for (const char* that : list) out.push_back({.name = that, .that = that});
  return out;
}

// The answer of one guard that holds all constraints.
struct Uncached {
  std::unique_ptr<Guard> guard;
  std::vector<std::byte> state;
  GuardReport report;
  explicit Uncached(std::span<const ConstraintText> set)
      : guard(std::move(*compile_guard(channels(), set, {}))), state(guard->state_bytes()) {
    guard->reset(state);
    guard->prepare(report);
  }
  Obeys operator()(std::span<const double> point) {
    (void)guard->check(state, 0, point, report);
    const auto any = [](const std::vector<std::uint8_t>& flags) { return std::find(flags.begin(), flags.end(), 1) != flags.end(); };
    return any(report.broken) ? Obeys::kNo : any(report.unknown) ? Obeys::kUnknown : Obeys::kYes;
  }
};

TEST(BatchCheck, EqualsTheUncachedAnswerOnAMillionPointsEdgesIncluded) {
  const auto set = texts({"-1.5 <= a <= 2", "a + 2 * b <= 3.1", "norm(a, b, c) <= 2.7", "a > 1 -> b >= 0.3", "abs(b - c) <= 2.2 or c < 0.1",
                          "max(a, b) >= -1.2", "a * a + b * b <= 7", "b / 3 - c < 1.3"});
  Uncached uncached(set);
  Rng rng(31);
  std::size_t points = 0, answers[3] = {};
  for (const double width : {0.25, 0.1, 1.0 / 3}) {
    auto cached = BatchChecker::make(channels(), set, {.cell = {width, width, width}, .cells = 4096});
    ASSERT_TRUE(cached) << cached.error().text();
    constexpr std::size_t kBatch = 1000;
    std::vector<double> batch(3 * kBatch);
    std::vector<Obeys> said(kBatch);
    for (int round = 0; round < 340; ++round) {
      for (double& v : batch) {
        v = rng.uniform(-3, 3);
        const std::uint64_t kind = rng.below(8);
        if (kind == 0) v = std::round(v / width) * width;  // an edge of cells
        if (kind == 1) v = std::nextafter(std::round(v / width) * width, rng.below(2) == 0 ? -10 : 10);
        if (kind == 2) v = std::round(v * 10) / 10;  // an edge of constraints
        if (rng.below(400) == 0) v = std::array{std::nan(""), HUGE_VAL, -1e300, 5e-324}[rng.below(4)];
      }
      ASSERT_TRUE(cached->check(batch, said));
      for (std::size_t i = 0; i < kBatch; ++i) {
        const Obeys wanted = uncached(std::span(batch).subspan(3 * i, 3));
        ASSERT_EQ(said[i], wanted) << batch[3 * i] << " " << batch[3 * i + 1] << " " << batch[3 * i + 2];
        ++answers[static_cast<std::size_t>(wanted)];
      }
      points += kBatch;
    }
    EXPECT_GT(cached->from_cache(), 340 * kBatch / 4);
  }
  EXPECT_GE(points, 1'000'000u);
  for (const std::size_t n : answers) EXPECT_GT(n, 500u);
}

// One that is broken often comes to be asked first, so that most points cost one evaluation.
TEST(BatchCheck, AsksFirstWhatSettlesMost) {
  const auto set = texts({"a <= 100", "b <= 100", "c <= 100", "a + b <= -1"});
  auto checker = BatchChecker::make(channels(), set);
  ASSERT_TRUE(checker);
  std::vector<double> batch(3 * 2000, 0.5);
  std::vector<Obeys> said(2000);
  ASSERT_TRUE(checker->check(batch, said));
  EXPECT_LE(checker->evaluated(), 256u * 4 + (2000 - 256));
  EXPECT_EQ(said[0], Obeys::kNo);
  EXPECT_EQ(checker->from_cache(), 0u);
}

TEST(BatchCheck, WhatLooksBackOrIsMissingIsNotJudged) {
  auto checker = BatchChecker::make(channels(), texts({"rate(a) <= 1", "b <= 2", "a == b + c"}), {.cell = {1, 1, 1}});
  ASSERT_TRUE(checker);
  std::vector<Obeys> said(2);
  ASSERT_TRUE(checker->check(std::vector<double>{2, 1, 1, 2, 1, 1.5}, said));
  EXPECT_EQ(said[0], Obeys::kUnknown);
  EXPECT_EQ(said[1], Obeys::kNo);
  EXPECT_FALSE(checker->check(std::vector<double>{2, 1}, said));
  EXPECT_FALSE(BatchChecker::make(channels(), texts({"a <= 1"}), {.cell = {1, 0, 1}}));
  EXPECT_FALSE(BatchChecker::make(channels(), texts({"a <= 1"}), {.cell = {1}}));
  EXPECT_FALSE(BatchChecker::make(channels(), texts({"x <= 1"})));
}

}  // namespace
}  // namespace kizzasi
