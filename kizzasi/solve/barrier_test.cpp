#include "kizzasi/solve/barrier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/published_test.h"

namespace kizzasi::solve {
namespace {

TEST(Barrier, GivesThePublishedSteps) {
  for (const Json& line : published("cbf.jsonl", "cbf/cbf.jsonl")) {
    const std::string &id = line.find("id")->string(), &kind = line.find("kind")->string();
    const auto nominal = numbers(line.find("u_nominal")), x = numbers(line.find("x"));
    const auto number_at = [&](const char* key) { return line.find(key)->number(); };
    std::vector<double> slope(nominal.size()), slopes, least;
    double h = 0;
    if (kind == "relative degree two") {
      const std::vector<double> lglfh{-1};
      h = number_at("p_max") - x[0];
      least.push_back(barrier_second_degree(h, -x[1], 0, lglfh, number_at("alpha"), number_at("alpha2"), slope));
      slopes = slope;
      EXPECT_NEAR(h, number_at("h"), 1e-14);
    } else if (kind == "discrete") {
      least.push_back(barrier_discrete(numbers(line.find("A")), numbers(line.find("B")), x, numbers(line.find("a")), number_at("b"),
                                       number_at("gamma"), slope, h));
      slopes = slope;
      EXPECT_NEAR(h, number_at("h"), 1e-14);
    } else {
      const auto heights = line.find("h")->is_array() ? numbers(line.find("h")) : std::vector<double>{number_at("h")};
      const auto lgh = numbers(line.find("Lgh"));
      for (std::size_t i = 0; i < heights.size(); ++i) {
        const std::span<const double> row(lgh.data() + i * nominal.size(), nominal.size());
        const double drift = line.find("Lfh") == nullptr ? 0 : number_at("Lfh");
        least.push_back(barrier_continuous(heights[i], drift, row, number_at("alpha"), slope));
        slopes.insert(slopes.end(), slope.begin(), slope.end());
      }
    }
    const auto u_min = numbers(line.find("u_min")), u_max = numbers(line.find("u_max"));
    BarrierFilter filter;
    filter.prepare(nominal.size(), least.size());
    std::vector<double> u(nominal.size());
    const Status status = filter.filter(nominal, slopes, least, u_min, u_max, u);
    ASSERT_EQ(name(status), line.find("status")->string()) << id;
    if (status != Status::kOptimal) continue;
    const auto expected = numbers(line.find("u"));
    double size = 1;
    for (const double v : expected) size = std::max(size, 1 + std::abs(v));
    for (std::size_t i = 0; i < u.size(); ++i) EXPECT_NEAR(u[i], expected[i], 1e-12 * size) << id << " " << kind;
    if (line.find("multiplier")->is_array()) {
      const auto m = numbers(line.find("multiplier"));
      for (std::size_t i = 0; i < least.size(); ++i) EXPECT_NEAR(filter.barrier_multipliers()[i], m[i], 1e-12) << id;
      for (std::size_t i = 0; i < u.size(); ++i) EXPECT_NEAR(filter.bound_multipliers()[i], m[least.size() + i], 1e-12) << id;
    } else {
      EXPECT_NEAR(-filter.barrier_multipliers()[0], number_at("multiplier"), 1e-12) << id;
    }
    if (line.find("h_next") != nullptr) {
      EXPECT_NEAR((1 - number_at("gamma")) * h + slope[0] * u[0] - least[0], number_at("h_next"), 1e-12) << id;
    }
    for (std::size_t i = 0; i < least.size(); ++i) {  // as a user would check it
      double value = 0;
      for (std::size_t j = 0; j < u.size(); ++j) value += slopes[i * u.size() + j] * u[j];
      EXPECT_GE(value, least[i]) << id;
    }
  }
}

// A double integrator driven at a wall by a hostile input never passes it.
TEST(Barrier, KeepsASystemInsideForAlways) {
  Rng rng(41);
  const std::vector<double> a{1, 0.1, 0, 1}, b{0, 0.1}, wall{1, 0};
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> x{-2 * static_cast<double>(rng.below(100)) / 100, 0.5}, slope(1), u(1);
    BarrierFilter filter;
    filter.prepare(1, 1);
    for (int step = 0; step < 500; ++step) {
      const std::vector<double> nominal{10 * rng.normal() + 5}, least{barrier_discrete_second_degree(a, b, x, wall, 1.0, 0.3, 0.4, slope)};
      ASSERT_EQ(filter.filter(nominal, slope, least, {}, {}, u), Status::kOptimal);
      x = {x[0] + 0.1 * x[1], x[1] + 0.1 * u[0]};
      ASSERT_LE(x[0], 1 + 1e-12) << trial << " step " << step;
    }
  }
}

}  // namespace
}  // namespace kizzasi::solve
