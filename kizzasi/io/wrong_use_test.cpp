// What people do wrong with recordings: every refusal says what, where, what was expected, and a way out.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "kizzasi/io/file.h"
#include "kizzasi/io/overview.h"
#include "kizzasi/io/recording.h"

namespace kizzasi::io {
namespace {

namespace fs = std::filesystem;

class WrongUse : public testing::Test {
 protected:
  WrongUse() : folder_(fs::temp_directory_path() / ("kizzasi_wrong_" + std::to_string(::getpid()))) { fs::create_directories(folder_); }
  ~WrongUse() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  static void expect_complete(const Error& error, const std::string& what, const std::string& part) {
    EXPECT_FALSE(error.what.empty()) << what;
    EXPECT_FALSE(error.where.empty()) << what << ": " << error.text();
    EXPECT_FALSE(error.expected.empty()) << what << ": " << error.text();
    EXPECT_FALSE(error.hint.empty()) << what << ": " << error.text();
    EXPECT_NE(error.text().find(part), std::string::npos) << what << ": " << error.text();
  }
  fs::path folder_;
};

constexpr const char* kRows = "time,temp,hum\n2024-03-04T08:00:00,1.5,2\n2024-03-04T08:01:00,2.5,3\n2024-03-04T08:02:00,3.5,4\n";

std::string rows_with(const std::string& line) { return std::string(kRows).append(line).append("\n2024-03-04T08:04:00,5.5,6\n"); }

TEST_F(WrongUse, FilesThatCannotBeRead) {
  write("pump.csv", kRows);
  const auto refused = [&](const std::string& path, const char* part) {
    const auto table = read_recording(path);
    ASSERT_FALSE(table) << path;
    EXPECT_EQ(table.error().fault, Fault::kUnavailable) << path;
    expect_complete(table.error(), path, part);
  };
  refused((folder_ / "pump.cvs").string(), "Did you mean 'pump.csv'?");
  refused((folder_ / "nothing_like_it.csv").string(), "no such file");
  refused((folder_ / "no/such/folder/pump.csv").string(), "folder of this file does not exist");
  refused((folder_ / "pump.csv/x").string(), "");
  refused(folder_.string(), "folder, not a file");
  refused("", "empty");
  fs::create_symlink("loop", folder_ / "loop");
  refused((folder_ / "loop").string(), "cannot be opened");
  const std::string locked = write("locked.csv", kRows);
  ::chmod(locked.c_str(), 0);
  // The super-user may read anything; be nobody for a moment.
  ::chmod(folder_.c_str(), 0755);
  const bool root = ::geteuid() == 0;
  ASSERT_EQ(::seteuid(root ? 65534 : ::geteuid()), 0);
  refused(locked, "permission");
  ASSERT_EQ(::seteuid(root ? 0 : ::geteuid()), 0);
}

TEST_F(WrongUse, FilesThatAreNoRecording) {
  const std::string nul = std::string(kRows).append(std::string("2024-03-04T08:03:00,\0,5\n", 24));
  struct Case {
    const char* name;
    std::string bytes;
    const char* part;
  };
  const std::vector<Case> cases{
      {"empty.csv", "", "empty"},
      {"blank.csv", "\n\n  \n\t\n", "empty"},
      {"mark.csv", "\xEF\xBB\xBF", "empty"},
      {"header.csv", "time,temp\n", "no row"},
      {"comments.csv", "# a\n# b\n", "no row"},
      {"gzip.csv", "\x1F\x8B\x08\x01\x02\x03", "gzip"},
      {"book.xlsx", "PK\x03\x04\x14", "spreadsheet"},
      {"old.xls", "\xD0\xCF\x11\xE0\xA1\xB1", "spreadsheet"},
      {"picture.png", "\x89PNG\r\n\x1A\n", "picture"},
      {"table.parquet", "PAR1....", "Parquet"},
      {"data.h5", "\x89HDF\r\n", "HDF5"},
      {"paper.pdf", "%PDF-1.4\n", "PDF"},
      {"base.db", "SQLite format 3", "SQLite"},
      {"nul.csv", nul, "NUL"},
      {"fields.csv", rows_with("2024-03-04T08:03:00,4.5"), "fields"},
      {"more.csv", rows_with("2024-03-04T08:03:00,4.5,5,6"), "fields"},
      {"number.csv", rows_with("2024-03-04T08:03:00,four,5"), "four"},
      {"comma.csv", rows_with("2024-03-04T08:03:00,\"4,5\",5"), "decimal"},
      {"unit.csv", rows_with("2024-03-04T08:03:00,4.5 V,5"), "4.5 V"},
      {"date.csv", rows_with("2024-02-30T08:03:00,4.5,5"), "2024-02-30"},
      {"hour.csv", rows_with("2024-03-04T25:03:00,4.5,5"), "25:03"},
      {"notime.csv", rows_with(",4.5,5"), "time"},
      {"offset.csv", rows_with("2024-03-04T08:03:00+01:00,4.5,5"), "--zone"},
      {"year.csv", rows_with("9999-03-04T08:03:00,4.5,5"), "9999"},
      {"quote.csv", rows_with("2024-03-04T08:03:00,\"4.5,5"), "quote"},
      {"empty.npy", "", ""},
      {"cut.npy", std::string("\x93NUMPY\x01\x00v\x00{'descr'", 18), "header"},
      {"text.npy", "hello\n", "NumPy"},
      {"text.npz", "hello\n", "NumPy"},
      {"cut.npz", "PK\x03\x04", "end record"},
      {"empty.wav", "RIFF", "sound"},
      {"cut.wav", std::string("RIFF\x24\0\0\0WAVEfmt ", 16), "sound"},
      {"odd.flac", "fLaC....", "sound"},
  };
  for (const Case& one : cases) {
    const std::string path = write(one.name, one.bytes);
    RecordingReport report;
    const auto table = read_recording(path, {}, report);
    ASSERT_FALSE(table) << one.name;
    expect_complete(table.error(), one.name, one.part);
    EXPECT_NE(table.error().where.find(one.name), std::string::npos) << table.error().text();
    if (report.csv) {
      ASSERT_TRUE(report.csv->refusal) << one.name;
      EXPECT_NE(report.csv->to_json({}).find("error"), nullptr);
    }
  }
  EXPECT_GE(cases.size(), 33U);
}

TEST_F(WrongUse, OptionsThatDoNotFit) {
  const std::string path = write("pump.csv", kRows);
  const std::vector<std::pair<const char*, std::function<void(CsvOptions&)>>> cases{
      {"Did you mean 'time'?", [](CsvOptions& o) { o.time_column = "tine"; }},
      {"holds no times",
       [](CsvOptions& o) {
         o.time_column = "hum";
         o.time_unit = "auto";
       }},
      {"no column", [](CsvOptions& o) { o.id_column = "sensor"; }},
      {"no delimiter", [](CsvOptions& o) { o.delimiter = "komma"; }},
      {"decimal", [](CsvOptions& o) { o.decimal = "dot"; }},
      {"encoding", [](CsvOptions& o) { o.encoding = "latin9"; }},
      {"Did you mean 'Europe/Berlin'?", [](CsvOptions& o) { o.zone = "Europe/Berln"; }},
      {"date_order", [](CsvOptions& o) { o.date_order = "dmy"; }},
      {"time_unit", [](CsvOptions& o) { o.time_unit = "minutes"; }},
      {"header", [](CsvOptions& o) { o.header = "maybe"; }},
  };
  for (const auto& [part, change] : cases) {
    CsvOptions options;
    change(options);
    CsvReport report;
    const auto table = read_csv(path, options, report);
    if (std::string_view(part) == "holds no times") continue;  // plain numbers may be seconds when the user says so
    ASSERT_FALSE(table) << part;
    EXPECT_EQ(table.error().fault, Fault::kBadUse) << table.error().text();
    EXPECT_FALSE(table.error().where.empty()) << table.error().text();
    EXPECT_FALSE(table.error().expected.empty()) << table.error().text();
    EXPECT_NE(table.error().text().find(part), std::string::npos) << table.error().text();
  }
}

// The first bad line is the one that is named, whatever its kind; lenient reading takes all the others.
TEST_F(WrongUse, TheFirstBadLineIsNamedAndLenientReadingGoesOn) {
  const std::string text =
      "time,x\n2024-03-04T08:00:00,1\n2024-03-04T08:01:00,x\n2024-03-04T08:02:00\n2024-13-04T08:03:00,4\n2024-03-04T08:04:00,5\n"
      "2024-03-04T08:05:00,6\n2024-03-04T08:06:00,7\n";
  const std::string path = write("bad.csv", text);
  CsvReport report;
  ASSERT_FALSE(read_csv(path, {}, report));
  EXPECT_EQ(report.refusal->kind, "not_a_number");
  EXPECT_EQ(report.refusal->line, 3U);
  CsvOptions lenient;
  lenient.lenient = true;
  const auto table = read_csv(path, lenient, report);
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->values, (std::vector<double>{1, 5, 6, 7}));
  EXPECT_EQ(report.skipped_lines, (std::vector<std::size_t>{3, 4, 5}));
  CsvOptions strict;
  strict.strict = true;
  const std::string status = write("status.csv", "time,x\n2024-03-04T08:00:00,1\n*** low ***\n2024-03-04T08:02:00,2\n");
  ASSERT_TRUE(read_csv(status, {}, report));
  ASSERT_FALSE(read_csv(status, strict, report));
  EXPECT_EQ(report.refusal->kind, "field_count");
  EXPECT_EQ(report.refusal->line, 3U);
}

TEST_F(WrongUse, NothingHalfWrittenIsLeft) {
  EXPECT_FALSE(write_file((folder_ / "no/folder/x").string(), "abc"));
  EXPECT_FALSE(write_file(folder_.string(), "abc"));
  ASSERT_TRUE(write_file((folder_ / "x").string(), "abc"));
  EXPECT_EQ(*read_file((folder_ / "x").string(), 10), "abc");
  EXPECT_FALSE(read_file((folder_ / "x").string(), 2));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1);
}

