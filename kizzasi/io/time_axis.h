// What the stamps of a recording say: the step, and every place where they depart from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kizzasi::io {

struct Gap {
  std::int64_t after_ns = 0;  // the stamp before the gap
  std::size_t missing_steps = 0;
};

enum class Regularity {
  kUnknown,    // fewer than two distinct stamps
  kRegular,    // nearly every step is the most common one, or a multiple of it
  kJitter,     // steps scatter around their median
  kCalendar,   // a fixed number of months
  kIrregular,  // neither
};

struct TimeAxis {
  Regularity regularity = Regularity::kUnknown;
  std::int64_t step_ns = 0;  // the most common step (under jitter: the median, rounded where a round number is within 0.5 %); 0: none
  int months = 0;            // of a calendar step
  std::int64_t first_ns = 0, last_ns = 0;  // earliest and latest plausible stamp
  std::size_t rows = 0;
  std::size_t duplicates = 0;            // rows beyond the first of the same stamp
  std::size_t first_duplicate = 0;       // its row; only where duplicates > 0
  std::size_t out_of_order = 0;          // rows whose stamp is before the stamp of the plausible row above
  std::size_t off_grid = 0;              // steps that are no multiple of the step to within 1 % of it (not counted under jitter)
  std::vector<Gap> gaps;                 // steps of more than one and a half; none are named where the steps are irregular
  std::vector<std::size_t> implausible;  // rows more than 20 years (or ten steps, whichever is more) off the median of their neighbours
};

// Stamps of one series in the order of the file.
TimeAxis examine_times(std::span<const std::int64_t> stamps);

// Whole months since January 1970 of a stamp, and what is left of it (day of month, time); how calendar steps are counted.
std::int64_t month_index(std::int64_t time_ns);

}  // namespace kizzasi::io
