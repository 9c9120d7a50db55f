#include "kizzasi/tensor/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace kizzasi {
namespace {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { release(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  bool release() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

tl::unexpected<Error> refused(const char* what, const std::string& path, int fault) {
  std::string hint;
  if (fault == ENOENT) hint = "Check the path; its folder must exist.";
  if (fault == EACCES || fault == EROFS || fault == EPERM) hint = "Check the permissions of the file and its folder.";
  if (fault == ENOSPC || fault == EDQUOT) hint = "Free some space or write elsewhere.";
  if (fault == EFBIG) hint = "Raise the limit on the size of files (ulimit -f), or write elsewhere.";
  return fail({Fault::kUnavailable, fmt::format("{} ({})", what, std::strerror(fault)), path, "", std::move(hint)});
}

// True when `path` still names the file behind `file`: it may have been moved away between opening and locking.
bool still_named(int file, const std::string& path) {
  struct stat mine{}, named{};
  return ::fstat(file, &mine) == 0 && ::stat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

// The name that a link leads to, whether a file stands there or not yet.
std::string behind_links(std::string path) {
  std::error_code fault;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(path, fault); ++links) {
    path = (std::filesystem::path(path).parent_path() / std::filesystem::read_symlink(path, fault)).string();
  }
  return path;
}

// A device or a pipe cannot be replaced, and must not be: it takes the bytes as they come.
bool takes_bytes(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Result<void> pour(const std::string& path, std::span<const std::byte> bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.open() || !write_all(file.number(), bytes) || !file.release()) return refused("cannot be written", path, errno);
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return refused("cannot be opened", path, errno);
  struct stat info{};
  if (::fstat(file.number(), &info) != 0) return refused("cannot be read", path, errno);
  if (S_ISDIR(info.st_mode)) return fail({Fault::kUnavailable, "is a folder", path, "a file", ""});
  std::string content;
  content.reserve(static_cast<std::size_t>(info.st_size));
  char piece[65536];
  while (true) {
    const ssize_t n = ::read(file.number(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused("cannot be read", path, errno);
    if (n == 0) return content;
    content.append(piece, static_cast<std::size_t>(n));
  }
}

Result<void> replace_file(const std::string& path, std::span<const std::byte> bytes) {
  if (takes_bytes(path)) return pour(path, bytes);
  std::error_code ignored;  // a target that does not exist yet is no fault
  const std::string target = behind_links(path);
  if (std::filesystem::is_directory(target, ignored)) return fail({Fault::kUnavailable, "is a folder", path, "a file to write", ""});
  const std::string part = target + ".part";

  Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file.open()) return refused("cannot be written", path, errno);
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0 || !still_named(file.number(), part)) {
    return fail({Fault::kUnavailable, "is being written by another program", path, "", "Write to another file or wait for the other."});
  }
  const auto give_up = [&](int fault) {
    ::unlink(part.c_str());
    return refused("cannot be written", path, fault);
  };
  if (::ftruncate(file.number(), 0) != 0 || !write_all(file.number(), bytes) || ::fsync(file.number()) != 0) return give_up(errno);
  if (::rename(part.c_str(), target.c_str()) != 0) return give_up(errno);
  if (!file.release()) return refused("cannot be written", path, errno);

  // The new name itself reaches the disk with its folder. Some file systems refuse to flush folders; the file stands all the same.
  const std::string folder = std::filesystem::path(target).parent_path().string();
  const Descriptor beside(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (beside.open()) ::fsync(beside.number());
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view text) { return replace_file(path, std::as_bytes(std::span(text))); }

}  // namespace kizzasi
