#include "kizzasi/io/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <set>

namespace kizzasi::io {
namespace {

constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30U, kAlwaysAllowed = std::uint64_t{16} << 20U, kMostRatio = 200;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;

// Little-endian numbers; outside the bytes they are 0, and callers check sizes first.
std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

struct Entry {
  std::string name;
  std::uint64_t flags = 0, method = 0, crc = 0, packed = 0, unpacked = 0, offset = 0;
};

// Sizes of 0xFFFFFFFF stand in the extra field 0x0001, in this order.
bool read_large_sizes(std::string_view extra, Entry& entry) {
  constexpr std::uint64_t kElsewhere = 0xFFFFFFFF;
  if (entry.packed != kElsewhere && entry.unpacked != kElsewhere && entry.offset != kElsewhere) return true;
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const std::uint64_t id = number(extra, at, 2), size = number(extra, at + 2, 2);
    if (size > extra.size() - at - 4) return false;
    if (id == 1) {
      std::string_view field = extra.substr(at + 4, size);
      for (std::uint64_t* value : {&entry.unpacked, &entry.packed, &entry.offset}) {
        if (*value != kElsewhere) continue;
        if (field.size() < 8) return false;
        *value = number(field, 0, 8);
        field.remove_prefix(8);
      }
      return true;
    }
    at += 4 + size;
  }
  return false;
}

bool is_safe_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '/' && name.find("..") == name.npos && name.find('\\') == name.npos &&
         name.find('\0') == name.npos && name.find(':') == name.npos;
}

bool inflate_all(std::string_view packed, std::string& unpacked) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  int state = Z_OK;
  std::size_t taken = 0, given = 0;
  constexpr std::size_t kPart = std::size_t{1} << 30U;  // zlib counts in 32 bits
  while (state == Z_OK) {
    const std::size_t in = std::min(kPart, packed.size() - taken), out = std::min(kPart, unpacked.size() - given);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data() + given);
    stream.avail_out = static_cast<uInt>(out);
    state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t used = in - stream.avail_in, made = out - stream.avail_out;
    taken += used;
    given += made;
    if (state == Z_OK && used == 0 && made == 0) break;
  }
  inflateEnd(&stream);
  return state == Z_STREAM_END && taken == packed.size() && given == unpacked.size();
}

}  // namespace

