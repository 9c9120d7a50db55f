#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/base/suggest.h"
#include "kizzasi/forecast/baselines.h"
#include "kizzasi/forecast/past_values.h"
#include "kizzasi/kernels/ridge.h"
#include "kizzasi/signal/normalizer.h"

namespace kizzasi {
namespace {

constexpr std::size_t kBlock = 64;  // windows gathered before they enter the sums

// Rows of windows on their way into the sums.
struct Block {
  kernels::RidgeSums& sums;
  std::vector<double> x, y;
  void add(std::span<const double> inputs, std::span<const double> outputs) {
    x.insert(x.end(), inputs.begin(), inputs.end());
    y.insert(y.end(), outputs.begin(), outputs.end());
    if (x.size() >= kBlock * inputs.size()) flush();
  }
  void flush() {
    if (!y.empty()) sums.add(x, y);
    x.clear();
    y.clear();
  }
};

class Ridge final : public Forecaster {
 public:
  explicit Ridge(const RidgeOptions& options) : options_(options) {}

  std::string name() const override {
    const char* form = options_.channels == RidgeChannels::kEach     ? "ridge NLinear"
                       : options_.channels == RidgeChannels::kPooled ? "ridge NLinear pooled"
                                                                     : "ridge on all channels";
    return fmt::format("{} {}, lambda {}", form, options_.lookback, options_.lambda);
  }

  Result<void> fit(const Series& train) override {
    auto chosen = channels(train.schema);
    if (!chosen) return fail(chosen.error());
    auto scaling = Normalizer::fit(train, Scaling::kStandard);
    if (!scaling) return fail(scaling.error());
    inputs_ = std::move(*chosen);
    scaling_ = std::move(*scaling);
    if (train.rows() < options_.lookback + options_.horizon) {
      return fail({Fault::kBadInput, fmt::format("{} training rows are fewer than one window", train.rows()), name(),
                   fmt::format("at least {} rows", options_.lookback + options_.horizon), "Shorten the look-back or the horizon."});
    }
    return options_.channels == RidgeChannels::kJoint ? fit_joint(train) : fit_nlinear(train);
  }

  Result<void> forecast(const Series& series, std::size_t origin, std::size_t horizon, ForecastBlock& out) const override {
    const auto targets = series.schema.with_role(Role::kTarget);
    if (horizon > options_.horizon || origin < options_.lookback) {
      return fail({Fault::kBadUse, fmt::format("horizon {} at row {} is out of reach", horizon, origin), name(),
                   fmt::format("at most {} steps after at least {} rows", options_.horizon, options_.lookback), ""});
    }
    out.resize(horizon, targets.size(), {});
    std::vector<double> window, joint;
    if (options_.channels == RidgeChannels::kJoint) joint = joint_window(series, origin);
    for (std::size_t c = 0; c < targets.size(); ++c) {
      if (joint.empty()) window = scaled_past(series, targets[c], origin);
      const double last = joint.empty() ? window.back() : scaled_past(series, targets[c], origin).back();
      for (double& value : window) value -= last;
      const std::vector<double>& x = joint.empty() ? window : joint;
      const Fit& fit = fits_[fits_.size() == 1 ? 0 : c];
      const std::size_t outputs = fit.weights.size() / x.size(), first = outputs == options_.horizon ? 0 : c * options_.horizon;
      std::vector<double> steps(horizon, last);
      for (std::size_t h = 0; h < horizon && !fit.bias.empty(); ++h) steps[h] += fit.bias[first + h];
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double* weights = fit.weights.data() + i * outputs + first;
        for (std::size_t h = 0; h < horizon; ++h) steps[h] += x[i] * weights[h];
      }
      for (std::size_t h = 0; h < horizon; ++h) out.point(h, c) = scaling_.physical(steps[h], targets[c]);
    }
    return {};
  }

 private:
  struct Fit {
    std::vector<double> weights, bias;  // (inputs, outputs), (outputs) or empty
  };

  Result<std::vector<std::size_t>> channels(const Schema& schema) const {
    if (options_.inputs.empty() || options_.channels != RidgeChannels::kJoint) return schema.with_role(Role::kTarget);
    std::vector<std::size_t> found;
    for (const std::string& each : options_.inputs) {
      const auto index = schema.index_of(each);
      const auto names = schema.names();
      if (!index)
        return fail({Fault::kBadUse, fmt::format("there is no channel '{}'", each), name(), fmt::to_string(fmt::join(names, ", ")),
                     did_you_mean(each, names)});
      found.push_back(*index);
    }
    return found;
  }

  double scaled(double value, std::size_t channel) const { return (value - scaling_.offset(channel)) / scaling_.scale(channel); }

