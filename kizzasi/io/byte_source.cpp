#include "kizzasi/io/byte_source.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kizzasi/io/file.h"

namespace kizzasi::io {
namespace {

constexpr std::size_t kMostOfAPipe = std::size_t{4} << 30U;

class FileSource final : public ByteSource {
 public:
  explicit FileSource(FileReader file) : file_(std::move(file)) {}
  Result<std::size_t> read(std::span<char> into) override { return file_.read(into); }
  Result<void> rewind() override { return file_.rewind(); }
  const std::string& name() const override { return file_.path(); }

 private:
  FileReader file_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  MemorySource(std::string owned, std::string name, std::nullptr_t) : owned_(std::move(owned)), bytes_(owned_), name_(std::move(name)) {}
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;

  Result<std::size_t> read(std::span<char> into) override {
    const std::size_t count = std::min(into.size(), bytes_.size() - place_);
    if (count > 0) std::memcpy(into.data(), bytes_.data() + place_, count);
    place_ += count;
    return count;
  }
  Result<void> rewind() override {
    place_ = 0;
    return {};
  }
  const std::string& name() const override { return name_; }

 private:
  std::string owned_;
  std::string_view bytes_;
  std::string name_;
  std::size_t place_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_source(const std::string& path) {
  auto file = FileReader::open(path);
  if (!file) return fail(file.error());
  if (file->size() >= 0) return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(std::move(*file)));
  std::string bytes;
  std::vector<char> block(1U << 16U);
  while (true) {
    const auto got = file->read(block);
    if (!got) return fail(got.error());
    bytes.append(block.data(), *got);
    if (bytes.size() > kMostOfAPipe) {
      return fail({Fault::kBadInput, "this pipe gives more than 4 GiB", path, "a file on a disk",
                   "Write the data to a file first and name that file."});
    }
    if (*got < block.size()) break;
  }
  return std::unique_ptr<ByteSource>(std::make_unique<MemorySource>(std::move(bytes), path, nullptr));
}

std::unique_ptr<ByteSource> memory_source(std::string_view bytes, std::string name) {
  return std::make_unique<MemorySource>(bytes, std::move(name));
}

}  // namespace kizzasi::io
