// Limits as a cost of training, and as a judge of forecasts before anything moves them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/penalty/constraint_price.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/forecast_block.h"
#include "kizzasi/signal/normalizer.h"
#include "kizzasi/signal/series.h"
#include "kizzasi/train/dataset.h"
#include "kizzasi/train/prediction_cost.h"

namespace kizzasi {

// What forecasts break, condition by condition.
struct Breaches {
  std::vector<std::string> labels;
  std::vector<ConditionSum> conditions;
  ConditionSum all() const;
};
double share(const ConditionSum& sum);      // of the checks that are broken; 0 where there was none
double mean_size(const ConditionSum& sum);  // violation a check, in standard deviations

// ConstraintPrice over the predictions of a model. A block holds the recorded past, then the predicted targets with the known future beside
// them; observed channels are not known ahead. Where a lane predicts one channel of several (channel_mode "independent"), the others are
// what was recorded. The cost of a window is the price divided by its number of predicted values. Thread: any, but for `step`.
class LimitCost final : public PredictionCost {
 public:
  // The series must outlive it. train: where units are measured. Errors: as ConstraintPrice::compile; a penalty that has nothing to price.
  static Result<std::unique_ptr<LimitCost>> make(const PenaltyConfig& config, std::span<const ConstraintText> limits,
                                                 const std::vector<Series>& series, const Normalizer& normalizer, const SignalShape& shape,
                                                 const std::vector<RowRange>& train);

  std::vector<double> start() const override;
  std::size_t sums() const override { return 3 * price_.conditions(); }  // violation, checks, broken of each condition
  bool moves() const override { return config_.adapts(); }
  double cost(const PredictedWindow& window, std::span<const double> state, std::span<double> gradient,
              std::span<double> sums) const override;
  void step(std::int64_t step, std::span<double> state, std::span<const double> sums) const override;
  Json note(std::span<const double> state, std::span<const double> sums) const override;

  // Adds what a forecast of all targets, of which row `origin` is the first, breaks.
  void judge(std::size_t series, std::size_t origin, const ForecastBlock& forecast, Breaches& breaches) const;
  Breaches no_breaches() const;
  const ConstraintPrice& price() const { return price_; }

 private:
  struct Block;
  LimitCost(const PenaltyConfig& config, ConstraintPrice price, const std::vector<Series>& series, const Normalizer& normalizer,
            const SignalShape& shape);
  Block block(std::size_t series, std::size_t origin) const;

  PenaltyConfig config_;
  ConstraintPrice price_;
  const std::vector<Series>* series_;
  Normalizer normalizer_;
  SignalShape shape_;
  std::vector<std::size_t> order_;  // channels of the schema in the model's order
};

}  // namespace kizzasi
