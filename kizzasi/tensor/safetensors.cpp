#include "kizzasi/tensor/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <tuple>

#include "kizzasi/base/json.h"
#include "kizzasi/tensor/checksum.h"
#include "kizzasi/tensor/files.h"
#include "kizzasi/tensor/quantized.h"
#include "kizzasi/tensor/small_float.h"

namespace kizzasi {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so are the copies here");

constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kPrefix = 8;  // the length of the header stands before it

// ---- types -------------------------------------------------------------------------------------------------------------------------

template <typename T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <typename T>
double plain(const std::byte* p) {
  return static_cast<double>(load<T>(p));
}

struct Type {
  std::string_view name;
  std::size_t bytes;  // one stored number
  double (*value)(const std::byte*);
  bool wide = false;      // f32 does not hold it
  std::size_t parts = 1;  // numbers an element: 2 for complex
};

constexpr std::array<Type, 17> kTypes{{
    {"F32", 4, plain<float>},
    {"F64", 8, plain<double>, true},
    {"F16", 2, [](const std::byte* p) { return static_cast<double>(kernels::from_f16(load<std::uint16_t>(p))); }},
    {"BF16", 2, [](const std::byte* p) { return static_cast<double>(kernels::from_bf16(load<std::uint16_t>(p))); }},
    {"F8_E4M3", 1, [](const std::byte* p) { return small_float(load<std::uint8_t>(p), 4, 3, true); }},
    {"F8_E5M2", 1, [](const std::byte* p) { return small_float(load<std::uint8_t>(p), 5, 2, false); }},
    {"F8_E8M0", 1,
     [](const std::byte* p) {
       const int exponent = load<std::uint8_t>(p);
       return exponent == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, exponent - 127);
     }},
    {"I64", 8, plain<std::int64_t>, true},
    {"I32", 4, plain<std::int32_t>, true},
    {"I16", 2, plain<std::int16_t>},
    {"I8", 1, plain<std::int8_t>},
    {"U64", 8, plain<std::uint64_t>, true},
    {"U32", 4, plain<std::uint32_t>, true},
    {"U16", 2, plain<std::uint16_t>},
    {"U8", 1, plain<std::uint8_t>},
    {"BOOL", 1, [](const std::byte* p) { return load<std::uint8_t>(p) != 0 ? 1.0 : 0.0; }},
    {"C64", 4, plain<float>, false, 2},
}};

// ---- header ------------------------------------------------------------------------------------------------------------------------

struct Entry {
  std::string name;
  const Type* type = nullptr;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

struct Header {
  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;  // in the order of the data
};

tl::unexpected<Error> broken(std::string what, std::string_view where, std::string expected = "") {
  return fail({Fault::kBroken, std::move(what), std::string(where), std::move(expected),
               "The file is damaged or no safetensors file; get or write it again."});
}

// A whole number >= 0 that JSON wrote without fraction or exponent.
bool counts(const Json& json) { return json.is_integer() && json.integer() >= 0; }

// elements * bytes of one, or false where it does not fit 64 bits.
bool size_of(const Shape& shape, std::uint64_t element, std::uint64_t& size) {
  size = element;
  for (const std::size_t n : shape) {
    if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(n), &size)) return false;
  }
  return true;
}

Result<Entry> read_entry(const std::string& name, const Json& value, std::uint64_t data_bytes, std::string_view where) {
  const std::string at = fmt::format("{}: tensor '{}'", where, name);
  const Json *type = value.find("dtype"), *shape = value.find("shape"), *offsets = value.find("data_offsets");
  if (type == nullptr || !type->is_string() || shape == nullptr || !shape->is_array() || offsets == nullptr || !offsets->is_array()) {
    return broken("its entry in the header lacks something", at, "dtype, shape and data_offsets");
  }
  Entry entry;
  entry.name = name;
  const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& t) { return t.name == type->string(); });
  if (known == kTypes.end()) {
    std::string names;
    for (const Type& t : kTypes) names.append(names.empty() ? "" : ", ").append(t.name);
    return fail({Fault::kBadInput, fmt::format("type '{}' is not known here", type->string()), at, fmt::format("one of {}", names), ""});
  }
  entry.type = &*known;
  for (const Json& n : shape->items()) {
    if (!counts(n)) return broken("its shape is no list of whole numbers from 0", at);
    entry.shape.push_back(static_cast<std::size_t>(n.integer()));
  }
  const auto& range = offsets->items();
  if (range.size() != 2 || !counts(range[0]) || !counts(range[1])) return broken("its data_offsets are no pair of whole numbers", at);
  entry.begin = static_cast<std::uint64_t>(range[0].integer());
  entry.end = static_cast<std::uint64_t>(range[1].integer());
  std::uint64_t size = 0;
  if (!size_of(entry.shape, entry.type->bytes * entry.type->parts, size)) return broken("its shape is beyond any file", at);
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return broken(fmt::format("its data [{}, {}) do not lie in the {} bytes of the file", entry.begin, entry.end, data_bytes), at);
  }
  if (entry.end - entry.begin != size) {
    return broken(
        fmt::format("{} bytes of data do not make {} of shape {}", entry.end - entry.begin, entry.type->name, shape_text(entry.shape)), at,
        fmt::format("{} bytes", size));
  }
  return entry;
}

