#include "kizzasi/train/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kizzasi {

// The rows up to `newest` as a session that saw them would hold them.
struct Dataset::Past {
  const Rows* rows;
  std::size_t inputs, ring, newest;
  bool seen(std::size_t back) const noexcept { return back <= newest && back < ring; }
  float value(std::size_t back, std::size_t channel) const noexcept { return rows->filled[(newest - back) * inputs + channel]; }
  bool missing(std::size_t back, std::size_t channel) const noexcept { return rows->absent[(newest - back) * inputs + channel] != 0; }
};

Dataset::Dataset(const SignalModel& model, std::span<const Series> series, const Normalizer& normalizer, std::span<const std::size_t> order,
                 LossUnit unit)
    : shape_(model.shape()), norm_(window_norm_of(model.config())), unit_(unit), inputs_(order.size()), ring_(model.shape().lookback()) {
  for (const Series& one : series) {
    Rows rows;
    rows.rows = one.rows();
    rows.values.resize(rows.rows * inputs_);
    rows.filled.resize(rows.rows * inputs_);
    rows.absent.resize(rows.rows * inputs_);
    for (std::size_t r = 0; r < rows.rows; ++r) {
      const std::size_t kept = std::min(r, ring_ - 1);
      for (std::size_t c = 0; c < inputs_; ++c) {
        const float value = normalizer.normalise(one.at(r, order[c]), order[c]);
        const bool missing = std::isnan(value);
        const auto before = [&](std::size_t back) { return rows.filled[(r - back) * inputs_ + c]; };
        rows.values[r * inputs_ + c] = value;
        rows.absent[r * inputs_ + c] = missing ? 1 : 0;
        rows.filled[r * inputs_ + c] = missing ? filled(shape_, kept, before) : value;
      }
    }
    series_.push_back(std::move(rows));
  }
}

std::vector<Origin> Dataset::origins(const RowRange& range, std::size_t stride) const {
  std::vector<Origin> list;
  if (range.last < range.first + shape_.horizon) return list;
  const std::size_t last =
      range.last - shape_.horizon - 1 + 1;  // the last row that may be the newest known one, plus one for its first answer
  std::size_t first = range.first == 0 ? 0 : range.first - 1;
  if (first + 1 < shape_.lookback()) first = std::min(shape_.lookback() - 1, last == 0 ? 0 : last - 1);
  for (std::size_t row = first; row < last; row += stride) {
    for (std::size_t lane = 0; lane < shape_.lanes; ++lane) list.push_back({range.series, static_cast<std::uint32_t>(lane), row});
  }
  return list;
}

// How many units of the loss one window unit is. Bounded, since a series that repeats itself to the digit has no seasonal change at all.
float Dataset::unit_weight(const Past& past, std::size_t channel, float spread) const {
  if (unit_ == LossUnit::kWindow) return 1.0f;
  constexpr double kMost = 50, kLeast = 0.02;
  double change = 0;
  std::size_t n = 0;
  for (std::size_t back = 0; back + shape_.season < shape_.context && back + shape_.season <= past.newest; ++back, ++n) {
    change += std::abs(static_cast<double>(past.value(back, channel)) - static_cast<double>(past.value(back + shape_.season, channel)));
  }
  const double size = static_cast<double>(spread);
  if (n == 0) return 1.0f;
  return static_cast<float>(change * kMost <= size * static_cast<double>(n) ? kMost
                                                                            : std::max(kLeast, size * static_cast<double>(n) / change));
}

Result<LossUnit> loss_unit(std::string_view name) {
  if (name == "window") return LossUnit::kWindow;
  if (name == "seasonal") return LossUnit::kSeasonal;
  return fail({Fault::kBadUse, fmt::format("unknown unit '{}'", name), "field 'loss_unit'", "one of window, seasonal", ""});
}

