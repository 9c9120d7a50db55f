// Rules of the CSV reader on files made here, beyond the golden ones: every delimiter with every mark, encodings cut anywhere, and the
// smaller decisions one by one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "kizzasi/base/rng.h"
#include "kizzasi/io/csv.h"

namespace kizzasi::io {
namespace {

struct Reading {
  Result<Table> table{Table{}};
  CsvReport report;
  Json json;
};

Reading read(const std::string& text, const CsvOptions& options = {}) {
  Reading out;
  out.table = read_csv(memory_source(text, "t.csv"), options, out.report);
  out.json = out.report.to_json(options);
  return out;
}

std::string minute(int i) {
  char text[32];
  std::snprintf(text, sizeof(text), "2024-03-04T%02d:%02d:00", 8 + i / 60, i % 60);
  return text;
}

// A header and rows of minute(i) and the cells that `cell` gives.
template <typename Cell>
std::string file(const std::string& header, char delimiter, int rows, Cell cell) {
  std::string text = header.empty() ? "" : std::string(header).append("\n");
  for (int i = 0; i < rows; ++i) text.append(minute(i)).append(1, delimiter).append(cell(i)).append("\n");
  return text;
}

std::string with_mark(double value, char decimal, const std::string& thousands) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f", std::fabs(value));
  std::string digits(text), fraction = digits.substr(digits.size() - 2), whole = digits.substr(0, digits.size() - 3), grouped;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i > 0 && (whole.size() - i) % 3 == 0) grouped += thousands;
    grouped += whole[i];
  }
  return std::string(value < 0 ? "-" : "").append(grouped).append(1, decimal).append(fraction);
}

TEST(CsvVariety, EveryDelimiterWithEveryMark) {
  struct Marks {
    char decimal;
    const char *thousands, *told;
  };
  Rng rng(21);
  for (const char delimiter : {',', ';', '\t', '|'}) {
    for (const Marks& marks : {Marks{'.', "", ""}, Marks{',', "", ""}, Marks{'.', ",", ","}, Marks{',', ".", "."}, Marks{',', " ", " "},
                               Marks{',', "\xE2\x80\xAF", " "}, Marks{'.', "'", "'"}}) {
      const bool quoted = delimiter == ',' && (marks.decimal == ',' || marks.thousands[0] == ',');
      std::vector<double> values;
      std::string text = std::string("time").append(1, delimiter).append("x").append(1, delimiter).append("y\n");
      for (int i = 0; i < 30; ++i) {
        text.append(minute(i));
        for (int c = 0; c < 2; ++c) {
          values.push_back(std::round(rng.uniform(-1, 1) * 1e6) / 100);
          std::string cell = with_mark(values.back(), marks.decimal, marks.thousands);
          if (quoted) cell = std::string("\"").append(cell).append("\"");
          text.append(1, delimiter).append(cell);
        }
        text.append("\n");
      }
      const Reading got = read(text);
      ASSERT_TRUE(got.table) << got.table.error().text() << "\n" << text;
      EXPECT_EQ(got.report.delimiter, delimiter);
      EXPECT_EQ(got.report.numbers.decimal, marks.decimal) << text;
      EXPECT_EQ(got.report.numbers.thousands, marks.told[0]) << text;
      EXPECT_EQ(got.table->values, values);
    }
  }
}

