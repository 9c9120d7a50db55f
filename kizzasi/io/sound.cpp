#include "kizzasi/io/sound.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "kizzasi/io/file.h"

namespace kizzasi::io {
namespace {

constexpr std::size_t kBlockFrames = 1U << 14U;
constexpr int kMostChannels = 1024;
constexpr std::size_t kHeadBytes = 1U << 16U;  // where the head of the data stands, after notes about the sound

// libsndfile's window on bytes in memory.
struct Memory {
  std::string_view read_only;
  std::string* written = nullptr;
  sf_count_t place = 0;

  sf_count_t size() const { return static_cast<sf_count_t>(written != nullptr ? written->size() : read_only.size()); }
};

sf_count_t memory_size(void* user) { return static_cast<Memory*>(user)->size(); }
sf_count_t memory_tell(void* user) { return static_cast<Memory*>(user)->place; }
sf_count_t memory_seek(sf_count_t offset, int whence, void* user) {
  auto& memory = *static_cast<Memory*>(user);
  const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory.place : memory.size();
  if ((offset > 0 && base > std::numeric_limits<sf_count_t>::max() - offset) || base + offset < 0) return -1;
  return memory.place = base + offset;
}
sf_count_t memory_read(void* into, sf_count_t count, void* user) {
  auto& memory = *static_cast<Memory*>(user);
  const sf_count_t left = std::max<sf_count_t>(0, memory.size() - memory.place), taken = std::clamp<sf_count_t>(count, 0, left);
  if (taken > 0) std::memcpy(into, memory.read_only.data() + memory.place, static_cast<std::size_t>(taken));
  memory.place += taken;
  return taken;
}
sf_count_t memory_write(const void* from, sf_count_t count, void* user) {
  auto& memory = *static_cast<Memory*>(user);
  if (memory.written == nullptr) return 0;
  const auto end = static_cast<std::size_t>(memory.place + count);
  if (memory.written->size() < end) memory.written->resize(end);
  std::memcpy(memory.written->data() + memory.place, from, static_cast<std::size_t>(count));
  memory.place += count;
  return count;
}

SF_VIRTUAL_IO memory_io() { return {memory_size, memory_seek, memory_read, memory_write, memory_tell}; }

std::string format_text(SNDFILE* file, int format) {
  const auto name = [&](int part) {
    SF_FORMAT_INFO info{};
    info.format = part;
    const bool known = sf_command(file, SFC_GET_FORMAT_INFO, &info, sizeof(info)) == 0 && info.name != nullptr;
    return std::string(known ? info.name : "unknown");
  };
  return name(format & SF_FORMAT_TYPEMASK).append(", ").append(name(format & SF_FORMAT_SUBMASK));
}

}  // namespace

std::int64_t missing_riff_bytes(std::string_view head, std::int64_t size) noexcept {
  if (!head.starts_with("RIFF") || head.size() < 12 || head.substr(8, 4) != "WAVE") return 0;
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (int i = 3; i >= 0; --i) value = value << 8U | static_cast<std::uint8_t>(head[at + static_cast<std::size_t>(i)]);
    return value;
  };
  for (std::size_t at = 12; at + 8 <= head.size();) {
    const std::uint32_t length = word(at + 4);
    if (head.substr(at, 4) != "data") {
      at += 8 + length + length % 2;
      continue;
    }
    if (length == 0 || length == 0xFFFFFFFF) return 0;
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(at) + 8 + length - size);
  }
  return 0;
}

struct SoundReader::State {
  SNDFILE* file = nullptr;
  Memory memory;
  SoundInfo info;
  std::string name;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file != nullptr) sf_close(file);
  }

  Result<void> accept(const SF_INFO& found) {
    if (file == nullptr) {
      return fail({Fault::kBroken, fmt::format("this sound file cannot be read: {}", sf_strerror(nullptr)), name, "WAV, AIFF, FLAC or Ogg",
                   "Convert it to WAV, for example with sox or ffmpeg."});
    }
    if (found.channels < 1 || found.channels > kMostChannels || found.samplerate < 1) {
      return fail({Fault::kBroken, fmt::format("{} channels at {} Hz", found.channels, found.samplerate), name,
                   "1 to 1024 channels at 1 Hz or more", "The header is damaged; save the file again."});
    }
    info = {static_cast<std::size_t>(found.channels), found.samplerate, found.frames, format_text(file, found.format)};
    return {};
  }
};

SoundReader::SoundReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
SoundReader::SoundReader(SoundReader&&) noexcept = default;
SoundReader& SoundReader::operator=(SoundReader&&) noexcept = default;
SoundReader::~SoundReader() = default;

Result<SoundReader> SoundReader::open(const std::string& path) {
  auto file = FileReader::open(path);
  if (!file) return fail(file.error());
  std::vector<char> head(kHeadBytes);
  const auto got = file->read(head);
  if (!got) return fail(got.error());
  auto state = std::make_unique<State>();
  state->name = path;
  SF_INFO found{};
  state->file = sf_open(path.c_str(), SFM_READ, &found);
  if (auto good = state->accept(found); !good) return fail(good.error());
  state->info.missing_bytes = missing_riff_bytes({head.data(), *got}, file->size());
  return SoundReader(std::move(state));
}

