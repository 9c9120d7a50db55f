// Files as the readers see them: opened with errors that a person can act on, read in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/base/error.h"

namespace kizzasi::io {

// A file open for reading. Missing file (names the nearest one beside it), directory, no permission: an error.
// Thread: one at a time. Real-time: no.
class FileReader {
 public:
  static Result<FileReader> open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  ~FileReader();

  const std::string& path() const noexcept { return path_; }
  // Bytes in a regular file; -1 for a pipe or device.
  std::int64_t size() const noexcept { return size_; }
  // Fills as much of `into` as the file still has; fewer bytes than asked for mean the end. A read that fails is an error.
  Result<std::size_t> read(std::span<char> into);
  // Back to the first byte; an error where the file is a pipe.
  Result<void> rewind();

 private:
  FileReader(int descriptor, std::string path, std::int64_t size) : descriptor_(descriptor), path_(std::move(path)), size_(size) {}
  int descriptor_ = -1;
  std::string path_;
  std::int64_t size_ = -1;
};

// Whether this is a device or a pipe, which cannot be read twice nor replaced, and must not be: it takes the bytes as they come.
bool takes_bytes(const std::string& path);

// The whole file as bytes; an error where it holds more than `max_bytes`.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

// Writes all of `bytes` under `path` or nothing: into a file beside it, flushed to the disk, then renamed. On an error nothing is left and
// an older file stands as it was. A symbolic link is followed; a device or pipe is written to as it stands.
Result<void> write_file(const std::string& path, std::string_view bytes);

struct FileToWrite {
  std::string path, bytes;
};
// The same for several files that belong together: all are on the disk before the first is renamed.
Result<void> write_files(std::span<const FileToWrite> files);

// What is sure to stop `write_file` later, told before long work: an empty name, a folder of that name, no folder around it, no permission.
Result<void> check_writable(const std::string& path);

// An error where `written` and `read` lead to one file, there or not yet: what is read would be lost. Devices and pipes are no such files.
Result<void> check_apart(const std::string& written, const std::string& read);

// The part after the last dot of the name, in small letters; empty where there is none.
std::string extension(std::string_view path);

}  // namespace kizzasi::io