// UTF-16 of either order, with and without its mark, and windows-1252: the same table and the same names.
TEST(CsvVariety, EveryEncodingGivesTheSame) {
  const std::string utf8 = file("time;Temp (\xC2\xB0\x43);Dr\xC3\xBC\x63k", ';', 50,
                                [](int i) { return std::to_string(i).append(",5;1,").append(std::to_string(i)); });
  const Reading plain = read(utf8);
  ASSERT_TRUE(plain.table);
  EXPECT_EQ(plain.table->columns[0].unit, "\xC2\xB0\x43");
  std::string little, big, ansi;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    auto code = static_cast<unsigned char>(utf8[i]);
    if (code == 0xC2) continue;
    if (code == 0xC3) code = static_cast<unsigned char>(static_cast<unsigned char>(utf8[++i]) + 0x40);
    little.append(1, static_cast<char>(code)).append(1, '\0');
    big.append(1, '\0').append(1, static_cast<char>(code));
    ansi.append(1, static_cast<char>(code));
  }
  const std::pair<std::string, const char*> forms[] = {{std::string("\xFF\xFE").append(little), "utf-16-le"},
                                                       {little, "utf-16-le"},
                                                       {std::string("\xFE\xFF").append(big), "utf-16-be"},
                                                       {big, "utf-16-be"},
                                                       {ansi, "windows-1252"},
                                                       {std::string("\xEF\xBB\xBF").append(utf8), "utf-8-bom"}};
  for (const auto& [text, encoding] : forms) {
    const Reading got = read(text);
    ASSERT_TRUE(got.table) << encoding << got.table.error().text();
    EXPECT_EQ(to_string(got.report.encoding), std::string(encoding));
    EXPECT_EQ(got.table->values, plain.table->values);
    EXPECT_EQ(got.table->columns, plain.table->columns);
    EXPECT_EQ(got.table->time_ns, plain.table->time_ns);
  }
}

// What stands in quotes comes out as it went in, whatever is in it.
TEST(CsvVariety, QuotedCellsComeBack) {
  Rng rng(22);
  constexpr std::string_view kLetters = "ab,;\"\n \t|'#";
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> cells;
    std::string text = "time,note,x\n";
    for (int i = 0; i < 12; ++i) {
      std::string cell = "w";
      for (std::uint64_t k = rng.below(12); k > 0; --k) cell += kLetters[rng.below(kLetters.size())];
      cell += "w";
      std::string quoted = "\"";
      for (const char c : cell) quoted.append(c == '"' ? "\"\"" : std::string(1, c));
      text.append(minute(i)).append(",").append(quoted).append("\",").append(std::to_string(i)).append("\n");
      cells.push_back(cell);
    }
    CsvReport report;
    std::vector<TextColumn> texts;
    CsvOptions options;
    options.delimiter = "comma";
    const auto table = read_csv(memory_source(text, "q.csv"), options, report, &texts);
    ASSERT_TRUE(table) << table.error().text() << "\n" << text;
    ASSERT_EQ(texts.size(), 1U);
    EXPECT_EQ(texts[0].cells, cells) << text;
  }
}

TEST(CsvVariety, StampsOfManyKinds) {
  struct Case {
    const char *text, *format, *first, *last;
    double step;
  };
  for (const Case& c : {
           Case{"date,time,x\n2024-03-04,08:00:00,1\n2024-03-04,08:01:00,2\n2024-03-04,08:02:00,3\n", "iso8601", "2024-03-04T08:00:00",
                "2024-03-04T08:02:00", 60},
           Case{"Datum;Uhrzeit;x\n04.03.2024;08:00;1,5\n04.03.2024;13:00;2,5\n04.03.2024;18:00;3,5\n04.03.2024;23:00;3,5\n05.03.2024;04:00;"
                "2,5\n",
                "dd.mm.yyyy hh:mm", "2024-03-04T08:00:00", "2024-03-05T04:00:00", 18000},
           Case{"t;x\n13.03.24;1\n14.03.24;2\n15.03.24;3\n", "dd.mm.yy", "2024-03-13", "2024-03-15", 86400},
           Case{"t,x\n03/13/2024 11:00 AM,1\n03/13/2024 12:00 PM,2\n03/13/2024 01:00 PM,3\n", "mm/dd/yyyy hh:mm", "2024-03-13T11:00:00",
                "2024-03-13T13:00:00", 3600},
           Case{"t,x\n04-Mar-2024 08:00:00,1\n04-Mar-2024 08:00:30,2\n04-Mar-2024 08:01:00,3\n", "dd-mmm-yyyy hh:mm:ss",
                "2024-03-04T08:00:00", "2024-03-04T08:01:00", 30},
           Case{"date,x\n20240301,1\n20240302,2\n20240303,4\n", "yyyymmdd", "2024-03-01", "2024-03-03", 86400},
           Case{"date,x\n2024/03/01,1\n2024/03/02,2\n2024/03/03,4\n", "yyyy/mm/dd", "2024-03-01", "2024-03-03", 86400},
           Case{"time temp\n2024-03-04 08:00:00 1.5\n2024-03-04 08:00:10 2.5\n2024-03-04 08:00:20 3.5\n", "iso8601", "2024-03-04T08:00:00",
                "2024-03-04T08:00:20", 10},
           Case{"date,x\n01/01/2024,1\n01/02/2024,2\n01/03/2024,3\n01/04/2024,3\n01/05/2024,1\n", "mm/dd/yyyy", "2024-01-01", "2024-01-05",
                86400},
       }) {
    const Reading got = read(c.text);
    ASSERT_TRUE(got.table) << c.text << got.table.error().text();
    const Json& time = *got.json.find("time");
    EXPECT_EQ(time.find("format")->dump(), Json(c.format).dump()) << c.text;
    EXPECT_EQ(time.find("first")->dump(), Json(c.first).dump()) << c.text;
    EXPECT_EQ(time.find("last")->dump(), Json(c.last).dump()) << c.text;
    EXPECT_EQ(time.find("step_s")->number(), c.step) << c.text;
    EXPECT_EQ(got.table->columns.size(), 1U) << c.text;
  }
}

