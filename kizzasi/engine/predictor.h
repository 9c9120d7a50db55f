// A trained model ready for use: weights, normaliser, constraints and calibration, shared by all its sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/decode/distribution.h"
#include "kizzasi/engine/session_layout.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/monitor/online.h"
#include "kizzasi/model/model_file.h"

namespace kizzasi {

struct PredictorOptions {
  std::vector<ConstraintText> constraints;  // beside those in the model file
  std::vector<ConstraintText> monitors;     // formulas that watch each stream and move nothing: Session::verdicts
  bool model_constraints = true;            // false: those in the model file do not apply
  EmittedGrid grid;                         // of the numbers that leave
  std::vector<double> levels;               // of the quantiles; empty: the calibration's, else the head's, else seven usual ones
  bool calibrate = true;                    // false: quantiles as the model gives them
  bool adapt = true;                        // false: a stream's quantiles do not learn from what is measured
  // Of the streams beside the training data (SignalModel::load). Predictions stay one period of the training data apart, the first of them
  // one after the newest frame; intervals do not learn from a stream at another rate.
  Sampling sampling;
  std::int64_t max_gap = 64;  // frames missing in time that are stepped as missing; after a longer gap a stream begins anew
};

// Immutable. Thread: any.
class Predictor {
 public:
  // Checks everything that a session relies on: weights against the configuration, constraints against the channels, levels. `where` names
  // the model in messages.
  static Result<std::shared_ptr<const Predictor>> make(ModelFile file, PredictorOptions options = {}, std::string_view where = "");
  static Result<std::shared_ptr<const Predictor>> load(const std::string& path, PredictorOptions options = {});

  // All but the weights, which stand in `model()`.
  const ModelFile& file() const noexcept { return file_; }
  const SignalModel& model() const noexcept { return model_; }
  const DistributionFamily& family() const noexcept { return family_; }
  const Guard& guard() const noexcept { return *guard_; }
  const Monitor* monitor() const noexcept { return monitor_.get(); }  // null where no formula watches
  const Schema& schema() const noexcept { return file_.schema; }
  const Calibration& calibration() const noexcept { return calibration_; }
  const PredictorOptions& options() const noexcept { return options_; }
  // Every constraint that applies, in the order of the guard.
  const std::vector<ConstraintText>& constraints() const noexcept { return constraints_; }

  std::size_t channels() const noexcept { return file_.schema.size(); }
  std::size_t targets() const noexcept { return counts_.targets; }
  std::size_t horizon() const noexcept { return static_cast<std::size_t>(file_.config.horizon); }  // of one evaluation of the model
  ChannelCounts counts() const noexcept { return counts_; }
  // Schema positions in the model's order: targets, then observed, then known-future channels.
  std::span<const std::size_t> order() const noexcept { return order_; }
  std::span<const double> levels() const noexcept { return options_.levels; }  // empty where the model has no spread
  bool has_spread() const noexcept { return family_.has_density() || !calibration_.empty(); }
  bool can_reject() const noexcept { return can_reject_; }
  // Frames after which a longer history changes a windowed forecast no more; a fair warm-up for any other model.
  std::size_t lookback() const noexcept { return options_.sampling.frames_back(model_.shape().lookback() - 1) + 1; }
  // Time from one frame of a stream to the next; 0: rows are counted, not timed.
  std::int64_t frame_ns() const noexcept { return frame_ns_; }

  // The state of one session, field by field; docs/session.md describes it.
  const SessionLayout& layout() const noexcept { return layout_; }
  // A number that two predictors share only when their states mean the same: model, constraints, monitors and levels.
  std::uint64_t identity() const noexcept { return identity_; }

 private:
  Predictor(ModelFile file, PredictorOptions options, SignalModel model, DistributionFamily family)
      : file_(std::move(file)), options_(std::move(options)), model_(std::move(model)), family_(std::move(family)) {}

  ModelFile file_;
  PredictorOptions options_;
  SignalModel model_;
  DistributionFamily family_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Monitor> monitor_;
  std::vector<ConstraintText> constraints_;
  Calibration calibration_;
  ChannelCounts counts_;
  std::vector<std::size_t> order_;
  SessionLayout layout_;
  std::uint64_t identity_ = 0;
  std::int64_t frame_ns_ = 0;
  bool can_reject_ = false;
};

}  // namespace kizzasi
