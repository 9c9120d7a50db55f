// One door to every kind of recording.
#pragma once

#include <optional>
#include <string>

#include "kizzasi/io/csv.h"
#include "kizzasi/io/sound.h"
#include "kizzasi/io/table.h"

namespace kizzasi::io {

// What was found about the file, beside its numbers.
struct RecordingReport {
  std::string format;              // "csv", "sound", "npy", "npz"
  std::optional<CsvReport> csv;    // of a CSV file, also where reading failed
  std::optional<SoundInfo> sound;  // of a sound file
};

// "csv", "sound", "npy" or "npz", by the first bytes.
Result<std::string> recording_format(const std::string& path);

// The kind is told by the content, not by the name: RIFF, RF64, FORM, fLaC and OggS begin sound, \x93NUMPY an array, PK with the name *.npz
// arrays; anything else is read as CSV. Times of a sound file are counted from its nominal step.
Result<Table> read_recording(const std::string& path, const CsvOptions& options, RecordingReport& report);
Result<Table> read_recording(const std::string& path, const CsvOptions& options = {});

}  // namespace kizzasi::io
