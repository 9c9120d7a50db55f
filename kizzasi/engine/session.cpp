#include "kizzasi/engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "kizzasi/base/float_env.h"
#include "kizzasi/decode/correction.h"

namespace kizzasi {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kRowsAtOnce = 64;  // of a prefill
constexpr double kFarthest = 1e6;        // scales from the centre beyond which a value is no measurement

std::int64_t later(std::int64_t time_ns, std::int64_t by) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) + static_cast<std::uint64_t>(by));
}

}  // namespace

Json SessionReport::to_json() const {
  return Json::Object{{"frames", frames},
                      {"gap_frames", gap_frames},
                      {"missing_values", missing_values},
                      {"unusable_values", unusable_values},
                      {"late_frames", late_frames},
                      {"restarts", restarts},
                      {"not_finite", not_finite},
                      {"moved_frames", moved_frames},
                      {"moved_values", moved_values},
                      {"distance", distance},
                      {"warned", warned},
                      {"held", held},
                      {"infeasible", infeasible},
                      {"rejected", rejected}};
}

// Setting up, copying, saving.

Session Session::prepare(std::shared_ptr<const Predictor> predictor) { return Session(std::move(predictor)); }

Session::Session(std::shared_ptr<const Predictor> predictor) : predictor_(std::move(predictor)) {
  const Predictor& p = *predictor_;
  const std::size_t targets = p.targets(), levels = p.levels().size();
  state_.resize(p.layout().fields.bytes());
  if (p.can_reject()) before_.resize(state_.size());
  value_.assign(targets, kNan);
  raw_.assign(targets, kNan);
  quantiles_.assign(levels * targets, kNan);
  measured_.resize(p.channels());
  emitted_.resize(p.channels());
  member_.resize(p.family().parameters());
  guard_scratch_.resize(p.guard().scratch_doubles());
  rows_.resize(kRowsAtOnce * p.channels());
  known_.resize(p.horizon() * p.counts().known);
  params_.resize(targets * p.family().parameters());
  anchor_.resize(targets);
  spread_.resize(targets);
  scratch_.resize(p.model().scratch_floats());
  p.guard().prepare(guard_report_);
  if (p.monitor() != nullptr) {
    monitor_scratch_.resize(p.monitor()->scratch_doubles());
    verdicts_.resize(p.monitor()->formulas());
    verdicts_before_ = verdicts_;
  }
  show_buffers();
  reset();
}

Session::Session(const Session& other) : Session(other.predictor_) {
  state_ = other.state_;
  value_ = other.value_;
  raw_ = other.raw_;
  quantiles_ = other.quantiles_;
  verdicts_ = other.verdicts_;
  prediction_ = other.prediction_;
  show_buffers();
}

Session& Session::operator=(const Session& other) {
  Session copy(other);
  *this = std::move(copy);
  return *this;
}

void Session::show_buffers() noexcept {
  prediction_.value = value_;
  prediction_.raw = raw_;
  prediction_.levels = predictor_->levels();
  prediction_.quantiles = quantiles_;
}

void Session::reset() noexcept {
  const Predictor& p = *predictor_;
  std::fill(state_.begin(), state_.end(), std::byte{0});
  p.model().reset(model_state());
  p.guard().reset(guard_state());
  if (p.monitor() != nullptr) p.monitor()->reset(monitor_state());
  std::ranges::fill(verdicts_, MonitorVerdict{});
  state_field<std::uint64_t>(std::span(state_), p.layout().identity_at, 1)[0] = p.identity();
  std::ranges::fill(numbers(p.layout().measured_at, p.channels()), kNan);
  std::ranges::fill(numbers(p.layout().emitted_at, p.targets()), kNan);
  std::ranges::fill(numbers(p.layout().expected_at, p.targets() * p.levels().size()), kNan);
  waiting_ = 0;
}

