#include "kizzasi/engine/rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kizzasi/base/float_env.h"
#include "kizzasi/decode/correction.h"
#include "kizzasi/decode/standard_laws.h"

namespace kizzasi {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kLongest = 1'000'000;
constexpr std::size_t kMostNumbers = std::size_t{1} << 28;  // 2 GiB of them
constexpr std::size_t kAttempts = 50;                       // at a sample path that a constraint rejects

}  // namespace

Rollout::Rollout(const Predictor& predictor, std::span<const std::byte> state, const ForecastRequest& request)
    : predictor_(predictor), state_(state), request_(request), levels_(request.levels) {
  const std::size_t block = predictor.horizon(), targets = predictor.targets(), parameters = predictor.family().parameters();
  if (levels_.empty()) levels_ = predictor.levels();
  members_.resize(block * targets * parameters);
  frame_.resize(predictor.channels());
  no_measurement_.assign(predictor.channels(), kNan);
  guard_scratch_.resize(predictor.guard().scratch_doubles());
  known_.resize(block * predictor.counts().known);
  params_.resize(block * targets * parameters);
  anchor_.resize(block * targets);
  spread_.resize(block * targets);
  row_.resize(predictor.channels());
  scratch_.resize(predictor.model().scratch_floats());
  predictor.guard().prepare(report_);
}

Result<void> Rollout::check() const {
  const auto bad = [](std::string what, std::string where, std::string expected, std::string hint = "") {
    return fail({Fault::kBadUse, std::move(what), std::move(where), std::move(expected), std::move(hint)});
  };
  const auto counts = state_field<std::uint64_t>(state_, predictor_.layout().counts_at, kSessionCounts);
  if (counts[kCountFrames] == 0)
    return bad("no frame was taken yet", "forecast", "at least one", "Give the session its recent past first.");
  if (request_.horizon == 0 || request_.horizon > kLongest) {
    return bad(fmt::format("the horizon is {}", request_.horizon), "forecast", fmt::format("1 to {} steps", kLongest));
  }
  const std::size_t a_path = request_.horizon * predictor_.targets();
  if (a_path > kMostNumbers || request_.samples > kMostNumbers / a_path) {
    return bad(fmt::format("{} sample paths of {} steps and {} targets do not fit in memory", request_.samples, request_.horizon,
                           predictor_.targets()),
               "forecast", fmt::format("at most {} numbers in all", kMostNumbers));
  }
  for (std::size_t i = 0; i < request_.levels.size(); ++i) {
    if (!(request_.levels[i] > 0 && request_.levels[i] < 1) || (i > 0 && !(request_.levels[i] > request_.levels[i - 1]))) {
      return bad(fmt::format("level {} is {}", i + 1, request_.levels[i]), "levels", "levels above 0 and below 1, rising",
                 "For example 0.1,0.5,0.9.");
    }
  }
  if ((!request_.levels.empty() || request_.samples > 0) && !predictor_.has_spread()) {
    return bad("the model gives points only and was not calibrated", "forecast", "a model with intervals",
               "Train with a distribution as its head, or ask for points alone.");
  }
  if (!(request_.temperature >= 0 && request_.temperature <= 1e3)) {
    return bad(fmt::format("the temperature is {}", request_.temperature), "forecast", "0 to 1000");
  }
  if (!(request_.path_correlation >= 0 && request_.path_correlation <= 1)) {
    return bad(fmt::format("the correlation along a path is {}", request_.path_correlation), "forecast", "0 to 1");
  }
  const std::size_t known = predictor_.counts().known, observed = predictor_.counts().observed;
  if (known == 0 ? !request_.known.empty() : request_.known.size() % known != 0) {
    return bad(fmt::format("{} known values are given", request_.known.size()), "forecast", fmt::format("rows of {} channels", known));
  }
  if (rolled() && predictor_.horizon() % predictor_.options().sampling.slower != 0) {
    return bad(fmt::format("the horizon of {} steps goes beyond the model's {}, which end between two frames of a stream {} times slower",
                           request_.horizon, predictor_.horizon(), predictor_.options().sampling.slower),
               "forecast", fmt::format("a horizon of at most {}", predictor_.horizon()));
  }
  if (!rolled() || observed == 0) return {};
  if (request_.observed_plan == ObservedPlan::kGiven && request_.observed.size() != observed * request_.horizon) {
    return bad(fmt::format("{} values of observed channels are given", request_.observed.size()), "forecast",
               fmt::format("{} steps of {} channels", request_.horizon, observed));
  }
  if (request_.observed_plan == ObservedPlan::kRefuse) {
    std::string names;
    for (const std::size_t channel : predictor_.schema().with_role(Role::kObserved)) {
      names += (names.empty() ? "" : ", ") + predictor_.schema().channels[channel].name;
    }
    return bad(fmt::format("beyond {} steps the model needs {}, which it does not predict", predictor_.horizon(), names), "forecast",
               fmt::format("a horizon of at most {}", predictor_.horizon()),
               "Give a plan for these channels, or let them hold their last value.");
  }
  return {};
}