Result<std::vector<ZipMember>> unpack_zip(std::string_view bytes, std::string_view where) {
  const auto broken = [&](std::string what, std::string expected, std::string_view member = {}) {
    std::string place(where);
    if (!member.empty()) place.append(", member '").append(member).append("'");
    return fail({Fault::kBroken, std::move(what), std::move(place), std::move(expected), "Save the arrays again with numpy.savez."});
  };
  // The end record stands in the last bytes, before a comment of at most 65535.
  std::size_t end = std::string_view::npos;
  for (std::size_t back = kEndBytes; back <= bytes.size() && back <= kEndBytes + 65535; ++back) {
    const std::size_t at = bytes.size() - back;
    if (bytes.substr(at, 4) == std::string_view("PK\x05\x06", 4) && number(bytes, at + 20, 2) == back - kEndBytes) {
      end = at;
      break;
    }
  }
  if (end == std::string_view::npos) return broken("the archive has no end record", "a whole zip file");
  if (number(bytes, end + 4, 2) != 0 || number(bytes, end + 6, 2) != 0 || number(bytes, end + 8, 2) != number(bytes, end + 10, 2)) {
    return broken("the archive is one of several parts", "one whole zip file");
  }
  std::uint64_t count = number(bytes, end + 10, 2), size = number(bytes, end + 12, 4), at = number(bytes, end + 16, 4);
  if ((count == 0xFFFF || size == 0xFFFFFFFF || at == 0xFFFFFFFF) && end >= 20 &&
      bytes.substr(end - 20, 4) == std::string_view("PK\x06\x07", 4)) {
    const std::uint64_t record = number(bytes, end - 12, 8);
    if (record > bytes.size() || bytes.size() - record < 56 || bytes.substr(record, 4) != std::string_view("PK\x06\x06", 4)) {
      return broken("the end record for large files is damaged", "a whole zip file");
    }
    count = number(bytes, record + 32, 8);
    size = number(bytes, record + 40, 8);
    at = number(bytes, record + 48, 8);
  }
  if (at > end || size > end - at || count > size / kEntryBytes) return broken("the directory does not fit the file", "a whole zip file");

  std::vector<ZipMember> members;
  std::set<std::string> names;
  std::uint64_t total = 0;
  const std::string_view directory = bytes.substr(at, size);
  for (std::size_t place = 0; count > 0; --count) {
    if (directory.size() - place < kEntryBytes || directory.substr(place, 4) != std::string_view("PK\x01\x02", 4)) {
      return broken("the directory is damaged", "a whole zip file");
    }
    Entry entry{"",
                number(directory, place + 8, 2),
                number(directory, place + 10, 2),
                number(directory, place + 16, 4),
                number(directory, place + 20, 4),
                number(directory, place + 24, 4),
                number(directory, place + 42, 4)};
    const std::size_t name = number(directory, place + 28, 2), extra = number(directory, place + 30, 2),
                      comment = number(directory, place + 32, 2);
    if (directory.size() - place - kEntryBytes < name + extra + comment) return broken("the directory is damaged", "a whole zip file");
    entry.name = directory.substr(place + kEntryBytes, name);
    if (!read_large_sizes(directory.substr(place + kEntryBytes + name, extra), entry))
      return broken("a size is missing", "a whole zip file", entry.name);
    place += kEntryBytes + name + extra + comment;

    if (!is_safe_name(entry.name)) return broken("the name of a member leaves its folder", "plain names", entry.name);
    if (!names.insert(entry.name).second) return broken("two members have this name", "each name once", entry.name);
    if ((entry.flags & 1U) != 0) return broken("the member is encrypted", "a plain archive", entry.name);
    if (entry.method != 0 && entry.method != 8)
      return broken(fmt::format("packing method {} is unknown", entry.method), "stored or deflated members", entry.name);
    total += entry.unpacked;
    const bool bomb = entry.unpacked > kAlwaysAllowed && entry.unpacked / kMostRatio > entry.packed;
    if (entry.unpacked > kMostUnpacked || total > kMostUnpacked || bomb) {
      return broken(fmt::format("{} packed bytes would become {}", entry.packed, entry.unpacked),
                    "at most 4 GiB in all, and at most 200 times the packed size above 16 MiB", entry.name);
    }
    if (entry.offset > bytes.size() || bytes.size() - entry.offset < kLocalBytes ||
        bytes.substr(entry.offset, 4) != std::string_view("PK\x03\x04", 4)) {
      return broken("a member is not where the directory says", "a whole zip file", entry.name);
    }
    const std::uint64_t local_name = number(bytes, entry.offset + 26, 2),
                        begin = entry.offset + kLocalBytes + local_name + number(bytes, entry.offset + 28, 2);
    if (begin > bytes.size() || entry.packed > bytes.size() - begin)
      return broken("a member is longer than the file", "a whole zip file", entry.name);
    if (bytes.substr(entry.offset + kLocalBytes, local_name) != entry.name || number(bytes, entry.offset + 8, 2) != entry.method) {
      return broken("a member and the directory disagree", "a whole zip file", entry.name);
    }
    const std::string_view packed = bytes.substr(begin, entry.packed);
    ZipMember member{entry.name, {}};
    if (entry.method == 0) {
      if (entry.packed != entry.unpacked) return broken("a stored member has two sizes", "a whole zip file", entry.name);
      member.bytes = packed;
    } else {
      member.bytes.resize(entry.unpacked);
      if (!inflate_all(packed, member.bytes)) return broken("a member cannot be unpacked", "a whole zip file", entry.name);
    }
    if (crc32_z(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(member.bytes.data()), member.bytes.size()) != entry.crc) {
      return broken("the checksum of a member is wrong", "an undamaged file", entry.name);
    }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace kizzasi::io
