#include "kizzasi/kernels/fft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

// The spectrum by its definition, in double: (n, lanes).
std::vector<double> spectrum(const std::vector<float>& re, const std::vector<float>& im, std::size_t n, std::size_t lanes, bool imaginary) {
  std::vector<double> out(n * lanes);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t t = 0; t < n; ++t) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(k * t % n) / static_cast<double>(n);
      const double c = std::cos(angle), s = std::sin(angle);
      for (std::size_t i = 0; i < lanes; ++i) {
        const double a = double{re[t * lanes + i]}, b = double{im[t * lanes + i]};
        out[k * lanes + i] += imaginary ? a * s + b * c : a * c - b * s;
      }
    }
  }
  return out;
}

TEST(Fft, IsItsDefinitionOnEveryTarget) {
  on_every_target([] {
    for (std::size_t n = 1; n <= 512; n *= 2) {
      const Fft<float> fft(n);
      for (const std::size_t lanes : {1u, 3u, 8u, 19u}) {
        const auto re = normal_values(n * lanes, 1.0f, 1), im = normal_values(n * lanes, 1.0f, 2);
        const auto real = spectrum(re, im, n, lanes, false), imaginary = spectrum(re, im, n, lanes, true);
        auto x = re, y = im;
        fft.forward(x.data(), y.data(), lanes);
        const double size = std::sqrt(static_cast<double>(n));
        for (std::size_t k = 0; k < n; ++k) {
          for (std::size_t i = 0; i < lanes; ++i) {
            const std::size_t at = fft.place_of(k) * lanes + i;
            ASSERT_NEAR(x[at], real[k * lanes + i], 2e-6 * size) << n << " " << lanes;
            ASSERT_NEAR(y[at], imaginary[k * lanes + i], 2e-6 * size) << n << " " << lanes;
          }
        }
        fft.inverse(x.data(), y.data(), lanes);
        for (std::size_t i = 0; i < n * lanes; ++i) {
          ASSERT_NEAR(x[i] / static_cast<float>(n), re[i], 3e-6) << n << " " << lanes;
          ASSERT_NEAR(y[i] / static_cast<float>(n), im[i], 3e-6) << n << " " << lanes;
        }
      }
    }
  });
}

TEST(Fft, EqualsThePlainLoopsAndASignalAloneHasTheBitsOfOneAmongMany) {
  on_every_target([] {
    for (std::size_t n = 1; n <= 4096; n *= 4) {
      for (const std::size_t lanes : {1u, 5u, 16u, 37u}) {
        const Fft<float> fft(n);
        std::vector<float> cos(n), sin(n);
        for (std::size_t k = 0; k < n; ++k) {
          const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
          cos[k] = static_cast<float>(std::cos(angle)), sin[k] = static_cast<float>(std::sin(angle));
        }
        const auto re = normal_values(n * lanes, 1.0f, 3), im = normal_values(n * lanes, 1.0f, 4);
        for (const bool inverse : {false, true}) {
          auto x = re, y = im, px = re, py = im;
          const auto run = [&](std::vector<float>& a, std::vector<float>& b, std::size_t width) {
            inverse ? fft.inverse(a.data(), b.data(), width) : fft.forward(a.data(), b.data(), width);
          };
          run(x, y, lanes);
          fft_plain(inverse, n, cos.data(), sin.data(), px.data(), py.data(), lanes);
          const float size = 3e-6f * std::sqrt(static_cast<float>(n));
          for (std::size_t i = 0; i < n * lanes; ++i) {
            ASSERT_NEAR(x[i], px[i], size);
            ASSERT_NEAR(y[i], py[i], size);
          }
          for (std::size_t c = 0; c < lanes; c += 4) {
            std::vector<float> a(n), b(n);
            for (std::size_t t = 0; t < n; ++t) a[t] = re[t * lanes + c], b[t] = im[t * lanes + c];
            run(a, b, 1);
            for (std::size_t t = 0; t < n; ++t) {
              ASSERT_EQ(a[t], x[t * lanes + c]) << n << " " << lanes;
              ASSERT_EQ(b[t], y[t * lanes + c]) << n << " " << lanes;
            }
          }
        }
      }
    }
  });
}

TEST(Fft, ErrorsDoNotGrowWithTheLength) {
  const std::size_t n = 65536;
  const Fft<float> fft(n);
  const Fft<double> exact(n);
  auto re = normal_values(n, 1.0f, 5), im = normal_values(n, 1.0f, 6);
  std::vector<double> x(re.begin(), re.end()), y(im.begin(), im.end());
  fft.forward(re.data(), im.data(), 1);
  exact.forward(x.data(), y.data(), 1);
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    apart += std::pow(re[i] - x[i], 2) + std::pow(im[i] - y[i], 2);
    size += x[i] * x[i] + y[i] * y[i];
  }
  EXPECT_LT(std::sqrt(apart / size), 3e-7);
}

TEST(MultiplySpectra, IsTheComplexProduct) {
  on_every_target([] {
    for (const std::size_t count : {1u, 7u, 16u, 33u}) {
      const auto ar = normal_values(count, 1.0f, 1), ai = normal_values(count, 1.0f, 2), br = normal_values(count, 1.0f, 3),
                 bi = normal_values(count, 1.0f, 4), cr = normal_values(count, 1.0f, 5), ci = normal_values(count, 1.0f, 6);
      for (const bool conjugate : {false, true}) {
        for (const bool add : {false, true}) {
          auto a = ar, b = ai, c = br, d = bi, e = cr, f = ci;
          multiply_spectra(count, {a.data(), b.data()}, conjugate, {c.data(), d.data()}, add, {e.data(), f.data()});
          for (std::size_t i = 0; i < count; ++i) {
            const double s = conjugate ? -double{ai[i]} : double{ai[i]};
            EXPECT_NEAR(e[i], double{ar[i]} * br[i] - s * bi[i] + (add ? double{cr[i]} : 0), 2e-6);
            EXPECT_NEAR(f[i], double{ar[i]} * bi[i] + s * br[i] + (add ? double{ci[i]} : 0), 2e-6);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace kizzasi::kernels
