// Where the bytes of a recording come from: a file, or memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/base/error.h"

namespace kizzasi::io {

// Bytes in order, and from the beginning again: readers look at a recording once to learn what it is, and a second time to read it.
// Thread: one at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills as much of `into` as there is; fewer bytes mean the end.
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  virtual Result<void> rewind() = 0;
  virtual const std::string& name() const = 0;
};

// A file on a disk, read in blocks; a pipe is first taken into memory, since it cannot be read twice.
Result<std::unique_ptr<ByteSource>> open_source(const std::string& path);

// Bytes that the caller keeps alive.
std::unique_ptr<ByteSource> memory_source(std::string_view bytes, std::string name);

}  // namespace kizzasi::io