Path Rollout::start() const {
  const SessionLayout& layout = predictor_.layout();
  Path path;
  path.model.assign(state_.begin(), state_.begin() + static_cast<std::ptrdiff_t>(layout.model_bytes));
  const auto guard = state_.subspan(layout.guard_at, layout.guard_bytes);
  path.guard.assign(guard.begin(), guard.end());
  if (predictor_.options().sampling.faster > 1) {
    const auto measured = state_field<double>(state_, layout.measured_at, predictor_.channels());
    for (std::size_t t = 0; t < predictor_.targets(); ++t) path.last.push_back(measured[predictor_.order()[t]]);
  }
  return path;
}

std::int64_t Rollout::time_of(std::size_t step) const noexcept {
  const SessionLayout& layout = predictor_.layout();
  const std::int64_t period = predictor_.schema().step_ns;
  const auto frames = state_field<std::uint64_t>(state_, layout.counts_at, kSessionCounts)[kCountFrames];
  const std::uint64_t last = period == 0 ? (frames - 1) * kRowOfNoTime : state_field<std::uint64_t>(state_, layout.clock_at, 3)[1];
  return static_cast<std::int64_t>(last + (step + 1) * static_cast<std::uint64_t>(period == 0 ? kRowOfNoTime : period));
}

std::span<const double> Rollout::member(std::size_t step_in_block, std::size_t target) const noexcept {
  const std::size_t parameters = predictor_.family().parameters();
  return std::span(members_).subspan((step_in_block * predictor_.targets() + target) * parameters, parameters);
}

