#include "kizzasi/io/sound.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "kizzasi/base/rng.h"
#include "kizzasi/io/file.h"
#include "kizzasi/io/recording.h"

namespace kizzasi::io {
namespace {

namespace fs = std::filesystem;

class Sound : public testing::Test {
 protected:
  Sound() : folder_(fs::temp_directory_path() / ("kizzasi_sound_" + std::to_string(::getpid()))) { fs::create_directories(folder_); }
  ~Sound() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

void put(std::string& bytes, std::uint32_t value, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xFFU));
}

// A WAV file put together here byte by byte (RIFF, IBM and Microsoft 1991), to compare the reader with.
std::string wav_bytes(int format, int bits, int channels, int rate, const std::string& data) {
  std::string bytes = "RIFF";
  put(bytes, static_cast<std::uint32_t>(36 + data.size()), 4);
  bytes += "WAVEfmt ";
  put(bytes, 16, 4);
  put(bytes, static_cast<std::uint32_t>(format), 2);
  put(bytes, static_cast<std::uint32_t>(channels), 2);
  put(bytes, static_cast<std::uint32_t>(rate), 4);
  put(bytes, static_cast<std::uint32_t>(rate * channels * bits / 8), 4);
  put(bytes, static_cast<std::uint32_t>(channels * bits / 8), 2);
  put(bytes, static_cast<std::uint32_t>(bits), 2);
  bytes += "data";
  put(bytes, static_cast<std::uint32_t>(data.size()), 4);
  return bytes + data;
}

TEST_F(Sound, EveryWidthIsReadAsItStands) {
  Rng rng(7);
  for (const int channels : {1, 2, 5, 64}) {
    for (const int bits : {8, 16, 24, 32, -32, -64}) {
      std::string data;
      std::vector<double> expected;
      for (int i = 0; i < 500 * channels; ++i) {
        if (bits < 0) {
          const double value = rng.normal();
          const auto narrow = static_cast<float>(value);
          std::uint64_t word = 0;
          if (bits == -32) std::memcpy(&word, &narrow, 4);
          if (bits == -64) std::memcpy(&word, &value, 8);
          put(data, static_cast<std::uint32_t>(word), 4);
          if (bits == -64) put(data, static_cast<std::uint32_t>(word >> 32U), 4);
          expected.push_back(bits == -32 ? static_cast<double>(narrow) : value);
        } else {
          const double full = std::ldexp(1.0, bits - 1);
          const double code = i == 0 ? -full : i == 1 ? full - 1 : std::floor(rng.uniform(-full, full));
          const double stored = bits == 8 ? code + 128 : code;
          put(data, static_cast<std::uint32_t>(static_cast<std::int64_t>(stored)), bits / 8);
          expected.push_back(code / full);
        }
      }
      const std::string bytes = wav_bytes(bits < 0 ? 3 : 1, std::abs(bits), channels, 8000, data);
      auto reader = SoundReader::open(bytes, "made.wav");
      ASSERT_TRUE(reader) << reader.error().text();
      EXPECT_EQ(reader->info().sample_rate, 8000);
      const auto table = read_sound(std::move(*reader), "made.wav");
      ASSERT_TRUE(table) << table.error().text();
      EXPECT_EQ(table->columns.size(), static_cast<std::size_t>(channels));
      EXPECT_EQ(table->nominal_step_ns, 125'000);
      ASSERT_EQ(table->values, expected) << bits << " bits, " << channels << " channels";
    }
  }
}

TEST_F(Sound, WhatIsWrittenComesBackToTheNearestCode) {
  Rng rng(8);
  std::vector<double> values;
  for (int i = 0; i < 6000; ++i) values.push_back(rng.uniform(-0.99, 0.99));
  const std::pair<SampleFormat, double> formats[] = {{SampleFormat::kPcm8, 0.5 / 128},      {SampleFormat::kPcm16, 0.5 / 32768},
                                                     {SampleFormat::kPcm24, 0.5 / 8388608}, {SampleFormat::kPcm32, 0.5 / 2147483648.0},
                                                     {SampleFormat::kFloat32, 6e-8},        {SampleFormat::kFloat64, 0}};
  for (const auto& [format, tolerance] : formats) {
    const auto cut = write_wav(path("w.wav"), values, 3, 44100, format);
    ASSERT_TRUE(cut) << cut.error().text();
    EXPECT_EQ(*cut, 0U);
    const auto table = read_recording(path("w.wav"));
    ASSERT_TRUE(table) << table.error().text();
    ASSERT_EQ(table->values.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(table->values[i], values[i], tolerance * 1.0000001) << i;
  }
}

TEST_F(Sound, CutsAreCountedAndNeverWrapAround) {
  const std::vector<double> values{0.5, 1.5, -2, 1.0, -1.0};
  for (const SampleFormat format : {SampleFormat::kPcm8, SampleFormat::kPcm16, SampleFormat::kPcm24, SampleFormat::kPcm32}) {
    const auto cut = write_wav(path("c.wav"), values, 1, 8000, format);
    ASSERT_TRUE(cut);
    EXPECT_EQ(*cut, 2U);
    const auto table = read_sound(path("c.wav"));
    ASSERT_TRUE(table);
    EXPECT_GT(table->values[1], 0.99);
    EXPECT_EQ(table->values[2], -1);
    EXPECT_GT(table->values[3], 0.99);
    EXPECT_EQ(table->values[4], -1);
  }
  const auto kept = write_wav(path("c.wav"), values, 1, 8000, SampleFormat::kFloat32);
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, 0U);
  EXPECT_EQ(read_sound(path("c.wav"))->values, values);
}

TEST_F(Sound, AFileThatWasCutOffIsNotTakenForAWholeOne) {
  const std::string data(2 * 1000, '\1'), whole = wav_bytes(1, 16, 1, 8000, data);
  // A note before the data, as recorders put it there.
  std::string noted = whole;
  noted.insert(36, std::string("LIST\5\0\0\0INFO!\0", 14));
  for (const std::string& bytes : {whole, noted}) {
    ASSERT_TRUE(write_file(path("cut.wav"), bytes));
    EXPECT_EQ(read_recording(path("cut.wav"))->rows(), 1000u);
    for (const std::size_t less : {1, 2, 777, 1999}) {
      ASSERT_TRUE(write_file(path("cut.wav"), bytes.substr(0, bytes.size() - less)));
      const auto strict = read_recording(path("cut.wav"));
      ASSERT_FALSE(strict) << less;
      EXPECT_EQ(strict.error().what, "the file ends " + std::to_string(less) + " bytes before its sound does");
      CsvOptions lenient;
      lenient.lenient = true;
      RecordingReport report;
      const auto rest = read_recording(path("cut.wav"), lenient, report);
      if (less == 1999) continue;  // not one frame
      ASSERT_TRUE(rest) << rest.error().text();
      EXPECT_EQ(rest->rows(), (2000 - less) / 2);
      EXPECT_EQ(report.sound->missing_bytes, static_cast<std::int64_t>(less));
    }
  }
  // What a program writes into a pipe promises nothing.
  std::string piped = whole;
  for (std::size_t i = 40; i < 44; ++i) piped[i] = '\xff';
  EXPECT_EQ(missing_riff_bytes(piped, static_cast<std::int64_t>(piped.size())), 0);
  EXPECT_EQ(missing_riff_bytes("RIFF", 4), 0);
}

TEST_F(Sound, WrongUsesLeaveNoFile) {
  const double nan = std::nan("");
  EXPECT_FALSE(write_wav(path("n.wav"), std::vector<double>{0, nan}, 1, 8000, SampleFormat::kPcm16));
  EXPECT_FALSE(write_wav(path("n.wav"), std::vector<double>{0, 1, 2}, 2, 8000, SampleFormat::kPcm16));
  EXPECT_FALSE(write_wav(path("n.wav"), std::vector<double>{0, 1}, 0, 8000, SampleFormat::kPcm16));
  EXPECT_FALSE(write_wav(path("n.wav"), std::vector<double>{0, 1}, 1, 0, SampleFormat::kPcm16));
  EXPECT_FALSE(write_wav(path("nowhere/n.wav"), std::vector<double>{0, 1}, 1, 8000, SampleFormat::kPcm16));
  EXPECT_FALSE(write_wav("/dev/full/n.wav", std::vector<double>{0, 1}, 1, 8000, SampleFormat::kPcm16));
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace kizzasi::io