// A time in a file of blanks keeps its name; a date and a clock side by side keep both.
TEST(CsvVariety, NamesOfTheTime) {
  EXPECT_EQ(read("time temp\n2024-03-04 08:00 1.5\n2024-03-04 08:01 2.5\n").json.find("time")->find("column")->dump(), "\"time\"");
  EXPECT_EQ(read("day,clock,x\n2024-03-04,08:00,1\n2024-03-04,08:01,2\n").json.find("time")->find("column")->dump(),
            "[\"day\", \"clock\"]");
  EXPECT_EQ(read("2024-03-04T08:00,1\n2024-03-04T08:01,2\n").json.find("time")->find("column")->dump(), "0");
}

TEST(CsvVariety, ClocksThatChange) {
  std::string spring = "time,x\n", autumn = "time,x\n";
  for (const char* hour : {"00", "01", "03", "04", "05"})
    spring.append("2025-03-30 ").append(hour).append(":00,").append(hour).append("\n");
  for (const char* clock : {"01:30", "01:45", "02:00", "02:15", "02:30", "02:45", "02:00", "02:15", "02:30", "02:45", "03:00", "03:15"}) {
    autumn.append("2025-10-26 ").append(clock).append(",1").append(1, clock[4]).append("\n");
  }
  const auto warned = [](const Reading& reading, std::string_view code) {
    const auto& all = reading.report.warnings;
    return std::find(all.begin(), all.end(), code) != all.end();
  };
  const Reading gap = read(spring), twice = read(autumn);
  EXPECT_TRUE(warned(gap, "dst_suspected"));
  EXPECT_TRUE(warned(gap, "gaps:1"));
  EXPECT_TRUE(warned(twice, "dst_suspected"));
  EXPECT_EQ(twice.report.duplicates(), 4U);
  EXPECT_EQ(twice.report.out_of_order(), 1U);
  CsvOptions berlin;
  berlin.zone = "Europe/Berlin";
  for (const Reading& reading : {read(spring, berlin), read(autumn, berlin)}) {
    ASSERT_TRUE(reading.table);
    EXPECT_TRUE(reading.json.find("gaps")->items().empty()) << reading.json.dump();
    EXPECT_EQ(reading.report.duplicates(), 0U);
    EXPECT_EQ(reading.report.out_of_order(), 0U);
    EXPECT_FALSE(warned(reading, "dst_suspected"));
    EXPECT_EQ(*reading.json.find("time")->find("zone"), Json("Europe/Berlin"));
  }
}

TEST(CsvVariety, CellsThatAreNotFiniteAreSetAsideAndNamed) {
  const Reading got = read(file("time,x", ',', 10, [](int i) {
    return i == 3 ? "inf" : i == 5 ? "-1e400" : i == 6 ? "1e-400" : std::to_string(i);
  }));
  ASSERT_TRUE(got.table);
  ASSERT_EQ(got.report.not_finite.size(), 2U);
  EXPECT_EQ(got.report.not_finite[0].line, 5U);
  EXPECT_EQ(got.report.not_finite[1].text, "-1e400");
  EXPECT_TRUE(std::isnan(got.table->values[3]));
  EXPECT_EQ(got.table->values[6], 0);
  EXPECT_EQ(got.report.missing(), 0U);
}