Result<Header> read_header(std::string_view text, std::uint64_t data_bytes, std::string_view where) {
  if (text.empty() || text.front() != '{') return broken("the header is no JSON object", where);
  auto json = Json::parse(text, where);
  if (!json) return broken(json.error().what, json.error().where);
  Header header;
  for (const auto& [name, value] : json->members()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return broken("__metadata__ is no object", where, "texts by name");
      for (const auto& [key, word] : value.members()) {
        if (!word.is_string()) return broken(fmt::format("metadata '{}' is no text", key), where);
        header.metadata.emplace(key, word.string());
      }
      continue;
    }
    auto entry = read_entry(name, value, data_bytes, where);
    if (!entry) return fail(entry.error());
    header.entries.push_back(std::move(*entry));
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
  std::uint64_t reached = 0;
  for (const Entry& entry : header.entries) {
    if (entry.begin != reached) {
      return broken(fmt::format("its data begin at {}", entry.begin), fmt::format("{}: tensor '{}'", where, entry.name),
                    fmt::format("{}, where the tensor before it ends", reached));
    }
    reached = entry.end;
  }
  if (reached != data_bytes)
    return broken(fmt::format("{} bytes of data, {} of them used", data_bytes, reached), where, "all of them used");
  return header;
}

// The length of the header, from the first 8 bytes of a file of `size` bytes.
Result<std::uint64_t> header_length(const std::byte* prefix, std::uint64_t size, std::string_view where) {
  if (size < kPrefix) return broken(fmt::format("{} bytes are too few", size), where, "at least 8");
  const auto length = load<std::uint64_t>(prefix);
  if (length > kLongestHeader || length > size - kPrefix) {
    // Text, most likely: its first letters read as a length beyond all measure.
    return broken(fmt::format("it does not begin as a safetensors file does: its first 8 bytes would be a header of {} bytes", length),
                  where, "a model file, written by kizzasi train, or a checkpoint");
  }
  return length;
}

// ---- data --------------------------------------------------------------------------------------------------------------------------

void decode(const Entry& entry, const std::byte* data, SafetensorsFile& file) {
  const Type& type = *entry.type;
  Shape shape = entry.shape;
  if (type.parts > 1) shape.push_back(type.parts);
  Tensor tensor(std::move(shape));
  if (type.name == "F16") tensor.storage.precision = kernels::Precision::kF16;
  if (type.name == "BF16") tensor.storage.precision = kernels::Precision::kBf16;
  if (type.name == "F32" && !tensor.values.empty()) {
    std::memcpy(tensor.values.data(), data, tensor.values.size() * sizeof(float));
  } else {
    for (std::size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = static_cast<float>(type.value(data + i * type.bytes));
  }
  if (type.wide) {
    std::vector<double> values(tensor.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = type.value(data + i * type.bytes);
    file.wide.emplace(entry.name, std::move(values));
  }
  file.tensors.emplace(entry.name, std::move(tensor));
}

std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Takes the sum out of the metadata and holds it against what was read.
Result<void> check_sum(const FileChecksum& sum, SafetensorsFile& file, std::string_view where) {
  const auto found = file.metadata.find(FileChecksum::kKey);
  if (found == file.metadata.end() || !FileChecksum::is_ours(found->second)) return {};
  const std::string stated = found->second, computed = sum.text(file.metadata);
  file.metadata.erase(found);
  if (stated == computed) return {};
  return fail({Fault::kBroken, fmt::format("the contents are not those that were written: their sum is {}", computed), std::string(where),
               stated, "Get or write the file again. Where it was changed on purpose, take 'checksum' out of its metadata."});
}

}  // namespace

Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
  const auto length = header_length(bytes.data(), bytes.size(), where);
  if (!length) return fail(length.error());
  const std::span<const std::byte> data = bytes.subspan(kPrefix + *length);
  auto header = read_header(as_text(bytes.subspan(kPrefix, *length)), data.size(), where);
  if (!header) return fail(header.error());
  SafetensorsFile file;
  file.metadata = std::move(header->metadata);
  FileChecksum sum;
  for (const Entry& entry : header->entries) {
    sum.add(entry.name, entry.type->name, entry.shape, data.subspan(entry.begin, entry.end - entry.begin));
    decode(entry, data.data() + entry.begin, file);
  }
  if (auto whole = check_sum(sum, file, where); !whole) return fail(whole.error());
  if (auto whole = restore_quantized(file, where); !whole) return fail(whole.error());
  return file;
}

