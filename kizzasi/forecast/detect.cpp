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
constexpr std::size_t kFarthestAhead = 64;  // frames that are forecast when an event begins
constexpr double kLeastShare = 1e-3;        // of a channel's normal scale: narrower distributions are taken as this wide

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

Result<Detector> Detector::make(std::shared_ptr<const Predictor> predictor, const Series& normal, const DetectOptions& options,
                                std::size_t warm_up) {
  if (predictor->levels().size() < 2) {
    return fail({Fault::kBadInput, "the model predicts no spread", "detect", "a model with quantiles",
                 "Train one with a distribution head, or with calibrated intervals."});
  }
  if (predictor->options().adapt && predictor->calibration().rate > 0) {
    return fail({Fault::kBadUse, "the intervals of this predictor learn from the stream", "detect", "intervals that stay as calibrated",
                 "Load the model with PredictorOptions::adapt = false."});
  }
  Detector detector(std::move(predictor), options);
  detector.on_ = std::numeric_limits<double>::infinity();  // nothing is kept out while it calibrates
  detector.off_ = detector.on_;
  detector.tracker_ = EventTracker({detector.on_, detector.off_, 0, 1}, detector.targets_.size());
  const std::vector<double> scores = detector.scores_of(normal, warm_up);
  const auto on = alarm_threshold(scores, options.rate);
  if (!on) return fail(on.error());
  const auto off = alarm_threshold(scores, std::max(options.off_rate, options.rate));
  if (!off) return fail(off.error());
  detector.on_ = *on;
  detector.off_ = std::min(*on, *off);
  detector.normal_frames_ = scores.size();
  if (options.most_missing > 0) detector.allow_for_what_is_kept_out(normal, warm_up);
  detector.reset();
  return detector;
}

std::vector<double> Detector::scores_of(const Series& normal, std::size_t warm_up) {
  reset();
  std::vector<double> scores;
  for (std::size_t r = 0; r < normal.rows(); ++r) {
    const double score = step(normal.frame(r)).score;
    if (r >= warm_up && !std::isnan(score)) scores.push_back(score);
  }
  return scores;
}

// A false alarm keeps its frame from the model, which then predicts worse and may raise the next: the thresholds are lifted until, with all
// that, the normal rows have as few alarms as wanted.
void Detector::allow_for_what_is_kept_out(const Series& normal, std::size_t warm_up) {
  constexpr int kHalvings = 4;
  const double first = on_, ratio = on_ > 0 ? off_ / on_ : 1;
  const auto keeps_rate = [&](double threshold, double& highest) {
    on_ = threshold;
    const std::vector<double> scores = scores_of(normal, warm_up);
    std::size_t alarms = 0;
    for (const double score : scores) {
      alarms += score >= threshold ? 1 : 0;
      highest = std::max(highest, score);
    }
    return static_cast<double>(alarms) <= std::max(1.0, options_.rate * static_cast<double>(scores.size()));
  };
  double low = first, highest = first;
  if (keeps_rate(first, highest)) return;
  double high = std::nextafter(highest, std::numeric_limits<double>::infinity());  // above every score: nothing is kept out
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (keeps_rate(middle, highest) ? high : low) = middle;
  }
  on_ = high;
  off_ = ratio * high;
}

void Detector::reset() noexcept {
  session_.reset();
  expected_ = nullptr;
  kept_in_row_ = 0;
  seen_ = 0;
  kept_out_ = 0;
  tracker_ = EventTracker({on_, off_, options_.merge_gap, options_.least_frames}, targets_.size());
}

void Detector::judge(const Frame& frame) noexcept {
  std::fill(tails_.begin(), tails_.end(), kUnknown);
  // A model that has not seen its look-back guesses at what it lacks; after a gap in time the prediction at hand is for another moment.
  const std::int64_t step = predictor_->schema().step_ns;
  const bool on_time =
      expected_ != nullptr && seen_ == predictor_->lookback() && (step == 0 || std::abs(frame.time_ns - expected_->time_ns) <= step / 2);
  // While frames are kept out, the next ones are judged by what was forecast for them before the first of those: each is further ahead, and
  // its distribution wider.
  const bool ahead = kept_in_row_ > 0 && kept_in_row_ < ahead_.block.horizon;
  for (std::size_t t = 0; t < targets_.size() && on_time; ++t) {
    for (std::size_t level = 0; level < quantiles_.size(); ++level) {
      quantiles_[level] = ahead ? ahead_.block.quantile(level, kept_in_row_, t) : expected_->quantiles[level * targets_.size() + t];
    }
    tails_[t] = tail_probability(frame.values[targets_[t]], expected_->levels, quantiles_, least_scale_[t]);
  }
  for (std::size_t t = 0; t < targets_.size(); ++t) channel_scores_[t] = -std::log10(tails_[t]);
  verdict_.score = combined_surprise(tails_);
}

// What the session, which has seen only what was let in, expects of the frames to come.
void Detector::look_ahead() noexcept {
  ForecastRequest request;
  request.horizon = std::min(options_.most_missing + 1, kFarthestAhead);
  request.observed_plan = ObservedPlan::kHold;
  if (!session_.forecast(request, ahead_)) ahead_.block.horizon = 0;  // nothing to go by: values are unknown, the next frame judges as ever
}

const FrameVerdict& Detector::step(const Frame& frame, std::span<const double> known_next) noexcept {
  judge(frame);
  verdict_.channel_scores = channel_scores_;
  verdict_.alarm = verdict_.score >= on_;
  verdict_.ended = tracker_.push(verdict_.score, channel_scores_);
  verdict_.in_event = tracker_.active();
  verdict_.kept_out = verdict_.alarm && kept_in_row_ < options_.most_missing;
  std::copy(frame.values.begin(), frame.values.end(), shown_.begin());
  if (verdict_.kept_out) {
    ++kept_out_;
    if (kept_in_row_ == 0) look_ahead();
    double worst = 0;
    for (const double score : channel_scores_) worst = score > worst ? score : worst;
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      if (channel_scores_[t] < std::min(on_, worst)) continue;
      shown_[targets_[t]] = kept_in_row_ < ahead_.block.horizon ? ahead_.block.point(kept_in_row_, t) : kUnknown;
    }
  }
  kept_in_row_ = verdict_.alarm ? kept_in_row_ + 1 : 0;
  expected_ = &session_.step({frame.time_ns, shown_}, known_next);
  seen_ = std::min(seen_ + 1, predictor_->lookback());
  if (expected_->quantiles.empty() || expected_->status == StepStatus::kNotFinite) expected_ = nullptr;
  return verdict_;
}

}  // namespace kizzasi
