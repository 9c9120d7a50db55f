#include "kizzasi/io/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "kizzasi/base/json.h"
#include "kizzasi/io/file.h"

namespace kizzasi::io {
namespace {

namespace fs = std::filesystem;
const std::string kGolden = KIZZASI_SOURCE_DIR "/tests/golden/formats/";

std::string bytes_of(const std::string& path) {
  auto bytes = read_file(path, 1U << 28U);
  EXPECT_TRUE(bytes) << path;
  return *bytes;
}

template <typename T>
Error problem_of(const Result<T>& result) {
  return result ? Error{} : result.error();
}

// The F64 tensors of a safetensors file: 8 bytes of header length, a JSON header, the numbers.
std::vector<std::pair<std::string, std::vector<double>>> expected_tensors() {
  const std::string bytes = bytes_of(kGolden + "npy/expected.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = Json::parse(std::string_view(bytes).substr(8, length), "expected");
  EXPECT_TRUE(header);
  std::vector<std::pair<std::string, std::vector<double>>> out;
  for (const auto& [name, entry] : header->members()) {
    if (name == "__metadata__") continue;
    EXPECT_EQ(*entry.find("dtype"), Json("F64")) << name;
    const auto& offsets = entry.find("data_offsets")->items();
    std::vector<double> values(static_cast<std::size_t>(offsets[1].integer() - offsets[0].integer()) / 8);
    if (!values.empty())
      std::memcpy(values.data(), bytes.data() + 8 + length + static_cast<std::size_t>(offsets[0].integer()), values.size() * 8);
    out.emplace_back(name, std::move(values));
  }
  return out;
}

TEST(Npy, EveryKindGivesItsNumbers) {
  const auto tensors = expected_tensors();
  ASSERT_GE(tensors.size(), 10U);
  std::size_t compared = 0;
  for (const auto& [name, values] : tensors) {
    const std::string path = kGolden + "npy/" + name + ".npy";
    if (!fs::exists(path)) continue;
    const auto array = parse_npy(bytes_of(path), path);
    ASSERT_TRUE(array) << array.error().text();
    EXPECT_EQ(array->values, values) << name;
    ++compared;
  }
  EXPECT_GE(compared, 10U);
  const auto plain = parse_npy(bytes_of(kGolden + "npy/f32_c.npy"), "");
  for (const char* version : {"version2", "version3"}) {
    const auto array = parse_npy(bytes_of(kGolden + "npy/" + version + ".npy"), version);
    ASSERT_TRUE(array) << array.error().text();
    EXPECT_EQ(array->values, plain->values);
    EXPECT_EQ(array->shape, plain->shape);
  }
}

// Members stored and deflated are the very files that stand beside the archives.
TEST(Npy, MembersOfArchivesAreTheirFiles) {
  const std::vector<std::vector<const char*>> archives{{"stored.npz", "f32_c.npy", "i64.npy"},
                                                       {"deflated.npz", "f32_c.npy", "f64_fortran.npy"}};
  for (const auto& files : archives) {
    const auto members = parse_npz(bytes_of(kGolden + "npy/" + files[0]), files[0]);
    ASSERT_TRUE(members) << members.error().text();
    ASSERT_EQ(members->size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto alone = parse_npy(bytes_of(kGolden + "npy/" + files[i + 1]), files[i + 1]);
      ASSERT_TRUE(alone);
      EXPECT_EQ((*members)[i].name, i == 0 ? "a" : "b");
      EXPECT_EQ((*members)[i].values, alone->values);
      EXPECT_EQ((*members)[i].shape, alone->shape);
    }
  }
}

TEST(Npy, EveryHostileFileIsRefused) {
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(kGolden + "hostile")) {
    if (entry.path().extension() != ".npy" && entry.path().extension() != ".npz") continue;
    const std::string path = entry.path().string(), bytes = bytes_of(path);
    ++seen;
    const bool archive = entry.path().extension() == ".npz";
    const auto error = archive ? problem_of(parse_npz(bytes, path)) : problem_of(parse_npy(bytes, path));
    EXPECT_FALSE(error.what.empty()) << path << " was accepted";
    EXPECT_FALSE(error.where.empty() || error.expected.empty() || error.hint.empty()) << error.text();
  }
  EXPECT_EQ(seen, 21U);
}

// No cut and no changed byte of a good file may do more than change a number or be refused.
TEST(Npy, CutsAndFlipsNeverCrash) {
  for (const char* name : {"npy/f32_c.npy", "npy/stored.npz", "npy/deflated.npz"}) {
    const std::string good = bytes_of(kGolden + name);
    for (std::size_t cut = 0; cut < good.size(); ++cut) {
      EXPECT_FALSE(parse_npy(std::string_view(good).substr(0, cut), "cut"));
      EXPECT_FALSE(parse_npz(std::string_view(good).substr(0, cut), "cut"));
    }
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string changed = good;
      changed[i] = static_cast<char>(changed[i] ^ 0x55);
      (void)parse_npy(changed, "changed");
      (void)parse_npz(changed, "changed");
    }
  }
}

TEST(Npy, BecomesATable) {
  NpyArray values{"x", "f8", {3, 2}, false, {1, 2, 3, INFINITY, 5, 6}, 0}, time{"time", "f8", {3}, false, {0, 0.5, 1}, 0};
  const auto table = npy_table({values, time}, "a.npz");
  ASSERT_TRUE(table) << table.error().text();
  ASSERT_EQ(table->columns.size(), 2U);
  EXPECT_EQ(table->columns[1].name, "x1");
  EXPECT_EQ(table->time_ns, (std::vector<std::int64_t>{0, 500'000'000, 1'000'000'000}));
  EXPECT_TRUE(std::isnan(table->values[3]));
  EXPECT_EQ(table->values[5], 6);
  values.shape = {3, 1, 2};
  EXPECT_FALSE(npy_table({values}, "a.npz"));
  values.shape = {6};
  EXPECT_FALSE(npy_table({values, time}, "a.npz"));
  EXPECT_FALSE(npy_table({}, "a.npz"));
  EXPECT_FALSE(npy_table({{"", "f4", {0, 3}, false, {}, 0}}, "a.npy"));
  EXPECT_FALSE(npy_table({{"", "f4", {0, 22'222'222'222'222'226}, false, {}, 0}}, "a.npy"));  // no channel is named before there is a row
}

}  // namespace
}  // namespace kizzasi::io
