#include "kizzasi/io/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "kizzasi/io/file.h"
#include "kizzasi/io/npy.h"

namespace kizzasi::io {

Result<std::string> recording_format(const std::string& path) {
  // A pipe cannot be looked at twice, nor opened twice: its writer ends with the first reader. What comes through one is CSV.
  if (takes_bytes(path)) return "csv";
  std::array<char, 8> head{};
  auto file = FileReader::open(path);
  if (!file) return fail(file.error());
  if (const auto got = file->read(head); !got) return fail(got.error());
  const std::string_view first(head.data(), head.size());
  constexpr std::array<std::string_view, 5> kSound{"RIFF", "RF64", "FORM", "fLaC", "OggS"};
  if (std::any_of(kSound.begin(), kSound.end(), [&](std::string_view magic) { return first.starts_with(magic); })) return "sound";
  const std::string end = extension(path);
  if (first.starts_with("\x93NUMPY") || ((end == "npy" || end == "npz") && !first.empty())) return first.starts_with("PK") ? "npz" : "npy";
  return "csv";
}

Result<Table> read_recording(const std::string& path, const CsvOptions& options, RecordingReport& report) {
  report = {};
  auto format = recording_format(path);
  if (!format) return fail(format.error());
  report.format = std::move(*format);
  if (report.format == "sound") {
    auto reader = SoundReader::open(path);
    if (!reader) return fail(reader.error());
    report.sound = reader->info();
    if (report.sound->missing_bytes > 0 && !options.lenient) {
      return fail({Fault::kBroken, fmt::format("the file ends {} bytes before its sound does", report.sound->missing_bytes), path,
                   "a whole sound file", "Copy it again; --lenient takes the frames that are there."});
    }
    return read_sound(std::move(*reader), path);
  }
  if (report.format != "csv") return read_npy(path);
  report.csv.emplace();
  return read_csv(path, options, *report.csv);
}

Result<Table> read_recording(const std::string& path, const CsvOptions& options) {
  RecordingReport report;
  return read_recording(path, options, report);
}

}  // namespace kizzasi::io