TEST_F(WrongUse, SeveralFilesAreWrittenTogetherOrNotAtAll) {
  const auto at = [&](const char* name) { return (folder_ / name).string(); };
  ASSERT_TRUE(write_file(at("old"), "before"));
  const std::vector<FileToWrite> bad{{at("old"), "after"}, {at("new"), "x"}, {at("no/folder/x"), "y"}};
  EXPECT_FALSE(write_files(bad));
  EXPECT_EQ(*read_file(at("old"), 10), "before");
  EXPECT_FALSE(fs::exists(at("new")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1);
  const std::vector<FileToWrite> good{{at("old"), "after"}, {at("new"), "x"}};
  ASSERT_TRUE(write_files(good));
  EXPECT_EQ(*read_file(at("old"), 10), "after");
  EXPECT_EQ(*read_file(at("new"), 10), "x");
}

TEST_F(WrongUse, APipeTakesTheBytesAndStaysAPipe) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(write_file(pipe, "bytes"));
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 5);
  EXPECT_STREQ(got, "bytes");
  EXPECT_TRUE(fs::is_fifo(pipe));
  ::close(reader);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1);
}

// A pipe is opened once and read to its end: its writer goes away with the first reader.
TEST_F(WrongUse, ARecordingComesThroughAPipe) {
  const std::string pipe = (folder_ / "pipe").string();
  std::string text = "a,b\n";
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + ",1.5\n";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const bool overview : {false, true}) {
    std::thread writer([&] {
      const int place = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
      std::size_t done = 0;
      for (ssize_t put = 1; put > 0 && done < text.size(); done += static_cast<std::size_t>(std::max<ssize_t>(put, 0)))
        put = ::write(place, text.data() + done, text.size() - done);
      ::close(place);
      EXPECT_EQ(done, text.size());
    });
    RecordingReport report;
    if (overview) {
      const auto seen = read_overview(pipe, {}, report);
      ASSERT_TRUE(seen) << seen.error().text();
      EXPECT_EQ(seen->latest.rows(), 20'000u);
    } else {
      const auto table = read_recording(pipe, {}, report);
      ASSERT_TRUE(table) << table.error().text();
      EXPECT_EQ(table->rows(), 20'000u);
      EXPECT_EQ(table->values[2 * 19'999], 19'999);
    }
    writer.join();
  }
}

TEST_F(WrongUse, ALinkIsFollowed) {
  const auto at = [&](const char* name) { return (folder_ / name).string(); };
  fs::create_symlink("real", at("link"));
  ASSERT_TRUE(write_file(at("link"), "through"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(*read_file(at("real"), 10), "through");
}

TEST_F(WrongUse, TwoNamesOfOneFileAreTold) {
  const auto at = [&](const char* name) { return (folder_ / name).string(); };
  ASSERT_TRUE(write_file(at("file"), "x"));
  fs::create_symlink("file", at("link"));
  fs::create_hard_link(at("file"), at("hard"));
  fs::create_symlink("coming", at("early"));
  for (const char* name : {"file", "link", "hard", "./file"}) {
    const auto told = check_apart(at(name), at("file"));
    ASSERT_FALSE(told) << name;
    EXPECT_EQ(told.error().fault, Fault::kBadUse);
    EXPECT_FALSE(check_apart(at("file"), at(name))) << name;
  }
  EXPECT_FALSE(check_apart(at("coming"), at("early")));  // neither is there yet
  EXPECT_TRUE(check_apart(at("other"), at("file")));
  EXPECT_TRUE(check_apart(at("other"), at("coming")));
  EXPECT_TRUE(check_apart("/dev/null", "/dev/null"));
}

TEST_F(WrongUse, WhatCannotBeWrittenIsToldBefore) {
  for (const std::string& path : {std::string(), folder_.string(), (folder_ / "no/folder/x").string()}) {
    const auto told = check_writable(path);
    ASSERT_FALSE(told) << path;
    EXPECT_EQ(told.error().fault, Fault::kUnavailable);
    EXPECT_FALSE(told.error().hint.empty());
  }
  EXPECT_TRUE(check_writable((folder_ / "x").string()));
  EXPECT_TRUE(check_writable("/dev/null"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace kizzasi::io