  std::vector<double> scaled_past(const Series& series, std::size_t channel, std::size_t origin) const {
    auto past = channel_rows(series, channel, origin - options_.lookback, origin);
    bridge_gaps(past);
    for (double& value : past) value = scaled(value, channel);
    return past;
  }

  // (inputs, lookback)
  std::vector<double> joint_window(const Series& series, std::size_t origin) const {
    std::vector<double> all;
    for (const std::size_t channel : inputs_) {
      const auto past = scaled_past(series, channel, origin);
      all.insert(all.end(), past.begin(), past.end());
    }
    return all;
  }

  // Calls see(origin) for the training windows, thinned evenly where there are too many.
  template <typename See>
  void each_origin(std::size_t rows, See see) const {
    const std::size_t all = rows - options_.lookback - options_.horizon + 1;
    const std::size_t stride = (all + options_.most_windows - 1) / options_.most_windows;
    for (std::size_t i = 0; i < all; i += stride) see(options_.lookback + i);
  }

  Result<void> solve(const kernels::RidgeSums& sums) {
    Fit fit{std::vector<double>(sums.inputs() * sums.outputs()), std::vector<double>(options_.intercept ? sums.outputs() : 0)};
    if (!sums.solve(options_.lambda, fit.weights, fit.bias)) {
      return fail({Fault::kBadInput,
                   sums.rows() == 0 ? "no training window is free of missing values" : "the windows determine no unique weights", name(),
                   "whole windows and lambda > 0", ""});
    }
    fits_.push_back(std::move(fit));
    return {};
  }

  Result<void> fit_nlinear(const Series& train) {
    fits_.clear();
    const std::size_t past = options_.lookback, ahead = options_.horizon;
    kernels::RidgeSums pooled(past, ahead);
    for (const std::size_t channel : inputs_) {
      auto values = channel_rows(train, channel, 0, train.rows());
      for (double& value : values) value = scaled(value, channel);
      kernels::RidgeSums own(options_.channels == RidgeChannels::kEach ? past : 0, options_.channels == RidgeChannels::kEach ? ahead : 0);
      Block block{options_.channels == RidgeChannels::kEach ? own : pooled, {}, {}};
      std::vector<double> window(past + ahead);
      std::size_t whole_from = 0, checked = 0;  // rows [whole_from, checked) have no missing value
      each_origin(values.size(), [&](std::size_t origin) {
        for (; checked < origin + ahead; ++checked) {
          if (std::isnan(values[checked])) whole_from = checked + 1;
        }
        if (whole_from > origin - past) return;
        const double last = values[origin - 1];
        for (std::size_t i = 0; i < window.size(); ++i) window[i] = values[origin - past + i] - last;
        block.add(std::span(window).first(past), std::span(window).subspan(past));
      });
      block.flush();
      if (options_.channels == RidgeChannels::kPooled) continue;
      if (auto done = solve(own); !done) return done;
    }
    return options_.channels == RidgeChannels::kPooled ? solve(pooled) : Result<void>{};
  }

  Result<void> fit_joint(const Series& train) {
    fits_.clear();
    const auto targets = train.schema.with_role(Role::kTarget);
    const std::size_t past = options_.lookback, ahead = options_.horizon;
    kernels::RidgeSums sums(inputs_.size() * past, targets.size() * ahead);
    Block block{sums, {}, {}};
    std::vector<double> x(sums.inputs()), y(sums.outputs());
    each_origin(train.rows(), [&](std::size_t origin) {
      double total = 0;  // NaN where any value is missing
      for (std::size_t c = 0; c < inputs_.size(); ++c) {
        for (std::size_t i = 0; i < past; ++i) total += x[c * past + i] = scaled(train.at(origin - past + i, inputs_[c]), inputs_[c]);
      }
      for (std::size_t c = 0; c < targets.size(); ++c) {
        const double last = train.at(origin - 1, targets[c]), scale = scaling_.scale(targets[c]);
        for (std::size_t h = 0; h < ahead; ++h) total += y[c * ahead + h] = (train.at(origin + h, targets[c]) - last) / scale;
      }
      if (!std::isnan(total)) block.add(x, y);
    });
    block.flush();
    return solve(sums);
  }

  RidgeOptions options_;
  std::vector<std::size_t> inputs_;  // channels that are read
  Normalizer scaling_;
  std::vector<Fit> fits_;  // one, or one a target
};

}  // namespace

std::unique_ptr<Forecaster> ridge_forecaster(const RidgeOptions& options) { return std::make_unique<Ridge>(options); }

}  // namespace kizzasi
