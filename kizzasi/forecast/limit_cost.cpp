#include "kizzasi/forecast/limit_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/model/model_file.h"
#include "kizzasi/penalty/multipliers.h"

namespace kizzasi {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kSamples = 64;  // blocks on which units are measured

std::vector<double> scales_of(const Normalizer& normalizer) {
  std::vector<double> scale(normalizer.channels());
  for (std::size_t c = 0; c < scale.size(); ++c) scale[c] = normalizer.scale(c);
  return scale;
}

}  // namespace

struct LimitCost::Block {
  std::vector<double> frames;
  std::vector<std::int64_t> times;
  std::size_t past = 0;
  PricedBlock view() const { return {frames, times, past}; }
};

ConditionSum Breaches::all() const {
  ConditionSum total;
  for (const ConditionSum& one : conditions) {
    total.violation += one.violation;
    total.checks += one.checks;
    total.broken += one.broken;
  }
  return total;
}

double share(const ConditionSum& sum) { return sum.checks == 0 ? 0 : static_cast<double>(sum.broken) / static_cast<double>(sum.checks); }
double mean_size(const ConditionSum& sum) { return sum.checks == 0 ? 0 : sum.violation / static_cast<double>(sum.checks); }

LimitCost::LimitCost(const PenaltyConfig& config, ConstraintPrice price, const std::vector<Series>& series, const Normalizer& normalizer,
                     const SignalShape& shape)
    : config_(config),
      price_(std::move(price)),
      series_(&series),
      normalizer_(normalizer),
      shape_(shape),
      order_(channel_order(series[0].schema)) {}

Result<std::unique_ptr<LimitCost>> LimitCost::make(const PenaltyConfig& config, std::span<const ConstraintText> limits,
                                                   const std::vector<Series>& series, const Normalizer& normalizer,
                                                   const SignalShape& shape, const std::vector<RowRange>& train) {
  auto price = ConstraintPrice::compile(series[0].schema, limits, scales_of(normalizer), shape.lookback(), config.penalty_sharpness);
  if (!price) return fail(price.error());
  if (config.kind() != PenaltyKind::kNone && price->conditions() == 0) {
    return fail({Fault::kBadUse, "there is no limit to pay for", "field 'penalty'",
                 "constraints on predicted channels, not all of them 'warn'",
                 "Give --limits FILE or --limit TEXT, or leave --penalty out."});
  }
  std::unique_ptr<LimitCost> cost(new LimitCost(config, std::move(*price), series, normalizer, shape));
  std::vector<Block> blocks;
  for (const RowRange& range : train) {
    const std::size_t rows = range.last - range.first, each = std::max<std::size_t>(1, kSamples / train.size());
    if (rows <= shape.horizon) continue;
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t origin = range.first + 1 + (rows - shape.horizon - 1) * i / each;
      Block block = cost->block(range.series, origin);
      const Series& one = series[range.series];
      for (std::size_t h = 0; h < shape.horizon; ++h) {
        const auto row = one.row(origin + h);
        std::copy(row.begin(), row.end(), block.frames.begin() + static_cast<std::ptrdiff_t>((block.past + h) * row.size()));
      }
      blocks.push_back(std::move(block));
    }
  }
  std::vector<PricedBlock> samples;
  for (const Block& block : blocks) samples.push_back(block.view());
  cost->price_.measure(samples);
  return cost;
}

// The rows before `origin` as recorded, then the horizon with what can be known of it beside the predictions.
LimitCost::Block LimitCost::block(std::size_t series, std::size_t origin) const {
  const Series& one = (*series_)[series];
  const std::size_t channels = one.channels();
  Block block;
  block.past = std::min(price_.past(), origin);
  const std::size_t rows = block.past + shape_.horizon, first = origin - block.past;
  block.frames.assign(rows * channels, kMissing);
  for (std::size_t r = 0; r < rows; ++r) {
    block.times.push_back(one.time_ns(first + r));
    if (first + r >= one.rows()) continue;
    for (std::size_t c = 0; c < channels; ++c) {
      if (r < block.past || one.schema.channels[c].role == Role::kKnownFuture) block.frames[r * channels + c] = one.at(first + r, c);
    }
  }
  return block;
}

