// How far a long job is: a bar on a terminal, plain lines otherwise, nothing with --quiet.
#pragma once

#include <string>

#include "apps/cli/verb.h"

namespace kizzasi::cli {

// Draws on standard error. Thread: one at a time.
class Progress {
 public:
  Progress(const Context& context, std::string what);
  ~Progress();  // ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // done in 0..1; text: what stands behind the bar. On a terminal redrawn at most ten times a second.
  void show(double done, const std::string& text);
  // A line that stays: on a terminal above the bar, otherwise as it is.
  void line(const std::string& text);

 private:
  bool quiet_, terminal_, drawn_ = false;
  std::string what_;
  double last_drawn_ = -1;
};

// "4 min 20 s", "12 s".
std::string seconds_text(double seconds);

}  // namespace kizzasi::cli
