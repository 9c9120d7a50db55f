// Which rows train, which judge, and the windows inside them: no row of a later part is seen by an earlier one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::data {

// By time: rows [0, train_end) train, [train_end, validation_end) validate, [validation_end, rows) test.
struct Split {
  std::size_t train_end = 0, validation_end = 0, rows = 0;
};

// Shares of the rows, rounded down; what is left is the test part. train_share > 0, validation_share >= 0, their sum at most 1.
// An error where the rows do not give at least one to each part with a share.
Result<Split> split_rows(std::size_t rows, double train_share, double validation_share);

// One window: inputs are rows [begin, origin), answers rows [origin, origin + horizon).
struct Window {
  std::size_t series = 0;  // which of several series
  std::size_t begin = 0, origin = 0;
};

struct WindowOptions {
  std::size_t lookback = 1;    // input rows; at least 1
  std::size_t horizon = 1;     // answer rows; at least 1
  std::size_t stride = 1;      // rows between origins; at least 1
  bool inputs_before = false;  // inputs may reach back before `first` (validation and test may see earlier rows as input, never as answer)
  double most_missing = 1.0;   // windows with a larger share of missing target cells in their answers are left out
};

// Every window whose answers lie in rows [first, last) of the series, in order of origin. A window of the training part has its inputs and
// answers in that part, so no answer of validation or test is ever trained on.
std::vector<Window> windows(const Series& series, std::size_t first, std::size_t last, const WindowOptions& options,
                            std::size_t series_index = 0);

}  // namespace kizzasi::data
