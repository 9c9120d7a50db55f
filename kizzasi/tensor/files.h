// Whole files: read at once, and replaced at once or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/base/error.h"

namespace kizzasi {

// The whole content. A file that is missing, locked away or no plain file is an error that says which.
Result<std::string> read_file(const std::string& path);

// Written to `path`.part, flushed to the disk, then moved over `path`: a reader sees the old file or the new one, never a part, whatever
// stops the program. On an error nothing is left behind and the old file stands as it was; a .part that a killed program left is
// overwritten by the next write. A second writer of the same path at the same time gets an error. A symbolic link is followed; a
// device or pipe is written to as it stands.
Result<void> replace_file(const std::string& path, std::span<const std::byte> bytes);
Result<void> replace_file(const std::string& path, std::string_view text);

}  // namespace kizzasi
