// Recorded series as training batches: the very features that a session computes from its ring, for many moments at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/model/signal_features.h"
#include "kizzasi/model/signal_model.h"
#include "kizzasi/signal/normalizer.h"
#include "kizzasi/signal/series.h"

namespace kizzasi {

// A moment from which a lane forecasts: `row` is the newest row that is known.
struct Origin {
  std::uint32_t series = 0, lane = 0;
  std::size_t row = 0;
};

// Rows [first, last) of one series: those whose values may be asked for as answers.
struct RowRange {
  std::uint32_t series = 0;
  std::size_t first = 0, last = 0;
};

// In what an error counts. kWindow: in the window's own scale, as the model sees it. kSeasonal: in the mean absolute change over one
// season within the context, what MASE is measured in (Hyndman and Koehler 2006); so that series that repeat themselves well, whose errors
// are small beside their swing, are learned as well as those that do not.
enum class LossUnit { kWindow, kSeasonal };
Result<LossUnit> loss_unit(std::string_view name);  // "window", "seasonal"

// Answers beside a batch, in window units.
struct Answers {
  std::vector<float> values;          // (n, horizon, targets of a lane)
  std::vector<float> weight;          // window units that make one of the loss; 0 where the target is missing (its value is then 0)
  std::vector<float> anchor, spread;  // (n, targets): normalised = value * spread + anchor
};

// Thread: any (reading).
class Dataset {
 public:
  // `order`: the schema's channels in the model's order (targets, observed, known-future); the normaliser is that of the schema.
  // unit: kSeasonal needs a season shorter than the context.
  Dataset(const SignalModel& model, std::span<const Series> series, const Normalizer& normalizer, std::span<const std::size_t> order,
          LossUnit unit = LossUnit::kWindow);

  const SignalShape& shape() const noexcept { return shape_; }
  // Every origin whose answers all lie in the range, each `stride` rows, for every lane; only those with enough rows before them for the
  // whole look-back, or (where the range starts too early for any) those with as many as there are.
  std::vector<Origin> origins(const RowRange& range, std::size_t stride = 1) const;

  // One window for each origin, forecasting from its last row and from the given numbers of rows before it (streaming mode; {0} in windowed
  // mode): rows_back falling, such as {48, 32, 16, 0}. ranges: one for each window; answers outside it count as missing.
  void fill(std::span<const Origin> windows, std::span<const std::size_t> rows_back, std::span<const RowRange> ranges, SignalBatch& batch,
            Answers& answers) const;

 private:
  struct Rows {
    std::vector<float> values;  // (rows, inputs), normalised, NaN: missing
    std::vector<float> filled;  // the same with the stand-ins of missing values
    std::vector<std::uint8_t> absent;
    std::size_t rows = 0;
  };
  struct Past;
  float unit_weight(const Past& past, std::size_t channel, float spread) const;
  SignalShape shape_;
  WindowNorm norm_;
  LossUnit unit_;
  std::size_t inputs_, ring_;
  std::vector<Rows> series_;
};

}  // namespace kizzasi
