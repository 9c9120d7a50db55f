#include "kizzasi/forecast/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kizzasi/forecast/anomaly_score.h"

namespace kizzasi {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeastShare = 1e-3;  // of a channel's normal scale: narrower distributions are taken as this wide

}  // namespace

Detector::Detector(std::shared_ptr<const Predictor> predictor, const DetectOptions& options)
    : predictor_(std::move(predictor)), options_(options), session_(Session::prepare(predictor_)), tracker_({}, 0) {
  const std::size_t targets = predictor_->targets();
  for (std::size_t t = 0; t < targets; ++t) {
    targets_.push_back(predictor_->order()[t]);
    least_scale_.push_back(kLeastShare * predictor_->file().normalizer.scale(targets_[t]));
  }
  tails_.resize(targets);
  channel_scores_.resize(targets);
  shown_.resize(predictor_->channels());
  quantiles_.resize(predictor_->levels().size());
}

Result<Detector> Detector::make(std::shared_ptr<const Predictor> predictor, const Series& normal, const DetectOptions& options) {
  if (predictor->levels().size() < 2) {
    return fail({Fault::kBadInput, "the model predicts no spread", "detect", "a model with quantiles",
                 "Train one with a distribution head, or with calibrated intervals."});
  }
  Detector detector(std::move(predictor), options);
  detector.on_ = std::numeric_limits<double>::infinity();  // nothing is kept out while it calibrates
  detector.off_ = detector.on_;
  detector.tracker_ = EventTracker({detector.on_, detector.off_, 0, 1}, detector.targets_.size());
  std::vector<double> scores;
  const std::size_t warm_up = std::min(detector.predictor_->lookback(), normal.rows() / 2);
  for (std::size_t r = 0; r < normal.rows(); ++r) {
    const double score = detector.step(normal.frame(r)).score;
    if (r >= warm_up && !std::isnan(score)) scores.push_back(score);
  }
  const auto on = alarm_threshold(scores, options.rate);
  if (!on) return fail(on.error());
  const auto off = alarm_threshold(scores, std::max(options.off_rate, options.rate));
  if (!off) return fail(off.error());
  detector.on_ = *on;
  detector.off_ = std::min(*on, *off);
  detector.normal_frames_ = scores.size();
  detector.reset();
  return detector;
}

void Detector::reset() noexcept {
  session_.reset();
  expected_ = nullptr;
  kept_in_row_ = 0;
  kept_out_ = 0;
  tracker_ = EventTracker({on_, off_, options_.merge_gap, options_.least_frames}, targets_.size());
}

void Detector::judge(const Frame& frame) noexcept {
  std::fill(tails_.begin(), tails_.end(), kUnknown);
  // After a gap in time the prediction at hand is for another moment.
  const std::int64_t step = predictor_->schema().step_ns;
  const bool on_time = expected_ != nullptr && (step == 0 || std::abs(frame.time_ns - expected_->time_ns) <= step / 2);
  for (std::size_t t = 0; t < targets_.size() && on_time; ++t) {
    for (std::size_t level = 0; level < quantiles_.size(); ++level) {
      quantiles_[level] = expected_->quantiles[level * targets_.size() + t];
    }
    tails_[t] = tail_probability(frame.values[targets_[t]], expected_->levels, quantiles_, least_scale_[t]);
  }
  for (std::size_t t = 0; t < targets_.size(); ++t) channel_scores_[t] = -std::log10(tails_[t]);
  verdict_.score = combined_surprise(tails_);
}

const FrameVerdict& Detector::step(const Frame& frame, std::span<const double> known_next) noexcept {
  judge(frame);
  verdict_.channel_scores = channel_scores_;
  verdict_.alarm = verdict_.score >= on_;
  verdict_.ended = tracker_.push(verdict_.score, channel_scores_);
  verdict_.in_event = tracker_.active();
  verdict_.kept_out = verdict_.alarm && kept_in_row_ < options_.most_missing;
  kept_in_row_ = verdict_.alarm ? kept_in_row_ + 1 : 0;
  std::copy(frame.values.begin(), frame.values.end(), shown_.begin());
  if (verdict_.kept_out) {
    ++kept_out_;
    double worst = 0;
    for (const double score : channel_scores_) worst = score > worst ? score : worst;
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      if (channel_scores_[t] >= std::min(on_, worst)) shown_[targets_[t]] = kUnknown;
    }
  }
  expected_ = &session_.step({frame.time_ns, shown_}, known_next);
  if (expected_->quantiles.empty() || expected_->status == StepStatus::kNotFinite) expected_ = nullptr;
  return verdict_;
}

}  // namespace kizzasi