void Dataset::fill(std::span<const Origin> windows, std::span<const std::size_t> rows_back, std::span<const RowRange> ranges,
                   SignalBatch& batch, Answers& answers) const {
  const SignalShape& s = shape_;
  const std::size_t n = windows.size() * rows_back.size(), past_channels = s.past();
  batch.windows = windows.size();
  batch.origins = rows_back.size();
  batch.rows.clear();
  for (const std::size_t back : rows_back) batch.rows.push_back(s.rows() - 1 - back / s.patch);
  batch.inputs.assign(s.has_backbone ? windows.size() * s.rows() * s.vector() : 0, 0.0f);
  batch.recent.resize(n * s.recent * past_channels);
  const std::size_t features = s.slots() + s.known;
  batch.ahead.resize(n * s.horizon * features);
  answers.values.assign(n * s.horizon * s.targets, 0.0f);
  answers.weight.assign(answers.values.size(), 0.0f);
  answers.anchor.resize(n * s.targets);
  answers.spread.resize(n * s.targets);

  std::vector<float> anchor(s.inputs(), 0.0f), spread(s.inputs(), 1.0f), weight(s.targets, 1.0f);
  const std::vector<float> zeros(s.inputs(), 0.0f), ones(s.inputs(), 1.0f);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const Origin& window = windows[w];
    const Rows& rows = series_[window.series];
    const RowRange& range = ranges[w];
    for (std::size_t q = 0; q < rows_back.size(); ++q) {
      const std::size_t i = w * rows_back.size() + q, newest = window.row - std::min(rows_back[q], window.row);
      const Past past{&rows, inputs_, ring_, newest};
      for (std::size_t c = 0; c < past_channels; ++c) window_scale(s, norm_, past, s.channel(window.lane, c), anchor[c], spread[c]);
      for (std::size_t o = 0; o < s.targets; ++o) weight[o] = unit_weight(past, s.channel(window.lane, o), spread[o]);
      std::copy_n(anchor.begin(), s.targets, answers.anchor.begin() + static_cast<std::ptrdiff_t>(i * s.targets));
      std::copy_n(spread.begin(), s.targets, answers.spread.begin() + static_cast<std::ptrdiff_t>(i * s.targets));

      if (s.has_backbone && (s.windowed || q + 1 == rows_back.size())) {
        // Windowed: the window ends here and has its own scale. Streaming: one run of rows serves all origins; the last ends it.
        for (std::size_t r = 0; r < s.rows(); ++r) {
          const std::span<float> out(batch.inputs.data() + (w * s.rows() + r) * s.vector(), s.vector());
          embed_input(s, past, window.lane, (s.rows() - 1 - r) * s.patch, s.windowed ? anchor : zeros, s.windowed ? spread : ones, out);
        }
      }
      recent_input(s, past, window.lane, anchor, spread,
                   std::span(batch.recent).subspan(i * s.recent * past_channels, s.recent * past_channels));
      for (std::size_t h = 0; h < s.horizon; ++h) {
        const std::size_t step = i * s.horizon + h, answer = newest + 1 + h;
        const auto ahead = std::span(batch.ahead).subspan(step * features, features);
        slot_input(s, past, window.lane, h + 1, anchor, spread, ahead.first(s.slots()));
        const bool there = answer < rows.rows;
        for (std::size_t f = 0; f < s.known; ++f) {
          const float value = there ? rows.values[answer * inputs_ + s.channel(window.lane, past_channels + f)] : NAN;
          ahead[s.slots() + f] = std::isnan(value) ? 0.0f : value;
        }
        if (!there || answer < range.first || answer >= range.last) continue;
        for (std::size_t o = 0; o < s.targets; ++o) {
          const float value = rows.values[answer * inputs_ + s.channel(window.lane, o)];
          if (std::isnan(value)) continue;
          answers.values[step * s.targets + o] = (value - anchor[o]) / spread[o];
          answers.weight[step * s.targets + o] = weight[o];
        }
      }
    }
  }
}

}  // namespace kizzasi