Result<void> Session::restore(std::span<const std::byte> state) {
  const SessionLayout& layout = predictor_->layout();
  if (state.size() != state_.size()) {
    return fail({Fault::kBadInput, fmt::format("the snapshot has {} bytes", state.size()), "session",
                 fmt::format("{} bytes", state_.size()), "It belongs to another model or to other constraints."});
  }
  std::uint64_t identity = 0;
  std::memcpy(&identity, state.data() + layout.identity_at, sizeof identity);
  if (identity != predictor_->identity()) {
    return fail({Fault::kBadInput, "the snapshot was written by another predictor", "session",
                 "one with the same model, constraints and levels", ""});
  }
  std::copy(state.begin(), state.end(), state_.begin());
  std::ranges::fill(verdicts_, MonitorVerdict{});
  return {};
}

std::span<std::byte> Session::model_state() noexcept { return std::span(state_).first(predictor_->layout().model_bytes); }
std::span<std::byte> Session::guard_state() noexcept {
  return std::span(state_).subspan(predictor_->layout().guard_at, predictor_->layout().guard_bytes);
}
std::span<std::byte> Session::monitor_state() noexcept {
  return std::span(state_).subspan(predictor_->layout().monitor_at, predictor_->layout().monitor_bytes);
}
std::span<std::uint64_t> Session::counts() noexcept {
  return state_field<std::uint64_t>(std::span(state_), predictor_->layout().counts_at, kSessionCounts);
}
std::span<double> Session::numbers(std::size_t offset, std::size_t count) noexcept {
  return state_field<double>(std::span(state_), offset, count);
}

SessionReport Session::report() const noexcept {
  const auto n = state_field<std::uint64_t>(std::span<const std::byte>(state_), predictor_->layout().counts_at, kSessionCounts);
  return {n[kCountFrames],        n[kCountGapFrames],
          n[kCountMissingValues], n[kCountUnusableValues],
          n[kCountLateFrames],    n[kCountRestarts],
          n[kCountNotFinite],     n[kCountMovedFrames],
          n[kCountMovedValues],   n[kCountWarned],
          n[kCountHeld],          n[kCountInfeasible],
          n[kCountRejected],      state_field<double>(std::span<const std::byte>(state_), predictor_->layout().distance_at, 1)[0]};
}

std::uint64_t Session::frames() const noexcept {
  return state_field<std::uint64_t>(std::span<const std::byte>(state_), predictor_->layout().counts_at, kSessionCounts)[kCountFrames];
}

std::int64_t Session::last_time_ns() const noexcept {
  return static_cast<std::int64_t>(state_field<std::uint64_t>(std::span<const std::byte>(state_), predictor_->layout().clock_at, 3)[1]);
}

// Time.

std::int64_t Session::grid_ns() const noexcept {
  return static_cast<std::int64_t>(state_field<std::uint64_t>(std::span<const std::byte>(state_), predictor_->layout().clock_at, 3)[2]);
}

// How many steps the frame lies after the last one; 0: it is not newer.
std::int64_t Session::frames_since_last(std::int64_t time_ns) const noexcept {
  const auto clock = state_field<std::uint64_t>(std::span<const std::byte>(state_), predictor_->layout().clock_at, 3);
  const auto step = static_cast<std::uint64_t>(predictor_->frame_ns());
  if (step == 0 || clock[0] == 0) return 1;
  if (time_ns <= static_cast<std::int64_t>(clock[1])) return 0;
  if (time_ns <= static_cast<std::int64_t>(clock[2])) return 1;
  const std::uint64_t since = static_cast<std::uint64_t>(time_ns) - clock[2];
  const std::uint64_t steps = since / step + (since % step >= (step + 1) / 2 ? 1 : 0);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min<std::uint64_t>(steps, std::uint64_t{1} << 62)));
}