void Rollout::predict_block(const Path& path, std::size_t first, std::size_t count) {
  const Predictor& p = predictor_;
  const std::size_t known = p.counts().known, targets = p.targets(), parameters = p.family().parameters();
  const std::size_t rows = known == 0 ? 0 : request_.known.size() / known;
  for (std::size_t h = 0; h < p.horizon(); ++h) {
    for (std::size_t k = 0; k < known; ++k) {
      const bool given = h < count && first + h < rows;
      known_[h * known + k] =
          given ? p.file().normalizer.normalise(request_.known[(first + h) * known + k], p.order()[p.channels() - known + k])
                : std::numeric_limits<float>::quiet_NaN();
      if (!std::isfinite(known_[h * known + k])) known_[h * known + k] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  p.model().predict(path.model, known_, 0, count, params_, anchor_, spread_, scratch_);
  for (std::size_t h = 0; h < count; ++h) {
    for (std::size_t t = 0; t < targets; ++t) {
      const std::size_t value = h * targets + t, at = value * parameters, channel = p.order()[t];
      const double scale = p.file().normalizer.scale(channel), offset = p.file().normalizer.offset(channel);
      p.family().decode(std::span(params_).subspan(at, parameters), spread_[value] * scale, anchor_[value] * scale + offset,
                        std::span(members_).subspan(at, parameters));
    }
  }
}

// What is known of a channel (by its place in the model's order) that is not predicted, at a step ahead; NaN: nothing.
double Rollout::given(std::size_t step, std::size_t place) const noexcept {
  const Predictor& p = predictor_;
  const ChannelCounts counts = p.counts();
  if (const std::size_t first = counts.targets + counts.observed; place >= first) {
    const std::size_t at = step * counts.known + place - first;
    return at < request_.known.size() ? request_.known[at] : kNan;
  }
  if (request_.observed_plan == ObservedPlan::kHold)
    return state_field<double>(state_, p.layout().measured_at, p.channels())[p.order()[place]];
  const std::size_t at = step * counts.observed + place - counts.targets;
  return request_.observed_plan == ObservedPlan::kGiven && at < request_.observed.size() ? request_.observed[at] : kNan;
}

// The emitted values of a step become the frame that the model sees next. A faster stream has frames on the line from the step before;
// a slower one has only every so-many-th step.
void Rollout::feed(Path& path, std::size_t step, std::span<const double> values) {
  const Sampling& sampling = predictor_.options().sampling;
  if ((step + 1) % sampling.slower != 0) return;
  std::vector<double> between(values.size());
  for (std::size_t k = 1; k < sampling.faster; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(sampling.faster);
    for (std::size_t t = 0; t < values.size(); ++t) between[t] = path.last[t] + share * (values[t] - path.last[t]);
    feed_frame(path, step, between);
  }
  if (!path.last.empty()) path.last.assign(values.begin(), values.end());
  feed_frame(path, step, values);
}

void Rollout::feed_frame(Path& path, std::size_t step, std::span<const double> values) {
  const Predictor& p = predictor_;
  for (std::size_t i = 0; i < p.channels(); ++i) {
    row_[i] = p.file().normalizer.normalise(i < values.size() ? values[i] : given(step, i), p.order()[i]);
    if (!std::isfinite(row_[i])) row_[i] = std::numeric_limits<float>::quiet_NaN();
  }
  p.model().push(path.model, row_, p.options().sampling.period(), scratch_);
}

// The points of a block := the nearest course from `before`, the values of the row before it. Where there is none they stay as predicted,
// and the guard does what it can step by step.
Result<void> Rollout::plan_block(const Trajectory& trajectory, const Path& path, std::size_t first, std::size_t count,
                                 std::span<const double> before, Forecast& out) {
  const FloatEnv exact(Denormals::kKeep);
  const std::size_t channels = predictor_.channels(), targets = predictor_.targets();
  std::vector<double> frames(before.begin(), before.end());
  std::vector<double> sent(channels);
  for (std::size_t c = 0; c < channels; ++c) sent[c] = predictor_.guard().emitted(path.guard, c);
  std::vector<std::int64_t> times{time_of(first) - (time_of(first + 1) - time_of(first))};
  for (std::size_t h = 0; h < count; ++h) {
    times.push_back(time_of(first + h));
    frames.resize((h + 2) * channels);
    for (std::size_t i = 0; i < channels; ++i) {
      frames[(h + 1) * channels + predictor_.order()[i]] = i < targets ? out.raw[(first + h) * targets + i] : given(first + h, i);
    }
  }
  if (const auto solved = trajectory.solve(frames, times, 1, sent); !solved) return fail(solved.error());
  for (std::size_t h = 0; h < count; ++h) {
    for (std::size_t t = 0; t < targets; ++t) out.block.point(first + h, t) = frames[(h + 1) * channels + predictor_.order()[t]];
  }
  return {};
}

GuardStatus Rollout::constrain(Path& path, std::size_t step, std::span<double> values) {
  const FloatEnv exact(Denormals::kKeep);
  for (std::size_t i = 0; i < frame_.size(); ++i) frame_[predictor_.order()[i]] = i < values.size() ? values[i] : given(step, i);
  const GuardStatus status = predictor_.guard().propose(path.guard, time_of(step), frame_, report_, guard_scratch_);
  if (status == GuardStatus::kRejected) return status;
  predictor_.guard().accept(path.guard, time_of(step), no_measurement_, frame_);
  for (std::size_t t = 0; t < values.size(); ++t) values[t] = frame_[predictor_.order()[t]];
  return status;
}

// A calibration of no more steps than a block belongs to each block; a longer one was fitted on whole forecasts and belongs to their steps.
bool Rollout::calibrated_by_block() const noexcept { return predictor_.calibration().horizon <= predictor_.horizon(); }

double Rollout::quantile(std::size_t step, std::size_t step_in_block, std::size_t target, double level, double median) const {
  const auto distribution = member(step_in_block, target);
  const double plain = predictor_.family().quantile(distribution, level);
  if (calibrated_by_block()) return corrected_quantile(predictor_.calibration(), step_in_block, target, level, median, plain);
  return rolled() ? plain : corrected_quantile(predictor_.calibration(), step, target, level, median, plain);
}

Error Rollout::rejection(std::size_t step) const {
  std::string broken;
  for (std::size_t i = 0; i < report_.broken.size(); ++i) {
    if (report_.broken[i] != 0) broken += fmt::format("{}'{}'", broken.empty() ? "" : ", ", predictor_.guard().name(i));
  }
  return {Fault::kBadInput, fmt::format("the forecast of step {} breaks {}, which says reject", step + 1, broken), "forecast",
          "values that obey it", "With else = \"project\" the nearest allowed value is taken instead."};
}

Result<void> Rollout::points(Forecast& out) {
  const FloatEnv env;
  const Predictor& p = predictor_;
  const std::size_t horizon = request_.horizon, targets = p.targets(), levels = levels_.size();
  out.block.resize(horizon, targets, levels_);
  out.time_ns.resize(horizon);
  out.raw.resize(horizon * targets);
  out.status.assign(horizon, StepStatus::kOk);
  out.samples.clear();
  out.moved_values = out.moved_quantiles = out.redrawn = 0;
  out.distance = 0;
  const auto added = state_field<double>(state_, p.layout().adaptation_at, targets * p.levels().size());
  const bool adapted = p.levels().size() == levels && std::ranges::equal(p.levels(), levels_);
  const auto measured = state_field<double>(state_, p.layout().measured_at, p.channels());
  Path path = start();
  std::vector<double> values(targets);
  for (std::size_t t = 0; t < targets; ++t) {
    const std::size_t channel = p.order()[t];
    values[t] = std::isnan(measured[channel]) ? p.file().normalizer.offset(channel) : measured[channel];
  }
  std::vector<double> last_row(measured.begin(), measured.end());
  std::optional<Trajectory> trajectory;
  if (request_.whole) {
    std::vector<double> scale;
    for (std::size_t c = 0; c < p.channels(); ++c) scale.push_back(p.file().normalizer.scale(c));
    auto made = Trajectory::compile(p.schema(), p.constraints(), p.options().grid, scale);
    if (!made) return fail(made.error());
    trajectory = std::move(*made);
  }
  for (std::size_t first = 0; first < horizon; first += p.horizon()) {
    const std::size_t count = std::min(p.horizon(), horizon - first);
    predict_block(path, first, count);
    for (std::size_t h = 0; h < count; ++h) {
      const std::size_t step = first + h;
      out.time_ns[step] = time_of(step);
      for (std::size_t t = 0; t < targets; ++t) {
        double median = p.family().median(member(h, t));
        double last = -std::numeric_limits<double>::infinity();
        bool finite = std::isfinite(median) && DistributionFamily::finite(member(h, t));
        for (std::size_t l = 0; l < levels && finite && first == 0; ++l) {
          const double level = step == 0 && adapted ? adapted_level(levels_[l], added[t * levels + l]) : levels_[l];
          last = std::max(last, quantile(step, h, t, level, median));
          finite = finite && std::isfinite(last);
          out.block.quantile(l, step, t) = last;
        }
        if (!finite) {
          // The last good value stands in, as in a session.
          out.status[step] = StepStatus::kNotFinite;
          median = values[t];
          for (std::size_t l = 0; l < levels; ++l) out.block.quantile(l, step, t) = median;
        }
        values[t] = out.raw[step * targets + t] = median;
      }
    }
    if (trajectory) {
      if (auto planned = plan_block(*trajectory, path, first, count, last_row, out); !planned) return planned;
    }
    for (std::size_t h = 0; h < count; ++h) {
      const std::size_t step = first + h;
      const auto wanted = std::span(trajectory ? out.block.points : out.raw).subspan(step * targets, targets);
      std::copy(wanted.begin(), wanted.end(), values.begin());
      const GuardStatus status = constrain(path, step, values);
      if (status == GuardStatus::kRejected) return fail(rejection(step));
      if (status == GuardStatus::kInfeasible) out.status[step] = StepStatus::kInfeasible;
      double squared = 0;
      for (std::size_t t = 0; t < targets && trajectory; ++t) {
        const double by = values[t] - out.raw[step * targets + t];
        out.moved_values += by != 0 ? 1 : 0;
        squared += by * by;
      }
      if (!trajectory) out.moved_values += report_.moved;
      out.distance += trajectory ? std::sqrt(squared) : report_.distance;
      for (std::size_t t = 0; t < targets; ++t) out.block.point(step, t) = values[t];
      last_row = frame_;
    }
    for (std::size_t h = 0; h < count && first + count < horizon; ++h) {
      feed(path, first + h, std::span(out.block.points).subspan((first + h) * targets, targets));
    }
  }
  return {};
}

GuardStatus Rollout::draw_path(std::size_t index, std::size_t attempt, double temperature, std::span<double> values, Forecast& out,
                               bool counted) {
  const Predictor& p = predictor_;
  const std::size_t horizon = request_.horizon, targets = p.targets();
  Rng rng = Rng(request_.seed).named("forecast").numbered(index).numbered(attempt);
  const double tie = request_.path_correlation, fresh = std::sqrt(1 - tie * tie);
  Path path = start();
  std::vector<double> z(targets);
  for (std::size_t first = 0; first < horizon; first += p.horizon()) {
    const std::size_t count = std::min(p.horizon(), horizon - first);
    predict_block(path, first, count);
    for (std::size_t h = 0; h < count; ++h) {
      const std::size_t step = first + h;
      const auto row = values.subspan(step * targets, targets);
      for (std::size_t t = 0; t < targets; ++t) {
        z[t] = h == 0 ? rng.normal() : tie * z[t] + fresh * rng.normal();
        const double level = std::clamp(normal_cdf(z[t]), 1e-12, 1 - 1e-12), median = p.family().median(member(h, t));
        row[t] = median + temperature * (quantile(step, h, t, level, median) - median);
        if (!std::isfinite(row[t])) row[t] = out.block.point(step, t);
      }
      if (constrain(path, step, row) == GuardStatus::kRejected) return GuardStatus::kRejected;
      if (!counted) continue;
      out.moved_values += report_.moved;
      out.distance += report_.distance;
    }
    for (std::size_t h = 0; h < count && first + count < horizon; ++h)
      feed(path, first + h, values.subspan((first + h) * targets, targets));
  }
  return GuardStatus::kClean;
}

Result<void> Rollout::paths(std::size_t count, std::size_t counted, double temperature, Forecast& out, std::vector<double>& values) {
  const FloatEnv env;
  const std::size_t a_path = request_.horizon * predictor_.targets();
  values.resize(count * a_path);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t attempt = 0;
    while (draw_path(i, attempt, temperature, std::span(values).subspan(i * a_path, a_path), out, i < counted) == GuardStatus::kRejected) {
      ++out.redrawn;
      if (++attempt == kAttempts) return fail(rejection(0));
    }
  }
  return {};
}

void Rollout::quantiles_from_paths(std::span<const double> values, std::size_t count, Forecast& out) const {
  const std::size_t targets = predictor_.targets(), a_path = request_.horizon * targets;
  std::vector<double> sorted(count);
  for (std::size_t step = predictor_.horizon(); step < request_.horizon; ++step) {
    for (std::size_t t = 0; t < targets; ++t) {
      for (std::size_t i = 0; i < count; ++i) sorted[i] = values[i * a_path + step * targets + t];
      std::ranges::sort(sorted);
      double last = -std::numeric_limits<double>::infinity();
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        // Hyndman and Fan's type 7.
        const double place = levels_[l] * static_cast<double>(count - 1);
        const auto below = static_cast<std::size_t>(place);
        double value = std::lerp(sorted[below], sorted[std::min(below + 1, count - 1)], place - static_cast<double>(below));
        if (!calibrated_by_block()) {
          value = corrected_quantile(predictor_.calibration(), step, t, levels_[l], out.raw[step * targets + t], value);
        }
        out.block.quantile(l, step, t) = last = std::max(last, value);
      }
    }
  }
  if (calibrated_by_block()) return;
  for (std::size_t step = 0; step < predictor_.horizon(); ++step) {
    for (std::size_t t = 0; t < targets; ++t) {
      double last = -std::numeric_limits<double>::infinity();
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        double& value = out.block.quantile(l, step, t);
        value = last =
            std::max(last, corrected_quantile(predictor_.calibration(), step, t, levels_[l], out.raw[step * targets + t], value));
      }
    }
  }
}

