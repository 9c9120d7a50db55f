// Sound files (WAV, RF64, AIFF, FLAC, Ogg): read in blocks, and written as WAV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/io/table.h"

namespace kizzasi::io {

struct SoundInfo {
  std::size_t channels = 0;
  int sample_rate = 0;             // Hz
  std::int64_t frames = 0;         // as the header says
  std::string format;              // "WAV (Microsoft), Signed 16 bit PCM"
  std::int64_t missing_bytes = 0;  // of a RIFF file: so many does its header promise that are not there
};

// How many bytes the chunks of a RIFF file promise beyond its end: > 0 where it was cut off. Sizes of 0 and 0xFFFFFFFF, as programs write
// them into a pipe, promise nothing. `head`: the beginning of the file, with the head of its data chunk; `size`: of the whole file.
std::int64_t missing_riff_bytes(std::string_view head, std::int64_t size) noexcept;

// Integers become -1 to 1 (full scale), floats stay as they are. Thread: one at a time.
class SoundReader {
 public:
  static Result<SoundReader> open(const std::string& path);
  // From memory, which the caller keeps alive.
  static Result<SoundReader> open(std::string_view bytes, const std::string& name);
  SoundReader(SoundReader&&) noexcept;
  SoundReader& operator=(SoundReader&&) noexcept;
  ~SoundReader();

  const SoundInfo& info() const noexcept;
  // Frames read into `block` (frames, channels), fewer than fit only at the end. A file that ends in a frame or cannot be decoded: an
  // error.
  Result<std::size_t> read(std::span<double> block);

 private:
  struct State;
  explicit SoundReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The whole file: channels "audio", or "left" and "right", or "ch0", "ch1", ...; the step is the sample period, rounded to a nanosecond.
Result<Table> read_sound(const std::string& path);
Result<Table> read_sound(SoundReader reader, const std::string& name);

enum class SampleFormat { kPcm8, kPcm16, kPcm24, kPcm32, kFloat32, kFloat64 };

// `values` (frames, channels) as a WAV file, whole or not at all. Values beyond full scale are cut in the integer formats; how many is
// the result. A value that is not finite is an error.
Result<std::size_t> write_wav(const std::string& path, std::span<const double> values, std::size_t channels, int sample_rate,
                              SampleFormat format);

}  // namespace kizzasi::io
