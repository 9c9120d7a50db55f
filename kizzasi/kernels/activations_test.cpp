#include "kizzasi/kernels/activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Fast = void (*)(std::span<const float>, std::span<float>) noexcept;
using Truth = double (*)(double);

struct Activation {
  const char* name;
  Fast fast;
  Truth truth;
  double relative;  // error allowed, of the value
};

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

const Activation kActivations[] = {
    {"exp", exp, [](double v) { return std::exp(v); }, 1.5e-7},
    {"sigmoid", sigmoid, logistic, 2.5e-7},
    {"silu", silu, [](double v) { return v * logistic(v); }, 3e-7},
    {"tanh", tanh, [](double v) { return std::tanh(v); }, 2.5e-7},
    {"softplus", softplus, [](double v) { return v > 20 ? v : std::log1p(std::exp(v)); }, 4e-7},
    // relative to |x|, which is what a layer sees; the tails are held to 1e-5 of themselves below
    {"gelu", gelu, [](double v) { return 0.5 * v * std::erfc(-v / std::numbers::sqrt2); }, 3e-7},
    {"gelu_tanh", gelu_tanh,
     [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))); }, 3e-7},
    {"relu", relu, [](double v) { return std::max(v, 0.0); }, 0},
};

// Every size of a value, both signs.
std::vector<float> arguments(float most) {
  std::vector<float> x = {0.0f, -0.0f};
  for (double v = 1e-30; v < most; v *= 1.003) {
    x.push_back(static_cast<float>(v));
    x.push_back(static_cast<float>(-v));
  }
  return x;
}

TEST(Activations, AreWithinAFewUnitsInTheLastPlaceOnEveryTarget) {
  const std::vector<float> x = arguments(85.0f);
  on_every_target([&] {
    for (const Activation& a : kActivations) {
      std::vector<float> out(x.size());
      a.fast(x, out);
      const bool gelu_like = std::string_view(a.name).starts_with("gelu");
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double truth = a.truth(double{x[i]});
        const double size = gelu_like ? std::abs(double{x[i]}) : std::abs(truth);
        ASSERT_NEAR(out[i], truth, a.relative * size + 1e-38) << a.name << "(" << x[i] << ")";
      }
    }
  });
}

TEST(Activations, KeepTheTailOfGelu) {
  on_every_target([] {
    for (float x = -12.0f; x < 0; x += 0.01f) {
      float fast = 0;
      gelu({&x, 1}, {&fast, 1});
      const double truth = 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
      ASSERT_NEAR(fast, truth, 1e-5 * std::abs(truth)) << x;
    }
  });
}

TEST(Activations, GiveTheSameBitsWhereverAnElementStands) {
  on_every_target([] {
    for (const Activation& a : kActivations) {
      for (std::size_t size = 1; size <= 70; ++size) {
        const auto x = normal_values(size, 3.0f, static_cast<unsigned>(size));
        std::vector<float> whole(size), alone(size);
        a.fast(x, whole);
        for (std::size_t i = 0; i < size; ++i) a.fast({&x[i], 1}, {&alone[i], 1});
        ASSERT_EQ(bits(whole), bits(alone)) << a.name << " " << size;
        auto in_place = x;
        a.fast(in_place, in_place);
        ASSERT_EQ(bits(whole), bits(in_place)) << a.name << " " << size;
      }
    }
  });
}

TEST(Activations, KeepNan) {
  on_every_target([] {
    for (const Activation& a : kActivations) {
      std::vector<float> x(19, kNan), out(19, 0.0f);
      a.fast(x, out);
      for (const float v : out) ASSERT_TRUE(v != v) << a.name;
    }
  });
}

