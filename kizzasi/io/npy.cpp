#include "kizzasi/io/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "kizzasi/io/file.h"
#include "kizzasi/io/zip.h"

namespace kizzasi::io {
namespace {

constexpr std::size_t kMostAxes = 32, kMostHeader = 1U << 16U;
constexpr std::size_t kMostBytes = std::size_t{16} << 30U;

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::size_t> shape;
};

// The header is a Python literal; only the one form that NumPy writes is read, and nothing is evaluated.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  // What is wrong, or nothing.
  std::string parse(Header& header) {
    bool descr = false, order = false, shape = false;
    if (!take('{')) return "the header is no dictionary";
    while (!take('}')) {
      std::string key;
      if (!quoted(key) || !take(':')) return "the header is not in the form that NumPy writes";
      if (key == "descr" && !descr) {
        descr = true;
        if (!quoted(header.descr)) return "the type is no plain type of numbers";
      } else if (key == "fortran_order" && !order) {
        order = true;
        if (take_word("True")) {
          header.fortran = true;
        } else if (!take_word("False")) {
          return "fortran_order is neither True nor False";
        }
      } else if (key == "shape" && !shape) {
        shape = true;
        if (!tuple(header.shape)) return "the shape is no tuple of sizes";
      } else {
        return "a key stands in the header that does not belong there";
      }
      if (!take(',')) {
        if (!take('}')) return "the header does not end";
        break;
      }
    }
    blanks();
    if (!text_.empty()) return "something stands behind the header's dictionary";
    return descr && order && shape ? "" : "the header lacks descr, fortran_order or shape";
  }

 private:
  void blanks() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }
  bool take(char c) {
    blanks();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool quoted(std::string& out) {
    blanks();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return false;
    const auto end = text_.find(text_.front(), 1);
    if (end == text_.npos) return false;
    out.assign(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return true;
  }
  bool tuple(std::vector<std::size_t>& shape) {
    if (!take('(')) return false;
    while (!take(')')) {
      blanks();
      std::uint64_t size = 0;
      const auto [rest, fault] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (fault != std::errc{} || shape.size() >= kMostAxes) return false;
      text_.remove_prefix(static_cast<std::size_t>(rest - text_.data()));
      take_word("L");  // Python 2 wrote long integers so
      shape.push_back(size);
      if (!take(',')) return take(')');
    }
    return true;
  }

  std::string_view text_;
};

struct Kind {
  char letter = 'f';
  std::size_t bytes = 4;  // of one element
  bool big = false;
};

std::optional<Kind> kind_of_descr(std::string_view descr) {
  if (descr.size() != 3 && descr.size() != 4) return std::nullopt;
  const char order = descr[0];
  if (order != '<' && order != '>' && order != '|' && order != '=') return std::nullopt;
  constexpr std::array<std::string_view, 14> kKinds{"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"};
  const std::string_view name = descr.substr(1);
  if (std::find(kKinds.begin(), kKinds.end(), name) == kKinds.end()) return std::nullopt;
  Kind kind{name[0], static_cast<std::size_t>(name == "c16" ? 16 : name[1] - '0'), order == '>'};
  if (order == '|' && kind.bytes > 1) return std::nullopt;
  return kind;
}

// IEEE 754 binary16.
double half(std::uint16_t bits) {
  const int exponent = (bits >> 10U) & 0x1F;
  const auto fraction = static_cast<double>(bits & 0x3FFU);
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000U) != 0 ? -size : size;
}

// One number of up to 8 bytes.
double number_at(const char* place, char letter, std::size_t bytes, bool big, std::size_t& rounded) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(place[big ? bytes - 1 - i : i])) << (8 * i);
  switch (letter) {
    case 'b':
      return bits != 0 ? 1 : 0;
    case 'u': {
      const auto value = static_cast<double>(bits);
      // 2^64 itself would not convert back.
      rounded += value >= 18446744073709551616.0 || static_cast<std::uint64_t>(value) != bits ? 1 : 0;
      return value;
    }
    case 'i': {
      const unsigned unused = static_cast<unsigned>(64 - 8 * bytes);
      const std::int64_t whole = static_cast<std::int64_t>(bits << unused) >> unused;
      const auto value = static_cast<double>(whole);
      rounded += value >= 9223372036854775808.0 || static_cast<std::int64_t>(value) != whole ? 1 : 0;
      return value;
    }
    default:
      if (bytes == 2) return half(static_cast<std::uint16_t>(bits));
      if (bytes == 4) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      return std::bit_cast<double>(bits);
  }
}

