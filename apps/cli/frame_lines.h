// Lines of a pipe or a file, as they come.
#pragma once

#include <cstdio>
#include <string>

#include "kizzasi/base/error.h"

namespace kizzasi::cli {

// Thread: one. "-" is standard input.
class FrameLines {
 public:
  static Result<FrameLines> open(const std::string& path);
  FrameLines(FrameLines&& other) noexcept;
  FrameLines& operator=(FrameLines&&) = delete;
  ~FrameLines();

  // The next line without its end; false at the end. A line of more than 16 MiB is cut there, and said so.
  bool next(std::string& line, bool& too_long);

 private:
  explicit FrameLines(std::FILE* file) : file_(file) {}
  std::FILE* file_ = nullptr;
};

}  // namespace kizzasi::cli
