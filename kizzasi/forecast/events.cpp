#include "kizzasi/forecast/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kizzasi/decode/conformal.h"

namespace kizzasi {
namespace {

constexpr std::size_t kFewest = 50;
constexpr double kTailShare = 0.1;  // of the scores, whose excesses tell how the tail falls off
constexpr double kHeaviest = 0.9;   // shape of a tail; the mean of one from 1 on is infinite

std::vector<std::pair<std::size_t, std::size_t>> runs_of(std::span<const std::uint8_t> flags) {
  std::vector<std::pair<std::size_t, std::size_t>> runs;  // first, one past the last
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] == 0) continue;
    if (!runs.empty() && runs.back().second == i) {
      ++runs.back().second;
    } else {
      runs.emplace_back(i, i + 1);
    }
  }
  return runs;
}

// How far a share `rate` / kTailShare of excesses reaches: a generalised Pareto law fitted by its probability-weighted moments (Hosking and
// Wallis 1987), never lighter than an exponential one. Few excesses know their mean badly: it is taken a standard error above.
double reach_of_tail(std::span<const double> rising_excesses, double rate) {
  const auto count = static_cast<double>(rising_excesses.size());
  double mean = 0, weighted = 0;
  for (std::size_t i = 0; i < rising_excesses.size(); ++i) {
    const double below = (static_cast<double>(i) + 1 - 0.35) / count;
    mean += rising_excesses[i] / count;
    weighted += rising_excesses[i] * (1 - below) / count;
  }
  if (!(mean > 0)) return 0;
  const double shape = std::clamp(2 - mean / (mean - 2 * weighted), 0.0, kHeaviest);
  const double scale = mean * (1 - shape) * (1 + 1 / std::sqrt(count));
  const double log_ratio = std::log(kTailShare / rate);
  return shape < 1e-6 ? scale * log_ratio : scale * std::expm1(shape * log_ratio) / shape;
}

double share(std::size_t part, std::size_t whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0; }
double harmonic(double a, double b) { return a + b > 0 ? 2 * a * b / (a + b) : 0; }

}  // namespace

Result<double> alarm_threshold(std::span<const double> normal_scores, double rate) {
  std::vector<double> sorted;
  std::copy_if(normal_scores.begin(), normal_scores.end(), std::back_inserter(sorted), [](double s) { return !std::isnan(s); });
  std::sort(sorted.begin(), sorted.end());
  if (!(rate > 0 && rate < 0.5)) {
    return fail(
        {Fault::kBadUse, fmt::format("{} is no false-alarm rate", rate), "threshold", "a share of frames above 0 and below 0.5", ""});
  }
  if (sorted.size() < kFewest) {
    return fail({Fault::kBadInput, fmt::format("{} scores of normal frames are too few", sorted.size()), "threshold",
                 fmt::format("at least {}", kFewest), "Calibrate on more rows."});
  }
  const double by_rank = conformal_radius(sorted, rate);
  if (std::isfinite(by_rank) && static_cast<double>(sorted.size()) * rate >= 5) return by_rank;
  const auto from = static_cast<std::size_t>(static_cast<double>(sorted.size()) * (1 - kTailShare));
  const double base = sorted[from];
  for (std::size_t i = from; i < sorted.size(); ++i) sorted[i] -= base;
  return base + reach_of_tail(std::span(sorted).subspan(from), rate);
}

EventTracker::EventTracker(const EventOptions& options, std::size_t channels) : options_(options) {
  current_.channel_scores.resize(channels);
  closed_.channel_scores.resize(channels);
}

const Event* EventTracker::push(double score, std::span<const double> channel_scores) noexcept {
  const std::uint64_t frame = frames_++;
  if (!active_ && score >= options_.on) {
    active_ = true;
    current_.first = current_.peak = frame;
    current_.peak_score = score;
    std::fill(current_.channel_scores.begin(), current_.channel_scores.end(), 0.0);
  }
  if (!active_) return nullptr;
  if (!(score >= options_.off)) return frame - current_.last > options_.merge_gap ? close() : nullptr;
  current_.last = frame;
  if (score > current_.peak_score) {
    current_.peak_score = score;
    current_.peak = frame;
  }
  for (std::size_t c = 0; c < current_.channel_scores.size(); ++c) {
    if (channel_scores[c] > current_.channel_scores[c]) current_.channel_scores[c] = channel_scores[c];
  }
  return nullptr;
}

const Event* EventTracker::finish() noexcept { return active_ ? close() : nullptr; }

const Event* EventTracker::close() noexcept {
  active_ = false;
  if (current_.last - current_.first + 1 < options_.least_frames) return nullptr;
  std::swap(current_, closed_);
  return &closed_;
}

EventScores score_events(std::span<const std::uint8_t> labels, std::span<const std::uint8_t> flags) {
  EventScores scores;
  std::size_t hits = 0, labelled = 0, flagged = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    hits += labels[i] != 0 && flags[i] != 0 ? 1 : 0;
    labelled += labels[i] != 0 ? 1 : 0;
    flagged += flags[i] != 0 ? 1 : 0;
  }
  scores.precision = share(hits, flagged);
  scores.recall = share(hits, labelled);
  scores.f1 = harmonic(scores.precision, scores.recall);
  scores.false_alarm_rate = share(flagged - hits, labels.size() - labelled);
  scores.missed_rate = share(labelled - hits, labelled);
  for (const auto& [begin, end] : runs_of(labels)) {
    ++scores.events;
    const auto found = std::find_if(flags.begin() + static_cast<std::ptrdiff_t>(begin), flags.begin() + static_cast<std::ptrdiff_t>(end),
                                    [](std::uint8_t f) { return f != 0; });
    const auto at = static_cast<std::size_t>(found - flags.begin());
    if (at == end) continue;
    ++scores.events_found;
    scores.delays.push_back(at - begin);
  }
  for (const auto& [begin, end] : runs_of(flags)) {
    ++scores.flagged_events;
    const auto touched = std::any_of(labels.begin() + static_cast<std::ptrdiff_t>(begin), labels.begin() + static_cast<std::ptrdiff_t>(end),
                                     [](std::uint8_t l) { return l != 0; });
    scores.false_events += touched ? 0 : 1;
  }
  scores.event_f1 = harmonic(share(scores.events_found, scores.events), scores.precision);
  return scores;
}

}  // namespace kizzasi