// Elements in C order, whatever the order in the file.
void read_values(std::string_view data, const Kind& kind, bool fortran, NpyArray& array) {
  const std::size_t parts = kind.letter == 'c' ? 2 : 1, width = kind.bytes / parts;
  const char letter = kind.letter == 'c' ? 'f' : kind.letter;
  const std::size_t count = data.size() / kind.bytes;
  array.values.resize(count * parts);
  std::vector<std::size_t> index(array.shape.size(), 0), stride(array.shape.size(), 1);
  for (std::size_t axis = 1; fortran && axis < stride.size(); ++axis) stride[axis] = stride[axis - 1] * array.shape[axis - 1];
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t at = i;
    if (fortran) {
      at = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * stride[axis];
      for (std::size_t axis = index.size(); axis-- > 0;) {
        if (++index[axis] < array.shape[axis]) break;
        index[axis] = 0;
      }
    }
    for (std::size_t p = 0; p < parts; ++p) {
      array.values[i * parts + p] = number_at(data.data() + at * kind.bytes + p * width, letter, width, kind.big, array.rounded);
    }
  }
}

bool is_time(const std::string& name) {
  constexpr std::array<std::string_view, 5> kNames{"time", "t", "ts", "timestamp", "ds"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Seconds since the start, or an epoch in s, ms, us or ns by its size.
Result<std::vector<std::int64_t>> stamps(const NpyArray& array, const std::string& where) {
  double size = 0;
  for (const double value : array.values) {
    if (!std::isfinite(value)) {
      return fail({Fault::kBadInput, "a stamp is not finite", fmt::format("{}, member '{}'", where, array.name), "finite times",
                   "Drop such rows."});
    }
    size = std::max(size, std::fabs(value));
  }
  const double unit = size < 1e11 ? 1e9 : size < 1e14 ? 1e6 : size < 1e16 ? 1e3 : 1;
  std::vector<std::int64_t> out;
  for (const double value : array.values) {
    const double ns = value * unit;
    if (std::fabs(ns) > 9.2e18) {
      return fail({Fault::kBadInput, "a stamp lies outside the years 1678 to 2261", fmt::format("{}, member '{}'", where, array.name),
                   "plausible times", ""});
    }
    out.push_back(static_cast<std::int64_t>(std::llround(ns)));
  }
  return out;
}

std::string shape_text(const std::vector<std::size_t>& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

}  // namespace

Result<NpyArray> parse_npy(std::string_view bytes, std::string_view where) {
  const auto broken = [&](std::string what, std::string expected) {
    return fail({Fault::kBroken, std::move(what), std::string(where), std::move(expected), "Save the array again with numpy.save."});
  };
  if (bytes.size() < 10 || !bytes.starts_with("\x93NUMPY")) return broken("this is no NumPy array", "a file that begins with \\x93NUMPY");
  const int major = static_cast<unsigned char>(bytes[6]), minor = static_cast<unsigned char>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    return broken(fmt::format("format version {}.{} is unknown", major, minor), "version 1.0, 2.0 or 3.0");
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (bytes.size() < prefix) return broken("the file ends in its header", "a whole file");
  std::size_t length = 0;
  for (std::size_t i = prefix; i-- > 8;) length = (length << 8U) | static_cast<unsigned char>(bytes[i]);
  if (length > bytes.size() - prefix) return broken("the header is longer than the file", "a whole file");
  if (length > kMostHeader) return broken(fmt::format("a header of {} bytes", length), "at most 65536 bytes");
  Header header;
  if (const std::string wrong = HeaderParser(bytes.substr(prefix, length)).parse(header); !wrong.empty()) {
    return broken(wrong, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  }
  const auto kind = kind_of_descr(header.descr);
  if (!kind) {
    return broken(fmt::format("elements of type '{}' are no numbers that are read here", header.descr),
                  "bool, integers of 1 to 8 bytes, floats of 2, 4 or 8, complex of 8 or 16");
  }
  const std::string_view data = bytes.substr(prefix + length);
  std::size_t count = 1;
  const bool empty = std::find(header.shape.begin(), header.shape.end(), std::size_t{0}) != header.shape.end();
  for (const std::size_t size : header.shape) {
    if (!empty && size > data.size() / count)
      return broken(fmt::format("the shape {} needs more bytes than there are", shape_text(header.shape)), "a whole file");
    count *= empty ? 0 : size;
  }
  if (empty) count = 0;
  if (count * kind->bytes != data.size()) {
    return broken(fmt::format("{} bytes of data where the shape {} needs {}", data.size(), shape_text(header.shape), count * kind->bytes),
                  "exactly the bytes of the array");
  }
  NpyArray array;
  array.dtype = header.descr.substr(1);
  array.shape = std::move(header.shape);
  array.complex = kind->letter == 'c';
  read_values(data, *kind, header.fortran, array);
  return array;
}

Result<std::vector<NpyArray>> parse_npz(std::string_view bytes, std::string_view where) {
  auto members = unpack_zip(bytes, where);
  if (!members) return fail(members.error());
  std::vector<NpyArray> arrays;
  for (ZipMember& member : *members) {
    const std::string place = fmt::format("{}, member '{}'", where, member.name);
    if (!member.name.ends_with(".npy")) {
      return fail(
          {Fault::kBroken, "this member is no NumPy array", place, "members named *.npy", "Save the arrays again with numpy.savez."});
    }
    auto array = parse_npy(member.bytes, place);
    if (!array) return fail(array.error());
    array->name = member.name.substr(0, member.name.size() - 4);
    member.bytes = {};
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

Result<Table> npy_table(std::vector<NpyArray> arrays, const std::string& where) {
  Table table;
  table.source = where;
  std::optional<std::size_t> rows;
  struct Source {
    const NpyArray* array;
    std::size_t column, columns;
  };
  std::vector<Source> sources;
  for (const NpyArray& array : arrays) {
    const std::string place = array.name.empty() ? where : fmt::format("{}, member '{}'", where, array.name);
    if (array.complex || array.shape.empty() || array.shape.size() > 2) {
      return fail(
          {Fault::kBadInput,
           array.complex ? "complex numbers are no channels" : fmt::format("an array of shape {} is no recording", shape_text(array.shape)),
           place, "an array of shape (rows) or (rows, channels)", "Reshape it, or save real and imaginary part as channels."});
    }
    if (rows && *rows != array.shape[0]) {
      return fail({Fault::kBadInput, fmt::format("{} rows where another member has {}", array.shape[0], *rows), place,
                   "as many rows in every member", "Save members of other lengths in a file of their own."});
    }
    rows = array.shape[0];
    if (*rows == 0) break;  // a shape without rows may name any number of columns
    if (array.shape.size() == 1 && is_time(array.name)) {
      auto times = stamps(array, where);
      if (!times) return fail(times.error());
      table.time_ns = std::move(*times);
      continue;
    }
    const std::size_t columns = array.shape.size() == 1 ? 1 : array.shape[1];
    const std::string name = array.name.empty() ? "c" : array.name;
    for (std::size_t c = 0; c < columns; ++c) {
      const bool numbered = array.shape.size() == 2 || array.name.empty();
      table.columns.push_back({numbered ? fmt::format("{}{}", name, c) : name, "", Role::kTarget});
      sources.push_back({&array, c, columns});
    }
  }
  if (!rows || *rows == 0 || sources.empty()) {
    return fail({Fault::kBadInput, "the array is empty", where, "rows of numbers", "Check that the recording was written."});
  }
  table.values.reserve(*rows * sources.size());
  for (std::size_t r = 0; r < *rows; ++r) {
    for (const Source& source : sources) {
      const double value = source.array->values[r * source.columns + source.column];
      table.values.push_back(std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return table;
}

Result<Table> read_npy(const std::string& path) {
  const auto bytes = read_file(path, kMostBytes);
  if (!bytes) return fail(bytes.error());
  std::vector<NpyArray> arrays;
  if (std::string_view(*bytes).starts_with("PK")) {
    auto members = parse_npz(*bytes, path);
    if (!members) return fail(members.error());
    arrays = std::move(*members);
  } else {
    auto array = parse_npy(*bytes, path);
    if (!array) return fail(array.error());
    arrays.push_back(std::move(*array));
  }
  return npy_table(std::move(arrays), path);
}

}  // namespace kizzasi::io
