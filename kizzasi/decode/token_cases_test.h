// The published cases of sampling: those of the project, or of the full set where KIZZASI_ORACLES names it.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "kizzasi/base/json.h"

namespace kizzasi {

inline std::vector<Json> sampling_cases(const std::string& kind) {
  const char* oracles = std::getenv("KIZZASI_ORACLES");
  const std::string folder = oracles != nullptr ? fmt::format("{}/sampling", oracles) : KIZZASI_SOURCE_DIR "/tests/golden/sampling";
  std::ifstream in(fmt::format("{}/{}.jsonl", folder, kind));
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) {
    auto json = Json::parse(line, kind);
    EXPECT_TRUE(json) << json.error().text();
    if (json) out.push_back(*std::move(json));
  }
  EXPECT_FALSE(out.empty()) << kind;
  return out;
}

inline double number_of(const Json& json) {
  if (json.is_number()) return json.number();
  const double infinity = std::numeric_limits<double>::infinity();
  return json.string() == "inf" ? infinity : json.string() == "-inf" ? -infinity : std::nan("");
}

inline std::vector<double> numbers_of(const Json& list) {
  std::vector<double> out;
  for (const Json& item : list.items()) out.push_back(number_of(item));
  return out;
}

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
