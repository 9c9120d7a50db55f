#include "kizzasi/tensor/rwkv_cpp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>

#include "kizzasi/tensor/files.h"
#include "kizzasi/tensor/ggml_blocks.h"

namespace kizzasi {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so are the copies here");

constexpr std::int32_t kMagic = 0x67676d66;  // "ggmf", as a number
constexpr std::int32_t kMostAxes = 4, kLongestName = 1024;

tl::unexpected<Error> broken(std::string what, std::string_view where, std::string expected = "") {
  return fail({Fault::kBroken, std::move(what), std::string(where), std::move(expected),
               "The file is damaged or no file of rwkv.cpp; get or convert it again."});
}

// Takes from the front; the caller asks first whether there is so much.
class Front {
 public:
  explicit Front(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::size_t left() const { return rest_.size(); }
  std::span<const std::byte> take(std::size_t n) {
    const std::span<const std::byte> front = rest_.first(n);
    rest_ = rest_.subspan(n);
    return front;
  }
  std::int32_t number() {
    std::int32_t value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> rest_;
};

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

std::string known_types() {
  std::string names;
  for (const GgmlType& type : ggml_types()) names.append(names.empty() ? "" : ", ").append(fmt::format("{} {}", type.id, type.name));
  return names;
}

struct Entry {
  const GgmlType* type = nullptr;
  Shape shape;  // last axis fastest
  std::string name;
};

// What stands before the data of tensor number `index`.
Result<Entry> read_entry(Front& file, std::size_t index, std::int32_t version, std::string_view where) {
  const std::string at = fmt::format("{}: tensor {}", where, index);
  if (file.left() < 12)
    return broken(fmt::format("{} bytes are left, too few for another tensor", file.left()), at, "the end, or 12 bytes");
  const std::int32_t axes = file.number(), length = file.number(), type = file.number();
  if (axes < 1 || axes > kMostAxes) return broken(fmt::format("it has {} axes", axes), at, fmt::format("1 to {}", kMostAxes));
  if (length < 1 || length > kLongestName) {
    return broken(fmt::format("its name has {} bytes", length), at, fmt::format("1 to {}", kLongestName));
  }
  Entry entry;
  entry.type = find_ggml_type(type);
  if (entry.type == nullptr) {
    return fail({Fault::kBadInput, fmt::format("its type is {}, which is not known here", type), at,
                 fmt::format("one of {}", known_types()), "Convert the model to FP32 or FP16, or quantise it to one of these."});
  }
  if (file.left() < static_cast<std::size_t>(axes) * 4 + static_cast<std::size_t>(length)) {
    return broken("the file ends within its shape or name", at);
  }
  for (std::int32_t a = 0; a < axes; ++a) {
    const std::int32_t n = file.number();
    if (n < 1) return broken(fmt::format("axis {} has {} elements", a, n), at, "at least 1");
    entry.shape.insert(entry.shape.begin(), static_cast<std::size_t>(n));
  }
  const auto name = file.take(static_cast<std::size_t>(length));
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  if (!is_name(entry.name)) return broken("its name is no plain text", at, "letters, digits, dots and underscores");
  if (version == 100 && entry.type->values > 1) {
    return fail({Fault::kBadInput,
                 fmt::format("tensor '{}' is {} of file version 100, whose blocks were others", entry.name, entry.type->name),
                 std::string(where), "version 101", "Quantise the FP32 or FP16 file again with a newer rwkv.cpp."});
  }
  return entry;
}

Result<Tensor> read_data(Front& file, const Entry& entry, std::string_view where) {
  const std::string at = fmt::format("{}: tensor '{}'", where, entry.name);
  const GgmlType& type = *entry.type;
  if (entry.shape.back() % type.values != 0) {
    return broken(fmt::format("rows of {} are no whole blocks of {}", entry.shape.back(), type.name), at,
                  fmt::format("a multiple of {}", type.values));
  }
  std::size_t blocks = entry.shape.back() / type.values, bytes = 0;
  bool fits = true;
  for (std::size_t a = 0; a + 1 < entry.shape.size(); ++a) fits = fits && !__builtin_mul_overflow(blocks, entry.shape[a], &blocks);
  fits = fits && !__builtin_mul_overflow(blocks, type.bytes, &bytes);
  if (!fits || bytes > file.left()) {
    return broken(fmt::format("{} of shape {} needs more than the {} bytes that are left", type.name, shape_text(entry.shape), file.left()),
                  at);
  }
  const std::byte* data = file.take(bytes).data();
  Tensor tensor(entry.shape);
  for (std::size_t b = 0; b < blocks; ++b) type.decode(data + b * type.bytes, tensor.values.data() + b * type.values);
  const auto bad = std::find_if(tensor.values.begin(), tensor.values.end(), [](float v) { return !std::isfinite(v); });
  if (bad != tensor.values.end()) {
    return broken(fmt::format("value {} is {}", bad - tensor.values.begin(), *bad), at, "finite weights");
  }
  return tensor;
}

}  // namespace

bool is_rwkv_cpp(std::span<const std::byte> bytes) { return bytes.size() >= 4 && Front(bytes).number() == kMagic; }

bool is_rwkv_cpp_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::array<char, 4> first{};
  stream.read(first.data(), first.size());
  return stream.gcount() == 4 && is_rwkv_cpp(std::as_bytes(std::span(first)));
}

Result<RwkvCppFile> parse_rwkv_cpp(std::span<const std::byte> bytes, std::string_view where) {
  if (!is_rwkv_cpp(bytes)) return broken("it does not begin as files of rwkv.cpp do", where, "'ggmf' as a little-endian number");
  if (bytes.size() < 24) return broken(fmt::format("{} bytes are too few for the header", bytes.size()), where, "at least 24");
  Front rest(bytes);
  rest.number();
  RwkvCppFile file;
  for (std::int32_t* field : {&file.version, &file.vocabulary, &file.d_model, &file.layers, &file.type}) *field = rest.number();
  if (file.version != 100 && file.version != 101) {
    return fail({Fault::kBadInput, fmt::format("its version is {}", file.version), std::string(where), "100 or 101",
                 "Convert the model with a version of rwkv.cpp that writes 101."});
  }
  if (file.vocabulary < 1 || file.d_model < 1 || file.layers < 1) {
    return broken(fmt::format("a vocabulary of {}, {} channels, {} blocks", file.vocabulary, file.d_model, file.layers), where,
                  "at least 1 of each");
  }
  if (find_ggml_type(file.type) == nullptr) {
    return fail({Fault::kBadInput, fmt::format("its data type is {}, which is not known here", file.type), std::string(where),
                 fmt::format("one of {}", known_types()), "Convert the model to FP32 or FP16, or quantise it to one of these."});
  }
  for (std::size_t index = 0; rest.left() > 0; ++index) {
    auto entry = read_entry(rest, index, file.version, where);
    if (!entry) return fail(entry.error());
    if (file.tensors.count(entry->name) != 0) return broken(fmt::format("tensor '{}' stands there twice", entry->name), where, "each once");
    auto tensor = read_data(rest, *entry, where);
    if (!tensor) return fail(tensor.error());
    file.tensors.emplace(std::move(entry->name), std::move(*tensor));
  }
  return file;
}

Result<RwkvCppFile> read_rwkv_cpp(const std::string& path) {
  const auto content = read_file(path);
  if (!content) return fail(content.error());
  return parse_rwkv_cpp(std::as_bytes(std::span(*content)), path);
}

}  // namespace kizzasi