Result<SafetensorsFile> read_safetensors(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  const auto end = stream ? static_cast<std::streamoff>(stream.tellg()) : std::streamoff{-1};
  // Something that cannot be opened or measured: let the plain reader find the words.
  if (end < 0 || end == std::numeric_limits<std::streamoff>::max()) {
    const auto content = read_file(path);
    if (!content) return fail(content.error());
    return parse_safetensors(std::as_bytes(std::span(*content)), path);
  }
  const auto size = static_cast<std::uint64_t>(end);
  const auto cut = [&] { return broken("the file ends early or cannot be read", path); };
  std::array<std::byte, kPrefix> prefix{};
  stream.seekg(0);
  if (size >= kPrefix && !stream.read(reinterpret_cast<char*>(prefix.data()), kPrefix)) return cut();
  const auto length = header_length(prefix.data(), size, path);
  if (!length) return fail(length.error());
  std::string text(*length, ' ');
  if (!stream.read(text.data(), static_cast<std::streamsize>(*length))) return cut();
  auto header = read_header(text, size - kPrefix - *length, path);
  if (!header) return fail(header.error());

  SafetensorsFile file;
  file.metadata = std::move(header->metadata);
  std::vector<std::byte> data;
  FileChecksum sum;
  for (const Entry& entry : header->entries) {  // in the order of the data: one pass over the file
    data.resize(entry.end - entry.begin);
    if (!data.empty() && !stream.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()))) return cut();
    sum.add(entry.name, entry.type->name, entry.shape, data);
    decode(entry, data.data(), file);
  }
  if (auto whole = check_sum(sum, file, path); !whole) return fail(whole.error());
  if (auto whole = restore_quantized(file, path); !whole) return fail(whole.error());
  return file;
}

std::vector<std::byte> safetensors_bytes(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata) {
  std::map<std::string, std::string> told = metadata;
  if (Json record = quantization_record(tensors); !record.is_null()) told[kQuantization] = record.dump();
  Json entries = Json::object();
  std::size_t reached = 0;
  std::vector<StoredPart> parts;
  FileChecksum sum;
  for (const auto& [name, tensor] : tensors) {
    for (StoredPart& part : stored_parts(name, tensor)) {
      const std::size_t begin = reached;
      reached += part.bytes.size();
      Json entry = Json::object();
      entry["dtype"] = std::string(part.dtype);
      entry["shape"] = Json::list(part.shape);
      entry["data_offsets"] = Json::list(std::array{begin, reached});
      entries.members().emplace_back(part.name, std::move(entry));
      sum.add(part.name, part.dtype, part.shape, part.bytes);
      parts.push_back(std::move(part));
    }
  }
  told[FileChecksum::kKey] = sum.text(told);
  Json header = Json::object(), words = Json::object();
  for (const auto& [key, word] : told) words.members().emplace_back(key, word);
  header.members().emplace_back("__metadata__", std::move(words));
  for (auto& [name, entry] : entries.members()) header.members().emplace_back(name, std::move(entry));
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  std::vector<std::byte> bytes(kPrefix + text.size() + reached);
  const std::uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, kPrefix);
  std::memcpy(bytes.data() + kPrefix, text.data(), text.size());
  std::byte* place = bytes.data() + kPrefix + text.size();
  for (const StoredPart& part : parts) place = std::copy(part.bytes.begin(), part.bytes.end(), place);
  return bytes;
}

Result<void> write_safetensors(const std::string& path, const NamedTensors& tensors, const std::map<std::string, std::string>& metadata) {
  return replace_file(path, safetensors_bytes(tensors, metadata));
}

}  // namespace kizzasi
