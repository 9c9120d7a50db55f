#include "kizzasi/data/windows.h"

#include <fmt/format.h>

#include <cmath>

namespace kizzasi::data {
namespace {

// Share of missing target cells in rows [begin, end).
double missing_share(const Series& series, std::span<const std::size_t> targets, std::size_t begin, std::size_t end) {
  std::size_t missing = 0;
  for (std::size_t row = begin; row < end; ++row) {
    for (const std::size_t channel : targets) missing += std::isnan(series.at(row, channel)) ? 1 : 0;
  }
  const std::size_t cells = (end - begin) * targets.size();
  return cells == 0 ? 0.0 : static_cast<double>(missing) / static_cast<double>(cells);
}

}  // namespace

Result<Split> split_rows(std::size_t rows, double train_share, double validation_share) {
  if (!(train_share > 0) || !(validation_share >= 0) || !(train_share + validation_share <= 1 + 1e-12)) {
    return fail({Fault::kBadUse, fmt::format("shares of {} and {} cannot be", train_share, validation_share), "split",
                 "a training share above 0 and a validation share of at least 0, together at most 1", "For example 0.7 and 0.1."});
  }
  // A share that is a whole number of rows must not lose one to rounding: 0.7 x 10 is 7.
  const auto part = [&](double share) { return static_cast<std::size_t>(std::floor(share * static_cast<double>(rows) + 1e-9)); };
  Split split{part(train_share), part(train_share + validation_share), rows};
  const bool test_wanted = train_share + validation_share < 1 - 1e-12;
  const bool short_part = split.train_end == 0 || (validation_share > 0 && split.validation_end == split.train_end) ||
                          (test_wanted && split.rows == split.validation_end);
  if (short_part) {
    return fail({Fault::kBadInput, fmt::format("{} rows are too few to split", rows), "split",
                 "at least one row for training, validation and test each", "Record more, or use other shares."});
  }
  return split;
}

std::vector<Window> windows(const Series& series, std::size_t first, std::size_t last, const WindowOptions& options,
                            std::size_t series_index) {
  std::vector<Window> found;
  if (options.lookback == 0 || options.horizon == 0 || options.stride == 0 || last > series.rows()) return found;
  const std::vector<std::size_t> targets = series.schema.with_role(Role::kTarget);
  std::size_t origin = options.inputs_before ? std::max(first, options.lookback) : first + options.lookback;
  for (; origin + options.horizon <= last; origin += options.stride) {
    if (options.most_missing < 1.0 && missing_share(series, targets, origin, origin + options.horizon) > options.most_missing) continue;
    found.push_back({series_index, origin - options.lookback, origin});
  }
  return found;
}

}  // namespace kizzasi::data