// Makes ready for a frame of that time: steps what is missing before it, or begins anew. False: the frame is late.
// A stream without time gets that of its row.
bool Session::arrive(std::int64_t& time_ns) noexcept {
  const Predictor& p = *predictor_;
  const auto clock = state_field<std::uint64_t>(std::span(state_), p.layout().clock_at, 3);
  const std::int64_t step = p.frame_ns();
  if (step == 0) time_ns = static_cast<std::int64_t>(counts()[kCountFrames]) * kRowOfNoTime;
  const std::int64_t steps = frames_since_last(time_ns);
  if (steps == 0) {
    ++counts()[kCountLateFrames];
    return false;
  }
  if (p.can_reject()) {
    std::copy(state_.begin(), state_.end(), before_.begin());
    std::ranges::copy(verdicts_, verdicts_before_.begin());
  }
  const auto grid = static_cast<std::int64_t>(clock[2]);
  if (steps - 1 > p.options().max_gap) {
    std::array<std::uint64_t, kSessionCounts> kept{};
    std::ranges::copy(counts(), kept.begin());
    const double distance = numbers(p.layout().distance_at, 1)[0];
    reset();
    std::ranges::copy(kept, counts().begin());
    numbers(p.layout().distance_at, 1)[0] = distance;
    ++counts()[kCountRestarts];
  } else {
    for (std::int64_t i = 1; i < steps; ++i) enter_missing(later(grid, i * step));
  }
  // The grid follows a clock that drifts, not its jitter; a gap moves it.
  const bool follows = clock[0] == 1 && steps == 1;
  clock[0] = 1;
  clock[1] = static_cast<std::uint64_t>(time_ns);
  clock[2] = static_cast<std::uint64_t>(follows ? later(later(grid, step), (time_ns - later(grid, step)) / 8) : time_ns);
  return true;
}

// Frames in.

// Puts one frame into the waiting rows, the constraints' state and the counts.
void Session::enter(std::int64_t time_ns, std::span<const double> values) noexcept {
  const Predictor& p = *predictor_;
  const auto order = p.order();
  const auto row = std::span(rows_).subspan(waiting_ * order.size(), order.size());
  const auto last = numbers(p.layout().measured_at, p.channels());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t channel = order[i];
    double value = values[channel];
    row[i] = p.file().normalizer.normalise(value, channel);
    if (std::isnan(value)) {
      ++counts()[kCountMissingValues];
    } else if (!(std::abs(row[i]) <= kFarthest)) {
      ++counts()[kCountUnusableValues];
      value = kNan;
      row[i] = std::numeric_limits<float>::quiet_NaN();
    } else {
      last[channel] = value;
    }
    measured_[channel] = value;
  }
  learn();
  const auto emitted = numbers(p.layout().emitted_at, p.targets());
  std::ranges::fill(emitted_, kNan);
  for (std::size_t t = 0; t < p.targets(); ++t) emitted_[order[t]] = emitted[t];
  {
    const FloatEnv exact(Denormals::kKeep);
    p.guard().accept(guard_state(), time_ns, measured_, emitted_);
  }
  std::ranges::fill(emitted, kNan);
  ++counts()[kCountFrames];
  if (++waiting_ == kRowsAtOnce) push();
}

// Shows the monitors what was measured. The time is that of the grid, so that a frame is one sample whatever the clock's jitter.
void Session::watch(std::int64_t time_ns) noexcept {
  if (predictor_->monitor() == nullptr) return;
  const FloatEnv exact(Denormals::kKeep);
  predictor_->monitor()->step(monitor_state(), time_ns, measured_, verdicts_, monitor_scratch_);
}

void Session::enter_missing(std::int64_t time_ns) noexcept {
  std::ranges::fill(measured_, kNan);
  const std::uint64_t missing = counts()[kCountMissingValues];
  enter(time_ns, measured_);
  watch(time_ns);
  counts()[kCountMissingValues] = missing;  // counted as a frame of a gap, not as values
  ++counts()[kCountGapFrames];
}

// Each quantile's level moves towards where the truth says it should be.
void Session::learn() noexcept {
  const Predictor& p = *predictor_;
  const std::size_t levels = p.levels().size();
  const double rate = p.options().adapt ? p.calibration().rate : 0;
  const auto expected = numbers(p.layout().expected_at, p.targets() * levels),
             added = numbers(p.layout().adaptation_at, p.targets() * levels);
  for (std::size_t t = 0; t < p.targets() && rate > 0; ++t) {
    const double truth = measured_[p.order()[t]];
    for (std::size_t l = 0; l < levels; ++l) {
      const double quantile = expected[t * levels + l];
      if (std::isnan(truth) || std::isnan(quantile)) continue;
      double& kept = added[t * levels + l];
      kept = adapted(kept, rate, p.levels()[l], truth <= quantile);
    }
  }
  std::ranges::fill(expected, kNan);
}

