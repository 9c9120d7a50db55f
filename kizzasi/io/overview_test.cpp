#include "kizzasi/io/overview.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace kizzasi::io {
namespace {

namespace fs = std::filesystem;

class OverviewOfFile : public testing::Test {
 protected:
  void SetUp() override { path_ = (fs::temp_directory_path() / testing::UnitTest::GetInstance()->current_test_info()->name()).string(); }
  void TearDown() override { fs::remove(path_); }

  // Two series in turn; missing cells, whole numbers, a stamp that is years off.
  void write(std::size_t rows) const {
    std::ofstream out(path_);
    out << "time,id,x,count,note\n";
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t t = r == 77 ? 4'000'000'000 : 1'700'000'000 + 60 * (r / 2);
      out << t << ',' << (r % 2 == 0 ? "a" : "b") << ',';
      if (r % 11 != 3) out << 0.25 * static_cast<double>(r % 37) - 3;
      out << ',' << r % 5 << ",text\n";
    }
  }

  std::string path_;
};

// What is told of all rows does not depend on how many of them are kept, and those that are kept are the last ones.
TEST_F(OverviewOfFile, FactsAreOfAllRowsAndTheLastOnesAreKept) {
  write(50'001);
  RecordingReport whole_report;
  const auto table = read_recording(path_, {}, whole_report);
  ASSERT_TRUE(table) << table.error().text();
  const std::size_t width = table->columns.size();
  ASSERT_EQ(width, 2U);
  for (const std::size_t most : {std::size_t{1} << 30U, std::size_t{40'000}, std::size_t{1000}, std::size_t{2}}) {
    RecordingReport report;
    const auto all = read_overview(path_, {}, report, most);
    ASSERT_TRUE(all) << all.error().text();
    EXPECT_EQ(report.csv->to_json({}).dump(), whole_report.csv->to_json({}).dump());
    EXPECT_EQ(all->rows, table->rows());
    EXPECT_EQ(all->complete(), most > 100'002);
    ASSERT_EQ(all->channels.size(), width);
    for (std::size_t c = 0; c < width; ++c) {
      double low = INFINITY, high = -INFINITY, sum = 0;
      std::size_t missing = 0;
      bool whole = true;
      for (std::size_t r = 0; r < table->rows(); ++r) {
        const double value = table->values[r * width + c];
        if (std::isnan(value)) {
          ++missing;
          continue;
        }
        low = std::min(low, value);
        high = std::max(high, value);
        sum += value;
        whole = whole && value == std::floor(value);
      }
      const ChannelFacts& facts = all->channels[c];
      EXPECT_EQ(facts.missing, missing);
      EXPECT_EQ(facts.present, table->rows() - missing);
      EXPECT_EQ(facts.low, low);
      EXPECT_EQ(facts.high, high);
      EXPECT_EQ(facts.whole, whole);
      EXPECT_NEAR(facts.mean, sum / static_cast<double>(facts.present), 1e-9);
    }
    const Table& latest = all->latest;
    EXPECT_EQ(latest.ids, table->ids);
    EXPECT_EQ(latest.zone, table->zone);
    EXPECT_EQ(latest.rows(), all->complete() ? table->rows() : most / width);
    const std::size_t first = table->rows() - latest.rows();
    for (std::size_t r = 0; r < latest.rows(); ++r) {
      ASSERT_EQ(latest.time_ns[r], table->time_ns[first + r]);
      ASSERT_EQ(latest.series[r], table->series[first + r]);
      for (std::size_t c = 0; c < width; ++c) {
        const double kept = latest.values[r * width + c], there = table->values[(first + r) * width + c];
        ASSERT_TRUE(kept == there || (std::isnan(kept) && std::isnan(there)));
      }
    }
  }
}

TEST_F(OverviewOfFile, WhatIsRefusedIsRefusedAsEver) {
  for (const char* text : {"", "time,x\n", "time,x\n1,2\n2,abc\n3,4\n4,5\n", "time,x\n1,2,3\n2,3\n"}) {
    {
      std::ofstream(path_) << text;
    }
    RecordingReport report, expected_report;
    const auto overview = read_overview(path_, {}, report, 2);
    const auto expected = read_recording(path_, {}, expected_report);
    ASSERT_EQ(overview.has_value(), expected.has_value()) << text;
    if (overview) continue;
    EXPECT_EQ(overview.error().text(), expected.error().text());
    EXPECT_EQ(report.csv->to_json({}).dump(), expected_report.csv->to_json({}).dump());
  }
  RecordingReport report;
  EXPECT_FALSE(read_overview("/no/such/file.csv", {}, report));
}

}  // namespace
}  // namespace kizzasi::io
