#include "kizzasi/tensor/safetensors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "kizzasi/base/rng.h"
#include "kizzasi/tensor/files.h"

namespace kizzasi {
namespace {

namespace fs = std::filesystem;

std::string golden(const std::string& name) { return std::string(KIZZASI_SOURCE_DIR "/tests/golden/formats/") + name; }

SafetensorsFile must_read(const std::string& path) {
  auto file = read_safetensors(path);
  EXPECT_TRUE(file) << (file ? "" : file.error().text());
  return file ? std::move(*file) : SafetensorsFile{};
}

// The values of a tensor as double, from wherever they are held exactly.
std::vector<double> exact(const SafetensorsFile& file, const std::string& name) {
  if (file.wide.count(name) != 0) return file.wide.at(name);
  const auto& values = file.tensors.at(name).values;
  return {values.begin(), values.end()};
}

// A file from a header in words and so many bytes of data.
std::vector<std::byte> bytes_of(const std::string& header, std::size_t data) {
  std::vector<std::byte> bytes(8 + header.size() + data);
  const std::uint64_t n = header.size();
  std::memcpy(bytes.data(), &n, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

class InFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("kizzasi_tensor_" + std::to_string(::getpid()) + "_" + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }
  fs::path folder_;
};

using SafetensorsInFolder = InFolder;

TEST(Safetensors, EveryTypeEqualsTheReferenceReader) {
  const auto ours = must_read(golden("dtypes.safetensors")), truth = must_read(golden("dtypes.expected.safetensors"));
  EXPECT_EQ(ours.metadata.at("note"), "größe");
  std::size_t compared = 0;
  for (const auto& [name, tensor] : truth.tensors) {
    ASSERT_EQ(ours.tensors.count(name), 1u) << name;
    EXPECT_EQ(ours.tensors.at(name).shape, tensor.shape) << name;
    const auto expected = exact(truth, name), found = exact(ours, name);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (std::size_t i = 0; i < expected.size(); ++i, ++compared) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(found[i])) << name << " " << i;
      } else {
        EXPECT_EQ(found[i], expected[i]) << name << " " << i;
        EXPECT_EQ(std::signbit(found[i]), std::signbit(expected[i])) << name << " " << i;
        EXPECT_EQ(ours.tensors.at(name).values[i], static_cast<float>(expected[i])) << name << " " << i;
      }
    }
  }
  EXPECT_GT(compared, 700u);
  // The two that the reference cannot widen: complex numbers get a last axis, large unsigned ones their nearest double.
  EXPECT_EQ(ours.tensors.at("c64").shape, (Shape{3, 5, 2}));
  EXPECT_EQ(ours.wide.at("u64").size(), 15u);
}

TEST(Safetensors, TypesWithoutAReferenceFile) {
  auto bytes =
      bytes_of(R"({"s":{"dtype":"F8_E8M0","shape":[3],"data_offsets":[0,3]},"u":{"dtype":"U64","shape":[1],"data_offsets":[3,11]}})", 11);
  std::byte* data = bytes.data() + bytes.size() - 11;
  const std::array<unsigned char, 11> raw{0, 127, 255, 255, 255, 255, 255, 255, 255, 255, 255};
  std::memcpy(data, raw.data(), raw.size());
  const auto file = parse_safetensors(bytes, "here");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->tensors.at("s").values[0], std::ldexp(1.0f, -127));
  EXPECT_EQ(file->tensors.at("s").values[1], 1.0f);
  EXPECT_TRUE(std::isnan(file->tensors.at("s").values[2]));
  EXPECT_EQ(file->wide.at("u")[0], 18446744073709551616.0);
}

TEST(Safetensors, UnalignedDataAreRead) {
  EXPECT_EQ(must_read(golden("unaligned.safetensors")).tensors.at("x"), Tensor({3}, {1.0f, 2.5f, -3.0f}));
}

