// HiPPO-LegS and its normal form beside the tables of lindermanlab/S5 and state-spaces/s4, and by what defines them.
#include "kizzasi/model/state_space/hippo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/model/s4d_spectrum.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

SafetensorsFile tables(const char* name) {
  auto file = read_safetensors(std::string(KIZZASI_SOURCE_DIR "/tests/golden/backbones/") + name);
  EXPECT_TRUE(file) << (file ? "" : file.error().text());
  return file ? std::move(*file) : SafetensorsFile{};
}

Complex number(const std::vector<double>& values, std::size_t i) { return {values[2 * i], values[2 * i + 1]}; }

// The normal part of LegS by its definition: A + P P^T.
double normal_part(std::size_t i, std::size_t k) {
  const auto root = [](std::size_t at) { return std::sqrt(static_cast<double>(2 * at + 1)); };
  const double legs = i > k ? -root(i) * root(k) : i == k ? -static_cast<double>(i + 1) : 0.0;
  return legs + 0.5 * root(i) * root(k);
}

TEST(Hippo, TheEigenvectorsAreThoseOfTheNormalPart) {
  for (const std::size_t n : {2u, 4u, 10u, 64u, 128u}) {
    const NormalLegS legs = normal_legs(n);
    const double scale = std::abs(legs.lambda.front());
    for (std::size_t k = 0; k < n / 2; ++k) {
      EXPECT_LT(k > 0 ? legs.lambda[k - 1].imag() : -1e300, legs.lambda[k].imag());
      EXPECT_LT(legs.lambda[k].imag(), 0);
      double length = 0;
      for (std::size_t i = 0; i < n; ++i) {
        Complex sum = 0;
        for (std::size_t j = 0; j < n; ++j) sum += normal_part(i, j) * legs.vector(j, k);
        EXPECT_NEAR(std::abs(sum - legs.lambda[k] * legs.vector(i, k)), 0, 1e-13 * scale) << n << " " << k;
        length += std::norm(legs.vector(i, k));
      }
      EXPECT_NEAR(length, 1, 1e-13);
    }
    // Together with their conjugates they are unitary.
    for (std::size_t k = 0; k < n / 2; ++k) {
      for (std::size_t l = 0; l < n / 2; ++l) {
        Complex with = 0, against = 0;
        for (std::size_t i = 0; i < n; ++i) {
          with += std::conj(legs.vector(i, k)) * legs.vector(i, l);
          against += legs.vector(i, k) * legs.vector(i, l);
        }
        EXPECT_NEAR(std::abs(with - (k == l ? 1.0 : 0.0)), 0, 1e-12);
        EXPECT_NEAR(std::abs(against), 0, 1e-12);
      }
    }
    // The other way to the same eigenvalues.
    const auto spectrum = s4d_spectrum("legs", n);
    for (std::size_t k = 0; k < n / 2; ++k) EXPECT_NEAR(std::abs(spectrum[n / 2 - 1 - k] - std::conj(legs.lambda[k])), 0, 1e-13 * scale);
  }
}

TEST(Hippo, S5StartsFromThePublishedTables) {
  const SafetensorsFile file = tables("s5/init_tables.io.safetensors");
  for (const std::size_t n : {4u, 8u, 16u, 64u}) {
    const std::string size = std::to_string(n);
    const auto &lambda = file.wide.at("Lambda." + size), &lengths = file.wide.at("absV." + size);
    const NormalLegS legs = normal_legs(n);
    for (std::size_t k = 0; k < n / 2; ++k) {
      EXPECT_NEAR(std::abs(number(lambda, k) - legs.lambda[k]), 0, 1e-12 * std::abs(legs.lambda[k])) << n;
      EXPECT_NEAR(std::abs(number(lambda, n - 1 - k) - std::conj(legs.lambda[k])), 0, 1e-12 * std::abs(legs.lambda[k])) << n;
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(std::abs(legs.vector(i, k)), lengths[i * n + k], 1e-12);
        EXPECT_NEAR(std::abs(legs.vector(i, k)), lengths[i * n + n - 1 - k], 1e-12);
      }
    }
    if (n == 64) continue;
    const auto& whole = file.wide.at("normal_part." + size);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < n / 2; ++k) sum += 2 * (legs.vector(i, k) * legs.lambda[k] * std::conj(legs.vector(j, k))).real();
        EXPECT_NEAR(sum, whole[i * n + j], 1e-12 * static_cast<double>(n));
        EXPECT_NEAR(normal_part(i, j), whole[i * n + j], 1e-12 * static_cast<double>(n));
      }
    }
  }
}

TEST(Hippo, S4StartsFromThePublishedTables) {
  const SafetensorsFile file = tables("s4/hippo_tables.io.safetensors");
  for (const std::size_t n : {4u, 8u, 64u}) {
    const std::string size = std::to_string(n);
    const auto &a = file.wide.at("A." + size), &b = file.wide.at("B." + size), &p = file.wide.at("P." + size);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(b[i], std::sqrt(2.0 * static_cast<double>(i) + 1), 1e-14);
      EXPECT_NEAR(p[i], std::sqrt(static_cast<double>(i) + 0.5), 1e-14);
      for (std::size_t k = 0; k < n; ++k) EXPECT_NEAR(a[i * n + k] + p[i] * p[k], normal_part(i, k), 1e-12 * static_cast<double>(n));
    }
    const NormalLegS legs = normal_legs(n);
    const std::vector<Complex> b_turned = legs.turned_root(1), p_turned = legs.turned_root(std::sqrt(0.5));
    const auto &w = file.wide.at("nplr.W." + size), &product = file.wide.at("nplr.PconjB." + size),
               &b_size = file.wide.at("nplr.absB." + size), &p_size = file.wide.at("nplr.absP." + size);
    for (std::size_t k = 0; k < n / 2; ++k) {
      const double scale = std::abs(legs.lambda[k]);
      EXPECT_NEAR(std::abs(number(w, k) - legs.lambda[k]), 0, 1e-11 * scale) << n;
      EXPECT_NEAR(std::abs(number(product, k) - p_turned[k] * std::conj(b_turned[k])), 0, 1e-10 * scale) << n;
      EXPECT_NEAR(b_size[k], std::abs(b_turned[k]), 1e-10 * scale);
      EXPECT_NEAR(p_size[k], std::abs(p_turned[k]), 1e-10 * scale);
    }
  }
}

}  // namespace
}  // namespace kizzasi
