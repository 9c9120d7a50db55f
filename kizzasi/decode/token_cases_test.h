// The published cases of sampling, and how counts are held against a law.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/golden/cases.h"

namespace kizzasi {

inline std::vector<Json> sampling_cases(std::string_view kind) { return published_cases("sampling", kind); }

inline std::vector<std::uint32_t> tokens_of(const Json& list) {
  std::vector<std::uint32_t> out;
  for (const Json& item : list.items()) out.push_back(static_cast<std::uint32_t>(item.integer()));
  return out;
}

// Pearson's statistic of counts against a law, and the value that chance exceeds once in a million (Wilson and Hilferty 1931).
inline double chi_square(const std::vector<double>& counts, const std::vector<double>& law, double& most) {
  double total = 0, statistic = 0, freedom = -1;
  for (const double count : counts) total += count;
  for (std::size_t i = 0; i < law.size(); ++i) {
    if (law[i] <= 0) {
      EXPECT_EQ(counts[i], 0) << i;
      continue;
    }
    statistic += (counts[i] - total * law[i]) * (counts[i] - total * law[i]) / (total * law[i]);
    ++freedom;
  }
  freedom = std::max(freedom, 1.0);
  const double h = 2 / (9 * freedom), root = 1 - h + 4.7534 * std::sqrt(h);
  most = freedom * root * root * root;
  return statistic;
}

}  // namespace kizzasi
