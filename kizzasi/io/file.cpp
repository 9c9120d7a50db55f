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
  std::string hint = code == ENOSPC || code == EDQUOT ? "Free some space, or write to another disk."
                     : code == EFBIG                  ? "Raise the limit on the size of files (ulimit -f), or write elsewhere."
                                                      : "Check the folder and its permissions.";
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

bool takes_bytes(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

namespace {

// The name that a link leads to, whether a file stands there or not yet.
std::string behind_links(std::string path) {
  std::error_code fault;
  for (int links = 0; links < 40 && fs::is_symlink(path, fault); ++links) {
    path = (fs::path(path).parent_path() / fs::read_symlink(path, fault)).string();
  }
  return path;
}

// Writes everything and closes; what failed, where something did.
Result<void> fill(int descriptor, const std::string& path, std::string_view bytes, bool flush) {
  std::string_view failed;
  while (!bytes.empty() && failed.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) failed = "writing";
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  if (failed.empty() && flush && ::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS) failed = "flushing to the disk";
  const int code = errno;
  if (::close(descriptor) != 0 && failed.empty()) return fail(write_error(path, "closing", errno));
  if (!failed.empty()) return fail(write_error(path, failed, code));
  return {};
}

// One file that is written beside its place; it vanishes unless it is put there.
class Draft {
 public:
  explicit Draft(const std::string& path) : path_(path) {
    target_ = behind_links(path);
    draft_ = fmt::format("{}.partial-{}", target_, ::getpid());
  }
  Draft(Draft&& other) noexcept
      : path_(std::move(other.path_)), target_(std::move(other.target_)), draft_(std::move(other.draft_)), lies_(other.lies_) {
    other.lies_ = false;
  }
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (lies_) ::unlink(draft_.c_str());
  }

  Result<void> write(std::string_view bytes) {
    const int descriptor = ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) return fail(write_error(path_, "opening", errno));
    lies_ = true;
    return fill(descriptor, path_, bytes, true);
  }
  Result<void> put() {
    if (::rename(draft_.c_str(), target_.c_str()) != 0) return fail(write_error(path_, "renaming into place", errno));
    lies_ = false;
    return {};
  }

 private:
  std::string path_, target_, draft_;
  bool lies_ = false;
};

}  // namespace

Result<void> write_files(std::span<const FileToWrite> files) {
  std::vector<Draft> drafts;
  for (const FileToWrite& file : files) {
    if (auto good = check_writable(file.path); !good) return good;
    if (takes_bytes(file.path)) continue;
    if (auto written = drafts.emplace_back(file.path).write(file.bytes); !written) return written;
  }
  for (const FileToWrite& file : files) {
    if (!takes_bytes(file.path)) continue;
    const int descriptor = ::open(file.path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return fail(write_error(file.path, "opening", errno));
    if (auto written = fill(descriptor, file.path, file.bytes, false); !written) return written;
  }
  for (Draft& draft : drafts) {
    if (auto done = draft.put(); !done) return done;
  }
  return {};
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  const FileToWrite file{path, std::string(bytes)};
  return write_files({&file, 1});
}

Result<void> check_writable(const std::string& path) {
  const auto refuse = [&](std::string what, std::string hint) {
    return fail({Fault::kUnavailable, std::move(what), path.empty() ? "''" : path, "a file that can be written", std::move(hint)});
  };
  if (path.empty()) return refuse("the file name is empty", "Give the file a name.");
  std::error_code fault;
  if (fs::is_directory(path, fault)) return refuse("this is a folder, not a file", "Name a file in it.");
  if (takes_bytes(path)) {
    if (::access(path.c_str(), W_OK) != 0) return fail(write_error(path, "opening", errno));
    return {};
  }
  const fs::path target = behind_links(path);
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  if (!fs::is_directory(folder, fault)) {
    return refuse("the folder of this file does not exist", fmt::format("Make it first: mkdir -p '{}'.", folder));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return fail(write_error(path, fmt::format("writing to the folder '{}'", folder), errno));
  return {};
}

Result<void> check_apart(const std::string& written, const std::string& read) {
  if (written.empty() || read.empty() || takes_bytes(written)) return {};
  std::error_code fault;
  bool same = fs::equivalent(written, read, fault);
  if (fault) {  // one of them is not there
    const auto place = [&](const std::string& path) { return fs::weakly_canonical(fs::absolute(behind_links(path), fault), fault); };
    const fs::path one = place(written), other = place(read);
    same = !one.empty() && one == other;
  }
  if (!same) return {};
  return fail({Fault::kBadUse, "this file would be written over, and the command has another use for it", written,
               fmt::format("another file than '{}'", read), "Give what is written a name of its own."});
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
