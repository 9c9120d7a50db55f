// Every file under tests/golden/csv gives the answer beside it, field by field.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "kizzasi/io/csv.h"
#include "kizzasi/io/file.h"

namespace kizzasi::io {
namespace {

namespace fs = std::filesystem;

Json expected_of(const std::string& path) {
  const auto text = read_file(path, 1U << 24U);
  EXPECT_TRUE(text) << path;
  auto json = Json::parse(*text, path);
  EXPECT_TRUE(json) << json.error().text();
  return *json;
}

// Numbers are equal to 1e-12, texts and everything else exactly; members of `actual` that nobody expects do not matter.
void expect_same(const Json& expected, const Json& actual, const std::string& where) {
  if (expected.is_object()) {
    ASSERT_TRUE(actual.is_object()) << where << ": " << actual.dump();
    for (const auto& [name, value] : expected.members()) {
      if (name == "step_tolerance_s") continue;
      const Json* found = actual.find(name);
      ASSERT_NE(found, nullptr) << where << "/" << name << " is not there; expected " << value.dump();
      if (name == "step_s" && expected.find("step_tolerance_s") != nullptr) {
        EXPECT_NEAR(found->number(), value.number(), expected.find("step_tolerance_s")->number()) << where;
      } else {
        expect_same(value, *found, where + "/" + name);
      }
    }
  } else if (expected.is_array()) {
    ASSERT_TRUE(actual.is_array()) << where << ": " << actual.dump();
    ASSERT_EQ(actual.items().size(), expected.items().size())
        << where << "\nexpected " << expected.dump() << "\nactual   " << actual.dump();
    for (std::size_t i = 0; i < expected.items().size(); ++i)
      expect_same(expected.items()[i], actual.items()[i], where + "/" + std::to_string(i));
  } else if (expected.is_number() && actual.is_number()) {
    EXPECT_NEAR(actual.number(), expected.number(), 1e-12 * std::max(1.0, std::fabs(expected.number()))) << where;
  } else {
    EXPECT_EQ(actual, expected) << where << "\nexpected " << expected.dump() << "\nactual   " << actual.dump();
  }
}

struct Reading {
  Result<Table> table;
  CsvReport report;
  std::vector<TextColumn> texts;
};

Reading read(const std::string& path, const CsvOptions& options) {
  Reading out{Table{}, {}, {}};
  auto source = open_source(path);
  EXPECT_TRUE(source) << source.error().text();
  out.table = read_csv(std::move(*source), options, out.report, &out.texts);
  return out;
}

// `expected` is a list (the first values, or the last ones where fewer than three are given) or a map by row.
void expect_values(const Json& expected, const Reading& reading, const std::string& name, const std::string& where) {
  const auto number = [&](std::size_t row) {
    const Table& table = *reading.table;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].name == name) return table.values[row * table.columns.size() + c];
    }
    return std::nan("");
  };
  const auto expect_cell = [&](const Json& value, std::size_t row) {
    if (value.is_number()) {
      EXPECT_EQ(number(row), value.number()) << where << " " << name << " row " << row;
      return;
    }
    for (const TextColumn& column : reading.texts) {
      if (column.name == name) {
        EXPECT_EQ(column.cells[row], value.string()) << where;
        return;
      }
    }
    ADD_FAILURE() << where << ": no text column " << name;
  };
  if (expected.is_object()) {
    for (const auto& [row, value] : expected.members()) expect_cell(value, std::stoul(row));
    return;
  }
  const std::size_t count = expected.items().size(), rows = reading.report.rows;
  for (std::size_t i = 0; i < count; ++i) expect_cell(expected.items()[i], count < 3 ? rows - count + i : i);
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  const char* oracles = std::getenv("KIZZASI_ORACLES");
  const std::string folder = oracles != nullptr ? std::string(oracles).append("/csv") : KIZZASI_SOURCE_DIR "/tests/golden/csv";
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CsvGolden, EveryFileGivesItsAnswer) {
  std::size_t seen = 0;
  for (const std::string& path : cases()) {
    SCOPED_TRACE(path);
    ++seen;
    Json expected = expected_of(fs::path(path).replace_extension(".expected.json").string());
    const Reading reading = read(path, {});
    ASSERT_EQ(reading.table.has_value(), expected.find("error") == nullptr) << (reading.table ? "read" : reading.table.error().text());
    const Json actual = reading.report.to_json({});
    for (const auto& [name, value] : expected.members()) {
      if (name == "file" || name == "bytes" || name == "note" || name == "values" || name == "lenient" || name == "with_zone") continue;
      const Json* found = actual.find(name);
      ASSERT_NE(found, nullptr) << name;
      expect_same(value, *found, name);
    }
    if (const Json* values = expected.find("values")) {
      for (const auto& [name, value] : values->members()) expect_values(value, reading, name, path);
    }
    if (reading.table) {
      EXPECT_EQ(reading.table->rows(), reading.report.rows);
    } else {
      const Error& error = reading.table.error();
      EXPECT_FALSE(error.what.empty() || error.where.empty() || error.expected.empty() || error.hint.empty()) << error.text();
    }
    if (const Json* lenient = expected.find("lenient")) {
      CsvOptions options;
      options.lenient = true;
      const Reading second = read(path, options);
      ASSERT_TRUE(second.table) << second.table.error().text();
      expect_same(*lenient, second.report.to_json(options), "lenient");
      expect_same(*lenient, *second.report.to_json(options).find("lenient"), "lenient");
    }
    if (const Json* zoned = expected.find("with_zone")) {
      CsvOptions options;
      options.zone = zoned->find("zone")->string();
      const Reading second = read(path, options);
      ASSERT_TRUE(second.table) << second.table.error().text();
      const Json answer = second.report.to_json(options);
      expect_same(*zoned, *answer.find("with_zone"), "with_zone");
      EXPECT_EQ(*answer.find("duplicates"), *zoned->find("duplicates"));
      EXPECT_EQ(*answer.find("gaps"), *zoned->find("gaps"));
    }
  }
  EXPECT_GE(seen, 63U);
}

// Pieces of any size joined are the whole table, and the report is the same.
TEST(CsvGolden, PiecesGiveTheWhole) {
  for (const std::string& path : cases()) {
    SCOPED_TRACE(path);
    const Reading whole = read(path, {});
    if (!whole.table) continue;
    for (const std::size_t rows : {1U, 7U, 1000U}) {
      CsvReport report;
      auto source = open_source(path);
      ASSERT_TRUE(source);
      auto reader = CsvReader::open(std::move(*source), {}, report);
      ASSERT_TRUE(reader) << reader.error().text();
      std::vector<double> values;
      std::vector<std::int64_t> times;
      Table piece;
      while (true) {
        const auto more = reader->next(piece, rows);
        ASSERT_TRUE(more) << more.error().text();
        if (!*more) break;
        ASSERT_LE(piece.rows(), rows);
        values.insert(values.end(), piece.values.begin(), piece.values.end());
        times.insert(times.end(), piece.time_ns.begin(), piece.time_ns.end());
      }
      ASSERT_EQ(values.size(), whole.table->values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_TRUE(values[i] == whole.table->values[i] || (std::isnan(values[i]) && std::isnan(whole.table->values[i])));
      }
      EXPECT_EQ(times, whole.table->time_ns);
      EXPECT_EQ(report.to_json({}).dump(), whole.report.to_json({}).dump());
    }
  }
}

}  // namespace
}  // namespace kizzasi::io