void Session::push() noexcept {
  if (waiting_ == 0) return;
  predictor_->model().push_rows(model_state(), {rows_.data(), waiting_, predictor_->channels()}, predictor_->options().sampling.period(),
                                scratch_);
  waiting_ = 0;
}

const Prediction& Session::step(const Frame& frame, std::span<const double> known_next) noexcept {
  const FloatEnv env;
  std::int64_t time_ns = frame.time_ns;
  if (!arrive(time_ns)) {
    prediction_.status = StepStatus::kLate;
    return prediction_;
  }
  enter(time_ns, frame.values);
  watch(grid_ns());
  push();
  const std::int64_t step = predictor_->schema().step_ns;
  predict(later(time_ns, step == 0 ? kRowOfNoTime : step), known_next);
  return prediction_;
}

void Session::prefill(const Series& series, std::size_t begin, std::size_t end) noexcept {
  const FloatEnv env;
  for (std::size_t r = begin; r < end; ++r) {
    std::int64_t time_ns = series.time_ns(r);
    if (!arrive(time_ns)) continue;
    enter(time_ns, series.row(r));
    watch(grid_ns());
  }
  push();
}

void Session::run(const Series& series, std::size_t begin, std::size_t end, PredictionBlock& out) {
  const Predictor& p = *predictor_;
  const std::size_t rows = end - begin, targets = p.targets(), levels = p.levels().size(), known = p.counts().known;
  out.rows = rows;
  out.targets = targets;
  out.levels.assign(p.levels().begin(), p.levels().end());
  out.time_ns.resize(rows);
  out.status.resize(rows);
  out.value.resize(rows * targets);
  out.raw.resize(rows * targets);
  out.quantiles.resize(rows * levels * targets);
  out.distance.resize(rows);
  out.moved.resize(rows);
  std::vector<double> known_next(known);
  for (std::size_t r = 0; r < rows; ++r) {
    const bool ahead = begin + r + 1 < series.rows();
    for (std::size_t k = 0; k < known; ++k) known_next[k] = ahead ? series.at(begin + r + 1, p.order()[p.channels() - known + k]) : kNan;
    const Prediction& one = step(series.frame(begin + r), known_next);
    out.time_ns[r] = one.time_ns;
    out.status[r] = one.status;
    std::ranges::copy(one.value, out.value.begin() + static_cast<std::ptrdiff_t>(r * targets));
    std::ranges::copy(one.raw, out.raw.begin() + static_cast<std::ptrdiff_t>(r * targets));
    std::ranges::copy(one.quantiles, out.quantiles.begin() + static_cast<std::ptrdiff_t>(r * levels * targets));
    out.distance[r] = one.distance;
    out.moved[r] = one.moved;
  }
}

// Predictions out.

// Distribution and calibrated quantiles of the next frame, before the constraints. False: the model's numbers are not finite.
bool Session::decode(std::span<const double> known_next) noexcept {
  const Predictor& p = *predictor_;
  const std::size_t known = p.counts().known, parameters = p.family().parameters(), levels = p.levels().size();
  std::ranges::fill(known_, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t k = 0; k < std::min(known, known_next.size()); ++k) {
    const float value = p.file().normalizer.normalise(known_next[k], p.order()[p.channels() - known + k]);
    if (std::abs(value) <= kFarthest) known_[k] = value;
  }
  p.model().predict(model_state(), known_, 0, 1, params_, anchor_, spread_, scratch_);

  const auto expected = numbers(p.layout().expected_at, p.targets() * levels),
             added = numbers(p.layout().adaptation_at, p.targets() * levels);
  bool finite = true;
  for (std::size_t t = 0; t < p.targets(); ++t) {
    const std::size_t channel = p.order()[t];
    const double scale = p.file().normalizer.scale(channel), offset = p.file().normalizer.offset(channel);
    p.family().decode(std::span(params_).subspan(t * parameters, parameters), spread_[t] * scale, anchor_[t] * scale + offset, member_);
    raw_[t] = p.family().median(member_);
    finite = finite && DistributionFamily::finite(member_) && std::isfinite(raw_[t]);
    double last = -std::numeric_limits<double>::infinity();
    for (std::size_t l = 0; l < levels; ++l) {
      const double level = adapted_level(p.levels()[l], added[t * levels + l]);
      const double quantile = corrected_quantile(p.calibration(), 0, t, level, raw_[t], p.family().quantile(member_, level));
      finite = finite && std::isfinite(quantile);
      last = std::max(last, quantile);
      expected[t * levels + l] = quantiles_[l * p.targets() + t] = last;
    }
  }
  return finite;
}

