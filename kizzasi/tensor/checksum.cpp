#include "kizzasi/tensor/checksum.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace kizzasi {
namespace {

constexpr std::string_view kForm = "crc32 ";

std::uint32_t with(std::uint32_t sum, const void* bytes, std::size_t count) {
  if (count == 0) return sum;  // zlib takes a null pointer for a wish to begin anew
  return static_cast<std::uint32_t>(::crc32_z(sum, static_cast<const Bytef*>(bytes), count));
}
// The end of a text counts, so that "ab" and "c" are not "a" and "bc".
std::uint32_t with(std::uint32_t sum, std::string_view text) { return with(with(sum, text.data(), text.size()), "", 1); }

}  // namespace

bool FileChecksum::is_ours(std::string_view text) {
  return text.size() == kForm.size() + 8 && text.starts_with(kForm) &&
         std::all_of(text.begin() + kForm.size(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

void FileChecksum::add(const std::string& name, std::string_view dtype, const Shape& shape, std::span<const std::byte> bytes) {
  tensors_[name] = with(with(with(0, dtype), shape_text(shape)), bytes.data(), bytes.size());
}

std::string FileChecksum::text(const std::map<std::string, std::string>& metadata) const {
  std::uint32_t sum = 0;
  for (const auto& [key, word] : metadata) {
    if (key != kKey) sum = with(with(sum, key), word);
  }
  for (const auto& [name, part] : tensors_) sum = with(with(sum, name), fmt::format("{:08x}", part));
  return fmt::format("{}{:08x}", kForm, sum);
}

}  // namespace kizzasi
