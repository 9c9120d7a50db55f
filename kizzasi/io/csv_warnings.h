// What a CSV file must be told about aloud.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kizzasi/io/csv.h"

namespace kizzasi::io {

// What the numbers of one column have in common, gathered value by value in fixed memory.
class ColumnFacts {
 public:
  void add(double value, bool loses_precision);
  bool constant() const { return count_ > 1 && !varies_; }
  std::size_t present() const { return count_; }
  bool loses_precision() const { return loses_precision_; }
  // Values such as -999 or 9999 that stand far outside all the others, and how often.
  std::vector<std::pair<double, std::size_t>> suspected_sentinels() const;

 private:
  std::size_t count_ = 0;
  double first_ = 0, low_ = 0, high_ = 0;  // low and high without the numbers that are candidates
  bool varies_ = false, any_plain_ = false, loses_precision_ = false;
  std::map<double, std::size_t> candidates_;
};

struct AxisFindings {
  bool timed = false, clocks = false, clock_change = false;
  std::size_t nonexistent = 0, remarks = 0, set_aside = 0;
};

// True where a wall clock jumps or repeats an hour on one of the Sundays on which clocks are changed.
bool clocks_change(std::span<const std::int64_t> times, const TimeAxis& axis);

void add_warnings(CsvReport& report, const std::vector<const ColumnFacts*>& facts, const AxisFindings& findings);

}  // namespace kizzasi::io
