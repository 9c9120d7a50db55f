// `kizzasi guard --whole`: all frames at once, the nearest course in place of the nearest frame each time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/cli/verbs.h"
#include "kizzasi/io/frame_reader.h"
#include "kizzasi/logic/trajectory.h"

namespace kizzasi::cli {

struct CourseAsk {
  // Where the frames came from, for errors.
  std::string frames;
  // So many frames at the start have happened and stay.
  std::size_t past = 0;
  bool strict = false;
};

class GuardLines;

// Prints each frame of the course. Errors: more past than frames; with `strict`, no course that obeys everything.
Result<int> guard_course(const CourseAsk& ask, const Context& context, const Trajectory& trajectory, const Schema& schema,
                         const GuardLines& lines, const std::vector<io::StreamFrame>& frames);

}  // namespace kizzasi::cli
