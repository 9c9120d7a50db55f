#include "kizzasi/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "kizzasi/base/suggest.h"

namespace kizzasi::io {
namespace {

namespace fs = std::filesystem;

// The names beside a file that is not there, for "did you mean". A folder that cannot be listed has none.
std::vector<std::string> neighbours(const std::string& path) {
  std::vector<std::string> names;
  std::error_code fault;
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end && names.size() < 1000; entry.increment(fault)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

Error open_error(const std::string& path, int code) {
  if (code == ENOENT || code == ENOTDIR) {
    const fs::path folder = fs::path(path).parent_path();
    std::error_code fault;
    if (!folder.empty() && !fs::is_directory(folder, fault)) {
      return {Fault::kUnavailable, "the folder of this file does not exist", path, "a path to an existing file",
              fmt::format("Check the folder '{}'.", folder.string())};
    }
    std::string hint = did_you_mean(fs::path(path).filename().string(), neighbours(path));
    if (hint.empty()) hint = "Check the path; relative paths start in the current folder.";
    return {Fault::kUnavailable, path.empty() ? "the file name is empty" : "there is no such file", path.empty() ? "''" : path,
            "a path to an existing file", hint};
  }
  if (code == EACCES || code == EPERM) {
    return {Fault::kUnavailable, "no permission to read this file", path, "a file that this user may read",
            fmt::format("For example: chmod u+r '{}', or run as its owner.", path)};
  }
  return {Fault::kUnavailable, fmt::format("the file cannot be opened: {}", std::strerror(code)), path, "a file that can be read",
          "Check the disk and the path."};
}

Error write_error(const std::string& path, std::string_view step, int code) {
  std::string hint =
      code == ENOSPC || code == EDQUOT ? "Free some space, or write to another disk." : "Check the folder and its permissions.";
  return {Fault::kUnavailable, fmt::format("{} failed: {}", step, std::strerror(code)), path, "a file that can be written",
          std::move(hint)};
}

}  // namespace

Result<FileReader> FileReader::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(open_error(path, errno));
  struct stat info{};
  if (::fstat(descriptor, &info) != 0) {
    const int code = errno;
    ::close(descriptor);
    return fail(open_error(path, code));
  }
  if (S_ISDIR(info.st_mode)) {
    ::close(descriptor);
    return fail({Fault::kUnavailable, "this is a folder, not a file", path, "a path to an existing file", "Name one of the files in it."});
  }
  return FileReader(descriptor, path, S_ISREG(info.st_mode) ? static_cast<std::int64_t>(info.st_size) : -1);
}

FileReader::FileReader(FileReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), size_(other.size_) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  return *this;
}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::size_t> FileReader::read(std::span<char> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::read(descriptor_, into.data() + done, into.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return fail({Fault::kUnavailable, fmt::format("reading failed: {}", std::strerror(errno)), path_,
                   "a file that can be read to its end", "Check the disk; copy the file and try again."});
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> FileReader::rewind() {
  if (::lseek(descriptor_, 0, SEEK_SET) == 0) return {};
  return fail({Fault::kUnavailable, "this is a pipe or device and cannot be read twice", path_, "a file on a disk",
               "Write the data to a file first and name that file."});
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  auto file = FileReader::open(path);
  if (!file) return fail(file.error());
  std::string bytes;
  std::vector<char> block(1U << 16U);
  while (true) {
    const auto got = file->read(block);
    if (!got) return fail(got.error());
    bytes.append(block.data(), *got);
    if (bytes.size() > max_bytes) {
      return fail({Fault::kBadInput, fmt::format("the file is larger than {} bytes", max_bytes), path, "a smaller file of this kind",
                   "Check that this is the file you mean."});
    }
    if (*got < block.size()) return bytes;
  }
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  std::string draft = fmt::format("{}.partial-{}", path, ::getpid());
  const int descriptor = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return fail(write_error(path, "opening", errno));
  const auto give_up = [&](std::string_view step) {
    const int code = errno;
    ::close(descriptor);
    ::unlink(draft.c_str());
    return fail(write_error(path, step, code));
  };
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return give_up("writing");
    done += static_cast<std::size_t>(put);
  }
  if (::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS) return give_up("flushing to the disk");
  if (::close(descriptor) != 0 || ::rename(draft.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(draft.c_str());
    return fail(write_error(path, "renaming into place", code));
  }
  return {};
}

std::string extension(std::string_view path) {
  const auto slash = path.find_last_of('/');
  const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  const auto dot = name.find_last_of('.');
  if (dot == name.npos || dot == 0) return "";
  std::string end(name.substr(dot + 1));
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return end;
}

}  // namespace kizzasi::io