TEST(Safetensors, EveryHostileFileIsRefusedByBothReaders) {
  std::size_t tried = 0;
  for (const auto& entry : fs::directory_iterator(golden("hostile"))) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().rfind("st_", 0) != 0) continue;
    ++tried;
    const auto file = read_safetensors(path);
    ASSERT_FALSE(file) << path;
    EXPECT_NE(file.error().where.find(path), std::string::npos) << file.error().text();
    EXPECT_FALSE(file.error().what.empty());
    const auto content = read_file(path);
    ASSERT_TRUE(content);
    EXPECT_FALSE(parse_safetensors(std::as_bytes(std::span(*content)), path)) << path;
  }
  EXPECT_EQ(tried, 28u);
}

TEST(Safetensors, DamageAtAnyByteIsReadOrRefusedButNeverMore) {
  NamedTensors tensors;
  tensors["a"] = Tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  tensors["b"] = Tensor(Shape{0, 4});
  const auto good = safetensors_bytes(tensors, {{"key", "value"}});
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse_safetensors(std::span(good).first(length), "cut")) << length;
  }
  Rng rng(5);
  for (int round = 0; round < 20000; ++round) {
    auto bytes = good;
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n) bytes[rng.below(bytes.size())] = static_cast<std::byte>(rng.below(256));
    const auto file = parse_safetensors(bytes, "damaged");
    if (!file) continue;
    std::size_t values = 0;
    for (const auto& [name, tensor] : file->tensors) values += tensor.values.size();
    EXPECT_LE(values, bytes.size());
  }
}

TEST(Safetensors, AMillionNamesTakeNoTimeWorthMentioning) {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    header.append(i == 0 ? "\"" : ",\"").append(std::to_string(i)).append(R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})");
  }
  const auto file = parse_safetensors(bytes_of(header + "}", 0), "many");
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->tensors.size(), 100'000u);
}

TEST_F(SafetensorsInFolder, WhatIsWrittenIsReadBackAndWrittenToTheSameBytes) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    NamedTensors tensors;
    for (std::uint64_t n = rng.below(6); n > 0; --n) {
      Shape shape(rng.below(4));
      for (std::size_t& size : shape) size = rng.below(5);
      Tensor tensor(shape);
      for (float& value : tensor.values) value = static_cast<float>(rng.normal());
      tensors[std::to_string(rng.below(100)) + "\"\\ö"] = tensor;
    }
    std::map<std::string, std::string> metadata;
    for (std::uint64_t n = rng.below(3); n > 0; --n) metadata[std::to_string(n)] = "line\n\"quoted\"";
    ASSERT_TRUE(write_safetensors(path("a"), tensors, metadata));
    const auto file = must_read(path("a"));
    EXPECT_EQ(file.tensors, tensors);
    EXPECT_EQ(file.metadata, metadata);
    const auto bytes = safetensors_bytes(file.tensors, file.metadata);
    const auto content = read_file(path("a"));
    ASSERT_TRUE(content);
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.end(), std::as_bytes(std::span(*content)).begin(), std::as_bytes(std::span(*content)).end()));
  }
  EXPECT_EQ(files(), 1u);
}

TEST(Safetensors, TheWrittenFormIsThatOfTheReferenceWriter) {
  const auto bytes = safetensors_bytes({{"b", Tensor({2}, {1, 2})}, {"a", Tensor(Shape{}, {3})}}, {{"who", "me"}});
  std::uint64_t n = 0;
  std::memcpy(&n, bytes.data(), 8);
  EXPECT_EQ(n % 8, 0u);
  const std::string header(reinterpret_cast<const char*>(bytes.data()) + 8, n);
  EXPECT_EQ(header.substr(0, header.find_last_not_of(' ') + 1),
            R"({"__metadata__": {"checksum": "crc32 abeca970", "who": "me"}, "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, )"
            R"("b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})");
  EXPECT_EQ(bytes.size(), 8 + n + 12);
}