// Two paths of the constraints' state bound what each channel can reach: one that always takes the lowest allowed value, one the highest.
void Rollout::reach(Forecast& out) {
  const FloatEnv exact(Denormals::kKeep);
  const Predictor& p = predictor_;
  const std::size_t targets = p.targets();
  Path lowest = start(), highest = start();
  std::vector<double> low(p.channels()), high(p.channels());
  for (std::size_t step = 0; step < request_.horizon; ++step) {
    std::ranges::fill(low, kNan);
    std::ranges::fill(high, kNan);
    for (std::size_t t = 0; t < targets; ++t) {
      const std::size_t channel = p.order()[t];
      double least = 0, most = 0, unused = 0;
      p.guard().interval(lowest.guard, time_of(step), channel, least, unused);
      p.guard().interval(highest.guard, time_of(step), channel, unused, most);
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        double& value = out.block.quantile(l, step, t);
        const double before = value;
        value = least <= most ? std::clamp(value, least, most) : out.block.point(step, t);
        out.moved_quantiles += value != before ? 1 : 0;
      }
      if (std::isfinite(least)) low[channel] = least;
      if (std::isfinite(most)) high[channel] = most;
    }
    p.guard().accept(lowest.guard, time_of(step), no_measurement_, low);
    p.guard().accept(highest.guard, time_of(step), no_measurement_, high);
  }
}

}  // namespace kizzasi
