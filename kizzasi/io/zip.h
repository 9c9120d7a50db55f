// The members of a zip archive, as .npz files are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi::io {

struct ZipMember {
  std::string name;
  std::string bytes;
};

// Stored and deflated members, by the central directory (APPNOTE 6.3, sections 4.3 and 4.5.3 for large files). Refused: names that occur
// twice, that are absolute or hold ".." or a backslash; a wrong CRC-32; sizes that do not fit the file; encryption; several disks; more
// than 4 GiB unpacked, or a member above 16 MiB that is more than 200 times its packed size.
Result<std::vector<ZipMember>> unpack_zip(std::string_view bytes, std::string_view where);

}  // namespace kizzasi::io