TEST(CsvVariety, RowsThatHoldNothingDoNotHideTheHeader) {
  for (const char* text :
       {"x\nnan\n2\n3\n", "x\nnan\ninf\n-inf\n0\n", "x,y\nnan,nan\n1,2\n3,4\n", "x,y\nNA,1\n1,2\n3,4\n", "x\ninf\n1\n2\n"}) {
    SCOPED_TRACE(text);
    CsvOptions options;
    options.keep_infinite = true;
    const Reading got = read(text, options);
    ASSERT_TRUE(got.table);
    EXPECT_EQ(got.table->columns[0].name, "x");
    EXPECT_EQ(got.table->rows(), static_cast<std::size_t>(std::count(text, text + std::strlen(text), '\n')) - 1);
    EXPECT_EQ(std::isinf(got.table->values[0]), text[2] == 'i');
  }
}

TEST(CsvVariety, UserWordsAndSentinelsAreMissing) {
  CsvOptions options;
  options.sentinels = {-999};
  options.missing_words = {"off-line"};
  const Reading got =
      read(file("time,x", ',', 10, [](int i) { return i == 3   ? "-999.0"
                                                      : i == 5 ? "off-line"
                                                               : std::to_string(i); }), options);
  ASSERT_TRUE(got.table) << got.table.error().text();
  EXPECT_EQ(got.report.missing(), 2U);
  EXPECT_TRUE(std::isnan(got.table->values[3]) && std::isnan(got.table->values[5]));
}

TEST(CsvVariety, SmallDecisions) {
  // One column with decimal commas is one column.
  Reading got = read("Temp\n20,5\n21,0\n22,25\n23\n");
  ASSERT_TRUE(got.table);
  EXPECT_EQ(got.table->values, (std::vector<double>{20.5, 21, 22.25, 23}));
  // Spreadsheets write empty rows at the end.
  got = read("time;x\n2024-03-04T08:00;1\n2024-03-04T08:01;2\n;\n;\n");
  ASSERT_TRUE(got.table);
  EXPECT_EQ(got.report.rows, 2U);
  EXPECT_EQ(got.report.skipped_lines, (std::vector<std::size_t>{4, 5}));
  // Names may be numbers below a time's name.
  got = read(file("time,1,2", ',', 5, [](int i) { return std::to_string(i).append(",5"); }));
  EXPECT_EQ(got.report.header_line, 1U);
  // A minus as typographers set it.
  got = read(file("time,x", ',', 5, [](int i) { return std::string("\xE2\x88\x92").append(std::to_string(i + 1)); }));
  ASSERT_TRUE(got.table);
  EXPECT_EQ(got.table->values[4], -5);
  // A header in a comment.
  got = read("# time temp hum\n2024-03-04T08:00 1 2\n2024-03-04T08:01 3 4\n");
  ASSERT_TRUE(got.table);
  EXPECT_EQ(got.table->columns[1].name, "hum");
  // A constant name of a device makes no long table; a series' name does.
  EXPECT_TRUE(
      read(file("time,device,x", ',', 5, [](int i) { return std::string("d,").append(std::to_string(i)); })).report.id_column.empty());
  EXPECT_EQ(read(file("time,unique_id,x", ',', 5, [](int i) { return std::string("d,").append(std::to_string(i)); })).report.id_column,
            "unique_id");
}

TEST(CsvVariety, FilesLargerThanABlockAreCutNowhere) {
  std::string text = "time,x,note\n";
  std::vector<double> values;
  Rng rng(23);
  for (int i = 0; i < 30'000; ++i) {
    values.push_back(static_cast<double>(i) / 8);
    char cell[64];
    std::snprintf(cell, sizeof(cell), "%d,%.3f,\"%s\xC3\xBC\n\"\n", 1'700'000'000 + i, values.back(),
                  std::string(rng.below(20), 'x').c_str());
    text.append(cell);
  }
  ASSERT_GT(text.size(), std::size_t{3} << 18U);
  const Reading got = read(text);
  ASSERT_TRUE(got.table) << got.table.error().text();
  EXPECT_EQ(got.table->values, values);
  EXPECT_EQ(got.report.step_ns(), 1'000'000'000);
}

}  // namespace
}  // namespace kizzasi::io
