// Published problems and their answers, one JSON object a line.
#pragma once

#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "kizzasi/base/json.h"

namespace kizzasi::solve {

// tests/golden/logic/`golden`, and the whole set where KIZZASI_ORACLES names a folder.
inline std::vector<Json> published(const std::string& golden, const std::string& whole) {
  const char* folder = std::getenv("KIZZASI_ORACLES");
  const std::string path = folder != nullptr ? std::string(folder) + "/logic/" + whole : KIZZASI_SOURCE_DIR "/tests/golden/logic/" + golden;
  std::ifstream in(path);
  std::vector<Json> lines;
  for (std::string text; std::getline(in, text);) lines.push_back(*Json::parse(text, path));
  return lines;
}

inline double number(const Json& value) {
  if (value.is_number()) return value.number();
  return value.string() == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

// A list, or a list of lists by rows.
inline std::vector<double> numbers(const Json* value) {
  std::vector<double> out;
  if (value == nullptr || value->is_null()) return out;
  for (const Json& item : value->items()) {
    if (item.is_array()) {
      for (const double v : numbers(&item)) out.push_back(v);
    } else {
      out.push_back(number(item));
    }
  }
  return out;
}

}  // namespace kizzasi::solve
