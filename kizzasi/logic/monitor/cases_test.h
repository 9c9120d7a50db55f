// The published cases of temporal logic: formulas over short traces with what each sample must be worth.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "kizzasi/base/json.h"
#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// "offline": the lines of tests/golden/logic/stl_offline.jsonl, or of the full set where KIZZASI_ORACLES names it.
inline std::vector<Json> stl_cases(const std::string& kind) {
  const char* oracles = std::getenv("KIZZASI_ORACLES");
  const std::string path = oracles != nullptr ? fmt::format("{}/logic/stl/{}.jsonl", oracles, kind)
                                              : fmt::format("{}/tests/golden/logic/stl_{}.jsonl", KIZZASI_SOURCE_DIR, kind);
  std::ifstream in(path);
  std::vector<Json> cases;
  for (std::string line; std::getline(in, line);) {
    auto json = Json::parse(line, path);
    EXPECT_TRUE(json) << json.error().text();
    if (json) cases.push_back(*std::move(json));
  }
  EXPECT_FALSE(cases.empty()) << path;
  return cases;
}

inline double number_of(const Json& json) {
  if (json.is_number()) return json.number();
  if (json.string() == "inf") return std::numeric_limits<double>::infinity();
  return json.string() == "nan" ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity();
}

inline std::vector<double> numbers_of(const Json& list) {
  std::vector<double> out;
  for (const Json& item : list.items()) out.push_back(number_of(item));
  return out;
}

// The signals of a case as a stream of frames.
struct Trace {
  Schema schema;
  std::vector<double> frames;
  std::size_t rows = 0;

  explicit Trace(const Json& json) {
    schema.step_ns = 1'000'000'000;
    if (const Json* n = json.find("n")) rows = static_cast<std::size_t>(n->integer());
    std::vector<std::vector<double>> columns;
    if (const Json* signals = json.find("signals")) {
      for (const auto& [name, values] : signals->members()) {
        schema.channels.push_back({name, "", Role::kTarget});
        columns.push_back(numbers_of(values));
      }
    } else {
      for (const auto& [name, letters] : json.find("trace")->members()) {
        schema.channels.push_back({name, "", Role::kTarget});
        columns.emplace_back();
        for (const char c : letters.string()) columns.back().push_back(c == '1' ? 1 : 0);
      }
    }
    if (schema.channels.empty()) {  // a formula over no channel
      schema.channels.push_back({"none", "", Role::kTarget});
      columns.emplace_back(rows, 0.0);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      for (const auto& column : columns) frames.push_back(column[row]);
    }
  }
};

inline NodeGraph graph_of(const std::string& text, const Schema& schema) {
  const Source source{text, "formula"};
  const auto formula = parse_formula(source);
  EXPECT_TRUE(formula) << formula.error().text();
  auto graph = build_graph(*formula, schema, source);
  EXPECT_TRUE(graph) << graph.error().text();
  return *std::move(graph);
}

}  // namespace kizzasi::logic