TEST_F(SafetensorsInFolder, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const std::string target = path("model");
  ASSERT_TRUE(replace_file(target, std::string_view("old")));

  EXPECT_FALSE(replace_file(path("no/such/folder/model"), std::string_view("x")));
  EXPECT_FALSE(replace_file(folder_.string(), std::string_view("x")));
  if (::geteuid() != 0) {  // root may write anywhere
    fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
    const auto done = replace_file(target, std::string_view("new"));
    fs::permissions(folder_, fs::perms::owner_all);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().text().find("permission"), std::string::npos) << done.error().text();
  }
  EXPECT_EQ(*read_file(target), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(SafetensorsInFolder, ADiskThatFillsMidwayLeavesTheOldFileAndNothingElse) {
  const std::string target = path("model");
  ASSERT_TRUE(replace_file(target, std::string_view("old")));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};  // writes beyond it fail, as on a full disk
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto done = write_safetensors(target, {{"large", Tensor(Shape{10000})}}, {});
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, signal_before);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().fault, Fault::kUnavailable);
  EXPECT_EQ(*read_file(target), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(SafetensorsInFolder, RemainsOfAKilledProgramAndLinksAreNoTrouble) {
  const std::string target = path("model");
  {
    std::ofstream(target + ".part") << "half";
  }
  ASSERT_TRUE(replace_file(target, std::string_view("new")));
  EXPECT_EQ(*read_file(target), "new");
  EXPECT_EQ(files(), 1u);
  // Through a link the file behind it is replaced, and the link stays.
  fs::create_symlink(target, path("link"));
  ASSERT_TRUE(replace_file(path("link"), std::string_view("through")));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(*read_file(target), "through");
  fs::create_symlink("later", path("ahead"));
  ASSERT_TRUE(replace_file(path("ahead"), std::string_view("there")));
  EXPECT_TRUE(fs::is_symlink(path("ahead")));
  EXPECT_EQ(*read_file(path("later")), "there");
}

TEST_F(SafetensorsInFolder, APipeTakesTheBytesAndStaysAPipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(replace_file(path("pipe"), std::string_view("bytes")));
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 5);
  EXPECT_STREQ(got, "bytes");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  ::close(reader);
  EXPECT_EQ(files(), 1u);
}

TEST(Safetensors, MissingFilesAndFoldersSaySo) {
  const auto missing = read_safetensors("/no/such/file.safetensors");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().fault, Fault::kUnavailable);
  EXPECT_NE(missing.error().text().find("No such file"), std::string::npos) << missing.error().text();
  const auto folder = read_safetensors(KIZZASI_SOURCE_DIR);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().text().find("folder"), std::string::npos) << folder.error().text();
}

TEST(Safetensors, AnyChangedByteIsSeen) {
  NamedTensors tensors;
  tensors["a.weight"].shape = {3, 5};
  tensors["b"].shape = {7};
  Rng rng(3);
  for (auto& [name, tensor] : tensors) {
    tensor.values.resize(name == "b" ? 7 : 15);
    for (float& x : tensor.values) x = static_cast<float>(rng.normal());
  }
  const std::vector<std::byte> whole = safetensors_bytes(tensors, {{"config", "{\"d_model\":64}"}});
  const auto read = parse_safetensors(whole, "whole");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->metadata.size(), 1u);
  for (std::size_t at = 8; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 6}) {
      std::vector<std::byte> damaged = whole;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      const auto found = parse_safetensors(damaged, "damaged");
      if (!found) continue;
      // Blanks between the words, and the sum's own name: what is left then says the same as before, without a sum.
      ASSERT_EQ(found->tensors.at("a.weight").values, tensors.at("a.weight").values) << at;
      ASSERT_EQ(found->tensors.at("b").values, tensors.at("b").values) << at;
      ASSERT_EQ(found->metadata.at("config"), "{\"d_model\":64}") << at;
    }
  }
  // Another's entry of that name is left alone.
  EXPECT_EQ(parse_safetensors(safetensors_bytes(tensors, {}), "none")->metadata.size(), 0u);
}

}  // namespace
}  // namespace kizzasi