TEST(Activations, HaveTheirLimits) {
  on_every_target([] {
    const auto at = [](Fast f, float x) {
      float out = 0;
      f({&x, 1}, {&out, 1});
      return out;
    };
    EXPECT_EQ(at(exp, -kInfinity), 0.0f);
    EXPECT_EQ(at(exp, kInfinity), kInfinity);
    EXPECT_EQ(at(exp, 0.0f), 1.0f);
    EXPECT_EQ(at(exp, -200.0f), 0.0f);
    EXPECT_EQ(at(exp, 100.0f), kInfinity);
    EXPECT_EQ(at(sigmoid, -kInfinity), 0.0f);
    EXPECT_EQ(at(sigmoid, kInfinity), 1.0f);
    EXPECT_EQ(at(sigmoid, 0.0f), 0.5f);
    EXPECT_EQ(at(tanh, -kInfinity), -1.0f);
    EXPECT_EQ(at(tanh, kInfinity), 1.0f);
    EXPECT_EQ(at(silu, -1e30f), 0.0f);
    EXPECT_EQ(at(silu, 1e30f), 1e30f);
    EXPECT_EQ(at(softplus, -kInfinity), 0.0f);
    EXPECT_EQ(at(softplus, kInfinity), kInfinity);
    EXPECT_EQ(at(softplus, 20.5f), 20.5f);
    EXPECT_EQ(at(gelu, -1e30f), 0.0f);
    EXPECT_EQ(at(gelu, 1e18f), 1e18f);
    EXPECT_EQ(at(gelu_tanh, -100.0f), 0.0f);
    EXPECT_EQ(at(gelu_tanh, 100.0f), 100.0f);
  });
}

TEST(Activations, GiveTheSameBitsOnEveryTargetThatFuses) {
  const std::vector<float> x = arguments(80.0f);
  for (const Activation& a : kActivations) {
    expect_same_bits_where_fused([&] {
      std::vector<float> out(x.size());
      a.fast(x, out);
      return out;
    });
  }
}

TEST(MulSilu, IsTheProductOfBoth) {
  on_every_target([] {
    for (std::size_t size = 1; size <= 70; ++size) {
      const auto a = normal_values(size, 1.0f, 1), b = normal_values(size, 3.0f, 2);
      std::vector<float> out(size), gate(size);
      mul_silu(a, b, out);
      silu(b, gate);
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(out[i], a[i] * gate[i]);
    }
  });
}

TEST(Softmax, EqualsTheQuotientInDoubleAndSumsToOne) {
  on_every_target([] {
    for (std::size_t size = 1; size <= 300; ++size) {
      for (const float offset : {0.0f, 500.0f, -3000.0f}) {
        auto x = normal_values(size, 4.0f, static_cast<unsigned>(size));
        for (float& v : x) v += offset;
        std::vector<float> out(size);
        softmax(x, out);
        const double most = *std::max_element(x.begin(), x.end());
        double total = 0, sum = 0;
        for (const float v : x) total += std::exp(v - most);
        for (std::size_t i = 0; i < size; ++i) {
          ASSERT_NEAR(out[i], std::exp(x[i] - most) / total, 3e-6 * std::exp(x[i] - most) / total + 1e-38);
          sum += out[i];
        }
        ASSERT_NEAR(sum, 1.0, 1e-6);
      }
    }
  });
}

TEST(Softmax, GivesNothingToMinusInfinityAndKeepsNan) {
  on_every_target([] {
    std::vector<float> x = {1.0f, -kInfinity, 1.0f, -kInfinity}, out(4);
    softmax(x, out);
    EXPECT_EQ(out, (std::vector<float>{0.5f, 0.0f, 0.5f, 0.0f}));
    for (std::size_t at = 0; at < 4; ++at) {
      std::vector<float> broken(4, 1.0f);
      broken[at] = kNan;
      softmax(broken, out);
      for (const float v : out) EXPECT_TRUE(v != v) << at;
    }
  });
}

TEST(Dot, IsTheSumInDoubleInAnOrderOfTheLengthAlone) {
  on_every_target([] {
    for (std::size_t size = 0; size <= 300; ++size) {
      const auto a = normal_values(size + 3, 1.0f, 3), b = normal_values(size + 3, 1.0f, 4);
      double truth = 0, most = 0;
      for (std::size_t i = 0; i < size; ++i) {
        truth += double{a[i]} * b[i];
        most += std::abs(double{a[i]} * b[i]);
      }
      const float first = dot({a.data(), size}, {b.data(), size});
      ASSERT_NEAR(first, truth, 1e-6 * most);
      std::vector<float> moved(a.begin(), a.end());
      std::rotate(moved.begin(), moved.end() - 3, moved.end());  // the same values, elsewhere in memory
      ASSERT_EQ(first, dot({moved.data() + 3, size}, {b.data(), size}));
    }
  });
  for (const std::size_t size : {1, 31, 32, 33, 299}) {
    expect_same_bits_where_fused([&] {
      const auto a = normal_values(size, 1.0f, 3), b = normal_values(size, 1.0f, 4);
      return std::vector<float>{dot(a, b)};
    });
  }
}

}  // namespace
}  // namespace kizzasi::kernels
