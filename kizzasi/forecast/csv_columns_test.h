// Recordings as the measured baselines had them, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "kizzasi/signal/series.h"

namespace kizzasi {

// Columns of a plain CSV file; empty cells on the straight line between their neighbours, as the measured baselines had them.
inline Series csv_columns(const std::string& path, const std::vector<std::string>& names, std::int64_t step_ns) {
  std::ifstream file(path);
  const auto cells = [](const std::string& line) {
    std::vector<std::string> out(1);
    for (const char c : line) {
      if (c == ',') out.emplace_back();
      if (c != ',' && c != '\r') out.back() += c;
    }
    return out;
  };
  std::string line;
  std::getline(file, line);
  const auto header = cells(line);
  Series series;
  series.schema.step_ns = step_ns;
  std::vector<std::size_t> columns;
  for (const std::string& name : names) {
    series.schema.channels.push_back({name, "", Role::kTarget});
    columns.push_back(static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin()));
  }
  while (std::getline(file, line)) {
    const auto row = cells(line);
    for (const std::size_t column : columns)
      series.values.push_back(row[column].empty() ? std::numeric_limits<double>::quiet_NaN() : std::stod(row[column]));
  }
  for (std::size_t c = 0; c < names.size(); ++c) {
    for (std::size_t r = 1, last = 0; r < series.rows(); ++r) {
      if (std::isnan(series.at(r, c))) continue;
      for (std::size_t gap = last + 1; gap < r; ++gap) {
        const double share = static_cast<double>(gap - last) / static_cast<double>(r - last);
        series.row(gap)[c] = series.at(last, c) + share * (series.at(r, c) - series.at(last, c));
      }
      last = r;
    }
  }
  return series;
}

}  // namespace kizzasi
