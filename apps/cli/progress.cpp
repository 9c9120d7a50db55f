#include "apps/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "kizzasi/base/clock.h"

namespace kizzasi::cli {
namespace {

constexpr int kCells = 24;

}  // namespace

Progress::Progress(const Context& context, std::string what)
    : quiet_(context.quiet), terminal_(isatty(STDERR_FILENO) == 1), what_(std::move(what)) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\n", stderr);
}

void Progress::show(double done, const std::string& text) {
  if (quiet_ || !terminal_) return;
  const double now = SteadyClock().seconds();
  if (last_drawn_ >= 0 && now - last_drawn_ < 0.1 && done < 1) return;
  last_drawn_ = now;
  const int full = static_cast<int>(std::clamp(done, 0.0, 1.0) * kCells);
  std::string bar;
  for (int i = 0; i < kCells; ++i) bar += i < full ? "█" : "░";
  const std::string line = fmt::format("\r\x1b[2K{} {} {:3.0f} %  {}", what_, bar, 100 * done, text);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  if (drawn_) std::fputs("\r\x1b[2K", stderr);
  drawn_ = false;
  std::fputs(fmt::format("{}\n", text).c_str(), stderr);
}

std::string seconds_text(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace kizzasi::cli