void Session::predict(std::int64_t time_ns, std::span<const double> known_next) noexcept {
  const Predictor& p = *predictor_;
  const std::size_t levels = p.levels().size();
  prediction_.time_ns = time_ns;
  prediction_.step = counts()[kCountFrames];
  prediction_.status = StepStatus::kOk;
  const bool finite = decode(known_next);
  if (!finite) {
    // The model's memory may be spoiled for good: it begins anew, and the last good value stands in.
    ++counts()[kCountNotFinite];
    ++counts()[kCountRestarts];
    prediction_.status = StepStatus::kNotFinite;
    p.model().reset(model_state());
    const auto last = numbers(p.layout().measured_at, p.channels());
    for (std::size_t t = 0; t < p.targets(); ++t) {
      const std::size_t channel = p.order()[t];
      if (!std::isfinite(raw_[t])) raw_[t] = std::isnan(last[channel]) ? p.file().normalizer.offset(channel) : last[channel];
      for (std::size_t l = 0; l < levels; ++l) quantiles_[l * p.targets() + t] = raw_[t];
    }
    std::ranges::fill(numbers(p.layout().expected_at, p.targets() * levels), kNan);
  }
  const FloatEnv exact(Denormals::kKeep);
  constrain(time_ns, known_next, finite);
}

// The last stage: value and quantiles into their limits.
void Session::constrain(std::int64_t time_ns, std::span<const double> known_next, bool finite) noexcept {
  const Predictor& p = *predictor_;
  const std::size_t targets = p.targets(), levels = p.levels().size();
  std::ranges::fill(emitted_, kNan);
  for (std::size_t t = 0; t < targets; ++t) emitted_[p.order()[t]] = raw_[t];
  const std::size_t known = std::min(p.counts().known, known_next.size());
  for (std::size_t k = 0; k < known; ++k) emitted_[p.order()[p.channels() - p.counts().known + k]] = known_next[k];
  const GuardStatus status = p.guard().propose(guard_state(), time_ns, emitted_, guard_report_, guard_scratch_);
  if (status == GuardStatus::kRejected) {
    std::ranges::copy(before_, state_.begin());
    std::ranges::copy(verdicts_before_, verdicts_.begin());
    ++counts()[kCountRejected];
    prediction_.status = StepStatus::kRejected;
    prediction_.step = counts()[kCountFrames];
    prediction_.moved = 0;
    prediction_.distance = 0;
    std::ranges::fill(value_, kNan);
    std::ranges::fill(quantiles_, kNan);
    return;
  }
  prediction_.moved = guard_report_.moved;
  prediction_.distance = guard_report_.distance;
  if (guard_report_.moved > 0) {
    ++counts()[kCountMovedFrames];
    counts()[kCountMovedValues] += guard_report_.moved;
    numbers(p.layout().distance_at, 1)[0] += guard_report_.distance;
  }
  if (status == GuardStatus::kWarned) ++counts()[kCountWarned];
  if (status == GuardStatus::kHeld) ++counts()[kCountHeld];
  if (status == GuardStatus::kInfeasible) {
    ++counts()[kCountInfeasible];
    if (finite) prediction_.status = StepStatus::kInfeasible;
  }
  const auto emitted = numbers(p.layout().emitted_at, targets);
  for (std::size_t t = 0; t < targets; ++t) {
    const std::size_t channel = p.order()[t];
    emitted[t] = value_[t] = emitted_[channel];
    double low = 0, high = 0;
    p.guard().interval(guard_state(), time_ns, channel, low, high);
    for (std::size_t l = 0; l < levels; ++l) {
      double& quantile = quantiles_[l * targets + t];
      quantile = low <= high ? std::clamp(quantile, low, high) : value_[t];
    }
  }
}

}  // namespace kizzasi
