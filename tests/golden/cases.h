// Published cases as JSON lines: those of the project, or of the full set where KIZZASI_ORACLES names it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/json.h"

namespace kizzasi {

// The lines of FOLDER/KIND.jsonl, such as sampling/beams.jsonl.
inline std::vector<Json> published_cases(std::string_view folder, std::string_view kind) {
  const char* oracles = std::getenv("KIZZASI_ORACLES");
  const std::string path = fmt::format("{}/{}/{}.jsonl", oracles != nullptr ? oracles : KIZZASI_SOURCE_DIR "/tests/golden", folder, kind);
  std::ifstream in(path);
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) {
    auto json = Json::parse(line, path);
    EXPECT_TRUE(json) << json.error().text();
    if (json) out.push_back(*std::move(json));
  }
  EXPECT_FALSE(out.empty()) << path;
  return out;
}

// JSON has no infinity and no NaN: they stand as texts.
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

}  // namespace kizzasi