Result<SoundReader> SoundReader::open(std::string_view bytes, const std::string& name) {
  auto state = std::make_unique<State>();
  state->name = name;
  state->memory.read_only = bytes;
  SF_INFO found{};
  SF_VIRTUAL_IO io = memory_io();
  state->file = sf_open_virtual(&io, SFM_READ, &found, &state->memory);
  if (auto good = state->accept(found); !good) return fail(good.error());
  state->info.missing_bytes = missing_riff_bytes(bytes, static_cast<std::int64_t>(bytes.size()));
  return SoundReader(std::move(state));
}

const SoundInfo& SoundReader::info() const noexcept { return state_->info; }

Result<std::size_t> SoundReader::read(std::span<double> block) {
  const std::size_t frames = block.size() / state_->info.channels;
  const sf_count_t got = sf_readf_double(state_->file, block.data(), static_cast<sf_count_t>(frames));
  if (got < 0 || sf_error(state_->file) != SF_ERR_NO_ERROR) {
    return fail({Fault::kBroken, fmt::format("decoding failed: {}", sf_strerror(state_->file)), state_->name, "an undamaged sound file",
                 "Save or copy the file again."});
  }
  return static_cast<std::size_t>(got);
}

Result<Table> read_sound(SoundReader reader, const std::string& name) {
  const SoundInfo& info = reader.info();
  Table table;
  table.source = name;
  table.nominal_step_ns = std::llround(1e9 / info.sample_rate);
  for (std::size_t c = 0; c < info.channels; ++c) {
    std::string channel = info.channels == 1 ? "audio" : info.channels == 2 ? (c == 0 ? "left" : "right") : fmt::format("ch{}", c);
    table.columns.push_back({std::move(channel), "", Role::kTarget});
  }
  std::vector<double> block(kBlockFrames * info.channels);
  while (true) {
    const auto got = reader.read(block);
    if (!got) return fail(got.error());
    for (std::size_t i = 0; i < *got * info.channels; ++i) {
      table.values.push_back(std::isfinite(block[i]) ? block[i] : std::numeric_limits<double>::quiet_NaN());
    }
    if (*got < kBlockFrames) break;
  }
  if (table.values.empty())
    return fail({Fault::kBadInput, "the sound file has no frame", name, "at least one frame", "Check that the recording was written."});
  return table;
}

Result<Table> read_sound(const std::string& path) {
  auto reader = SoundReader::open(path);
  if (!reader) return fail(reader.error());
  return read_sound(std::move(*reader), path);
}

Result<std::size_t> write_wav(const std::string& path, std::span<const double> values, std::size_t channels, int sample_rate,
                              SampleFormat format) {
  if (channels == 0 || channels > static_cast<std::size_t>(kMostChannels) || values.size() % channels != 0 || sample_rate < 1) {
    return fail({Fault::kBadUse, fmt::format("{} values of {} channels at {} Hz", values.size(), channels, sample_rate), path,
                 "whole frames of 1 to 1024 channels at 1 Hz or more", ""});
  }
  constexpr int kFormats[] = {SF_FORMAT_PCM_U8, SF_FORMAT_PCM_16, SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_FLOAT, SF_FORMAT_DOUBLE};
  const bool whole_numbers = format < SampleFormat::kFloat32;
  std::vector<double> samples(values.begin(), values.end());
  std::size_t cut = 0;
  // The largest value below full scale of the format: 1 itself has no code.
  constexpr double kSteps[] = {128, 32768, 8388608, 2147483648.0};
  const double steps = whole_numbers ? kSteps[static_cast<std::size_t>(format)] : 1;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i])) {
      return fail({Fault::kBadInput, fmt::format("frame {} has a value that is not finite", i / channels), path, "finite values",
                   "Fill missing values first."});
    }
    if (!whole_numbers) continue;
    // Rounded here to the codes of the format, so that what is written is the nearest code, whatever the library does with halves.
    const double code = std::round(samples[i] * steps), kept = std::clamp(code, -steps, steps - 1);
    cut += code != kept && std::fabs(samples[i]) > 1 ? 1 : 0;
    samples[i] = kept / steps;
  }
  std::string bytes;
  Memory memory{{}, &bytes, 0};
  SF_VIRTUAL_IO io = memory_io();
  SF_INFO info{};
  info.channels = static_cast<int>(channels);
  info.samplerate = sample_rate;
  // The plain header holds 4 GiB; beyond that RF64 takes its place.
  const bool large = samples.size() > (std::size_t{1} << 28U);
  info.format = (large ? SF_FORMAT_RF64 : SF_FORMAT_WAV) | kFormats[static_cast<std::size_t>(format)];
  SNDFILE* file = sf_open_virtual(&io, SFM_WRITE, &info, &memory);
  if (file == nullptr)
    return fail({Fault::kBadUse, fmt::format("this WAV cannot be written: {}", sf_strerror(nullptr)), path, "a usual format", ""});
  // Codes stand exactly at code / steps; the library multiplies by steps - 1 unless it is told not to scale.
  if (whole_numbers) sf_command(file, SFC_SET_NORM_DOUBLE, nullptr, SF_FALSE);
  if (whole_numbers) {
    for (double& sample : samples) sample *= steps;
  }
  const auto frames = static_cast<sf_count_t>(samples.size() / channels);
  const bool good = sf_writef_double(file, samples.data(), frames) == frames;
  const std::string problem = good ? "" : sf_strerror(file);
  sf_close(file);
  if (!good)
    return fail({Fault::kUnavailable, fmt::format("writing the samples failed: {}", problem), path, "a file that can be written", ""});
  if (auto done = write_file(path, bytes); !done) return fail(done.error());
  return cut;
}

}  // namespace kizzasi::io
