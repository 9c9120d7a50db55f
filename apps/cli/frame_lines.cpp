#include "apps/cli/frame_lines.h"

#include <cerrno>
#include <cstring>

namespace kizzasi::cli {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 24;

}  // namespace

Result<FrameLines> FrameLines::open(const std::string& path) {
  if (path == "-") return FrameLines(stdin);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr)
    return fail({Fault::kUnavailable, std::strerror(errno), path, "a file that can be read, or - for standard input", ""});
  return FrameLines(file);
}

FrameLines::FrameLines(FrameLines&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }

FrameLines::~FrameLines() {
  if (file_ != nullptr && file_ != stdin) std::fclose(file_);
}

bool FrameLines::next(std::string& line, bool& too_long) {
  line.clear();
  too_long = false;
  bool any = false;
  for (int c = 0; (c = std::getc(file_)) != EOF;) {
    any = true;
    if (c == '\n') break;
    if (line.size() < kLongestLine) {
      line += static_cast<char>(c);
    } else {
      too_long = true;
    }
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return any;
}

}  // namespace kizzasi::cli