std::vector<double> LimitCost::start() const {
  const Multipliers first(config_, price_.conditions());
  return {first.numbers().begin(), first.numbers().end()};
}

double LimitCost::cost(const PredictedWindow& window, std::span<const double> state, std::span<double> gradient,
                       std::span<double> sums) const {
  const Series& one = (*series_)[window.series];
  const std::size_t channels = one.channels(), targets = shape_.targets, origin = window.row + 1, n = price_.conditions();
  Block block = this->block(window.series, origin);
  std::vector<std::uint8_t> about(channels, 0);
  for (std::size_t lane = 0; lane < shape_.lanes; ++lane) {
    for (std::size_t o = 0; o < targets; ++o) {
      const std::size_t c = order_[shape_.channel(lane, o)];
      about[c] = lane == window.lane ? 1 : 0;
      for (std::size_t h = 0; h < shape_.horizon; ++h) {
        double& value = block.frames[(block.past + h) * channels + c];
        if (about[c] != 0) {
          value = normalizer_.physical(window.values[h * targets + o], c);
        } else if (origin + h < one.rows()) {
          value = one.at(origin + h, c);
        }
      }
    }
  }
  std::vector<double> slopes(block.frames.size(), 0.0);
  std::vector<ConditionSum> seen(n);
  const double price = price_.price(config_, block.view(), state.first(n), state.subspan(n, n), about, slopes, seen);
  const double mean = 1 / static_cast<double>(shape_.horizon * targets);
  for (std::size_t h = 0; h < shape_.horizon; ++h) {
    for (std::size_t o = 0; o < targets; ++o) {
      const std::size_t c = order_[shape_.channel(window.lane, o)];
      gradient[h * targets + o] = mean * slopes[(block.past + h) * channels + c] * normalizer_.scale(c);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    sums[3 * i] += seen[i].violation;
    sums[3 * i + 1] += static_cast<double>(seen[i].checks);
    sums[3 * i + 2] += static_cast<double>(seen[i].broken);
  }
  return mean * price;
}

void LimitCost::step(std::int64_t step, std::span<double> state, std::span<const double> sums) const {
  if (!moves()) return;
  Multipliers multipliers(config_, price_.conditions());
  multipliers.restore(state);
  std::vector<ConditionSum> seen(price_.conditions());
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = {sums[3 * i], static_cast<std::uint64_t>(sums[3 * i + 1]), 0};
  multipliers.step(step, seen);
  std::copy(multipliers.numbers().begin(), multipliers.numbers().end(), state.begin());
}

Json LimitCost::note(std::span<const double> state, std::span<const double> sums) const {
  const std::size_t n = price_.conditions();
  Json list = Json::array();
  for (std::size_t i = 0; i < n; ++i) {
    Json one;
    one["condition"] = price_.label(i);
    const double checks = sums[3 * i + 1];
    one["broken"] = checks > 0 ? sums[3 * i + 2] / checks : 0;
    one["size"] = checks > 0 ? sums[3 * i] / checks : 0;
    if (moves()) {
      one["weight"] = state[i];
      one["multiplier"] = state[n + i];
    }
    list.push_back(std::move(one));
  }
  return list;
}

Breaches LimitCost::no_breaches() const {
  Breaches none;
  for (std::size_t i = 0; i < price_.conditions(); ++i) none.labels.push_back(price_.label(i));
  none.conditions.resize(price_.conditions());
  return none;
}

void LimitCost::judge(std::size_t series, std::size_t origin, const ForecastBlock& forecast, Breaches& breaches) const {
  Block block = this->block(series, origin);
  const Schema& schema = (*series_)[series].schema;
  const auto targets = schema.with_role(Role::kTarget);
  for (std::size_t h = 0; h < std::min(forecast.horizon, shape_.horizon); ++h) {
    for (std::size_t t = 0; t < targets.size(); ++t) block.frames[(block.past + h) * schema.size() + targets[t]] = forecast.point(h, t);
  }
  price_.judge(block.view(), breaches.conditions);
}

}  // namespace kizzasi
