// From a table as it was recorded to series on a fixed step, by stated policy; everything that was changed is counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/fields.h"
#include "kizzasi/io/table.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::data {

// Every choice that is made between a file and a model. Nothing here guesses silently: the report says what was done how often.
struct PrepareOptions {
  std::string step = "auto";              // "auto": the most common step of each series; else a duration, "15min"
  std::string resample = "auto";          // auto, none, mean, last, linear (see prepare)
  std::string duplicates = "last";        // rows of one stamp: error, first, last, mean
  std::string missing = "keep";           // keep, interpolate, forward
  std::int64_t max_gap = 0;               // frames that `missing` bridges at most; longer gaps stay missing. 0: without limit
  std::vector<std::string> targets;       // channels to predict; empty: every number channel that is not named below
  std::vector<std::string> observed;      // read, not predicted
  std::vector<std::string> known_future;  // read, and known ahead
  std::vector<std::string> drop;          // not read at all

  void fields(FieldVisitor& visit);
};

// What was done to one series, in rows and cells.
struct SeriesReport {
  std::string id;
  std::size_t rows_read = 0, rows_out = 0;
  std::size_t duplicates = 0;    // rows merged or dropped because another one has their stamp
  std::size_t out_of_order = 0;  // rows whose stamp is before the stamp of the row above; they were sorted in
  std::size_t implausible = 0;   // rows set aside because their stamp is years off
  std::size_t resampled = 0;     // rows of the result that were computed from rows off their stamp
  std::size_t gaps = 0;          // runs of frames for which the file has no row
  std::size_t gap_frames = 0;    // and their frames, all missing at first
  std::size_t missing = 0;       // cells missing before they were filled, gap frames included
  std::size_t filled = 0;        // of these, filled by the `missing` policy
  std::int64_t step_ns = 0;      // 0: rows are counted, not timed
};

struct PrepareReport {
  std::vector<SeriesReport> series;
  std::vector<std::string> remarks;  // sentences for the user
  SeriesReport total() const;        // sums; step_ns is that of the first series
};

// One series for each id of the table (one in all for a wide one), each on its own fixed step, rows rising in time.
// resample: `none` accepts only stamps on the grid to within 1 % of a step (an error names the first that is not); `mean` averages the rows
// nearest to each grid point (half a step to either side); `last` takes the latest row at or before it, at most one step old; `linear`
// interpolates between the two rows around it where they are at most two steps apart. `auto` is `none` where the stamps fit, else `linear`,
// and says so. A table without time keeps its rows, step 0 (or its nominal step, as of WAV files).
// Errors: no rows, a channel that is not there (names the nearest), duplicates under `error`, no step, a result that would have more than
// 50 frames for each row and more than 10 million frames (wrong stamps), a target that has no value at all.
// Thread: any.
Result<std::vector<Series>> prepare(const Table& table, const PrepareOptions& options, PrepareReport& report);

// The moment some steps after (or before) a moment. Where the step is a number of months, as `prepare` makes it of calendar series, those
// are months of the calendar: on the same day, on the last one where the month is shorter or the moment stands on its month's last day.
std::int64_t later(std::int64_t time_ns, std::int64_t steps, std::int64_t step_ns);
// The moment of a row, also of one beyond the end. (Series::time_ns counts months as equally long.)
std::int64_t row_time(const Series& series, std::size_t row);

// Fills runs of missing cells of each channel: `interpolate` on the straight line between their neighbours, `forward` with the last value;
// runs longer than max_gap frames (0: without limit), and those without the neighbours that are needed, stay. Returns the cells filled.
std::size_t fill_missing(Series& series, std::string_view policy, std::size_t max_gap);

}  // namespace kizzasi::data
