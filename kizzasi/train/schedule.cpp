#include "kizzasi/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace kizzasi {
namespace {

constexpr std::array<const char*, 13> kNames{"constant",     "linear",    "cosine",     "step",          "multistep",
                                             "exponential",  "one_cycle", "polynomial", "warm_restarts", "hard_restarts",
                                             "inverse_sqrt", "cyclic",    "plateau"};

// 1 at share 0, 0 at share 1, half a cosine between and on.
double half_cosine(double share) { return 0.5 * (1 + std::cos(std::numbers::pi * share)); }

}  // namespace

const char* to_string(ScheduleKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

void ScheduleConfig::fields(FieldVisitor& visit) {
  FieldInfo names{"schedule", "How the learning rate moves."};
  names.choices.assign(kNames.begin(), kNames.end());
  FieldInfo modes{"cyclic_mode", "Height of the cycles of cyclic: all equal, or each half of the one before."};
  modes.choices = {"triangular", "triangular2"};
  visit.field(names, schedule);
  visit.field({"warmup_steps", "Steps of linear rise at the start.", 0, 1e12}, warmup_steps);
  visit.field({"warmup_start", "Share of the learning rate with which the rise begins.", 0, 1}, warmup_start);
  visit.field({"min_learning_rate", "Learning rate at the end of falling schedules.", 0, 1e3}, min_learning_rate);
  visit.field({"period_steps", "Steps of one period; 0 means the whole training (exponential, step: 1).", 0, 1e12}, period_steps);
  visit.field({"period_growth", "Length of each period of warm_restarts over the one before.", 1, 1e3}, period_growth);
  visit.field({"cycles", "Periods of hard_restarts.", 1, 1e6}, cycles);
  visit.field({"decay_factor", "Factor of each fall (step, multistep, exponential, plateau).", 0, 1}, decay_factor);
  visit.field({"milestones", "Steps at which multistep falls.", 0, 1e9}, milestones);
  visit.field({"polynomial_power", "Power of polynomial.", 0, 100}, polynomial_power);
  visit.field({"warmup_share", "Share of the steps in which one_cycle rises.", 0, 1}, warmup_share);
  visit.field({"start_divisor", "Highest learning rate of one_cycle over the first.", 1, 1e12}, start_divisor);
  visit.field({"end_divisor", "First learning rate of one_cycle over the last.", 1, 1e12}, end_divisor);
  visit.field({"momentum_low", "Momentum of one_cycle at the highest learning rate.", 0, 0.999999}, momentum_low);
  visit.field({"momentum_high", "Momentum of one_cycle at the lowest learning rate.", 0, 0.999999}, momentum_high);
  visit.field({"one_cycle_linear", "Straight lines in one_cycle, not cosines."}, one_cycle_linear);
  visit.field({"three_phase", "one_cycle falls as long as it rose before it dies away."}, three_phase);
  visit.field(modes, cyclic_mode);
  visit.field({"plateau_patience", "Validations without improvement that plateau waits for.", 0, 1e9}, plateau_patience);
  visit.field({"plateau_cooldown", "Validations after a fall that plateau does not count.", 0, 1e9}, plateau_cooldown);
  visit.field({"plateau_threshold", "Smallest improvement that counts for plateau.", 0, 1e9}, plateau_threshold);
  visit.field({"plateau_absolute", "The threshold of plateau is a difference, not a share."}, plateau_absolute);
  visit.field({"plateau_rising", "Larger measures are better for plateau."}, plateau_rising);
}

ScheduleKind ScheduleConfig::kind() const {
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const char* name) { return schedule == name; });
  return found == kNames.end() ? ScheduleKind::kConstant : static_cast<ScheduleKind>(found - kNames.begin());
}

Result<void> ScheduleConfig::check(std::string_view where) const {
  if (auto in_range = check_fields(*this, where); !in_range) return in_range;
  if (!std::is_sorted(milestones.begin(), milestones.end())) {
    return fail({Fault::kBadUse, "milestones do not rise", std::string(where), "rising steps, such as 1000,3000", ""});
  }
  return {};
}

Result<Schedule> Schedule::of(const ScheduleConfig& config, double rate, std::int64_t total_steps) {
  if (auto good = config.check("schedule"); !good) return fail(good.error());
  if (total_steps < 1) {
    return fail({Fault::kBadUse, fmt::format("a training of {} steps has no schedule", total_steps), "field 'steps'", "at least 1", ""});
  }
  return Schedule(config, rate, total_steps);
}

Schedule::Schedule(const ScheduleConfig& config, double rate, std::int64_t total_steps)
    : config_(config), kind_(config.kind()), rate_(rate), total_(total_steps) {
  watch_.rate = rate;
  const double infinity = std::numeric_limits<double>::infinity();
  watch_.best = config.plateau_rising ? -infinity : infinity;
}

double Schedule::rate(std::int64_t step) const {
  const double t = static_cast<double>(step), total = static_cast<double>(total_), warmup = static_cast<double>(config_.warmup_steps);
  if (kind_ == ScheduleKind::kOneCycle) {
    const double first = rate_ / config_.start_divisor;
    return one_cycle(t, first, rate_, first / config_.end_divisor);
  }
  if (t < warmup) return rate_ * (config_.warmup_start + (1 - config_.warmup_start) * t / warmup);
  return after_warmup(t - warmup, std::max(total - warmup, 1.0));
}

// step, total: without the warm-up.
double Schedule::after_warmup(double step, double total) const {
  const double low = std::min(config_.min_learning_rate, rate_), height = rate_ - low;
  const double period = static_cast<double>(config_.period_steps);
  switch (kind_) {
    case ScheduleKind::kConstant:
    case ScheduleKind::kOneCycle:
      return rate_;
    case ScheduleKind::kPlateau:
      return watch_.rate;
    case ScheduleKind::kLinear:
      return low + height * std::max(0.0, 1 - step / total);
    case ScheduleKind::kCosine:  // past the period it rises again (Loshchilov and Hutter 2017, as torch has it)
      return low + height * half_cosine(step / (period > 0 ? period : total));
    case ScheduleKind::kStep:
      return std::max(low, rate_ * std::pow(config_.decay_factor, std::floor(step / std::max(period, 1.0))));
    case ScheduleKind::kMultistep: {
      // Milestones count from the start of the training.
      const double at = step + static_cast<double>(config_.warmup_steps);
      const auto passed = std::upper_bound(config_.milestones.begin(), config_.milestones.end(), at) - config_.milestones.begin();
      return std::max(low, rate_ * std::pow(config_.decay_factor, static_cast<double>(passed)));
    }
    case ScheduleKind::kExponential:
      return std::max(low, rate_ * std::pow(config_.decay_factor, step / std::max(period, 1.0)));
    case ScheduleKind::kPolynomial:
      return low + height * std::pow(1 - std::min(step / total, 1.0), config_.polynomial_power);
    case ScheduleKind::kWarmRestarts: {
      double length = period > 0 ? period : total;
      for (; step >= length; length *= config_.period_growth) step -= length;
      return low + height * half_cosine(step / length);
    }
    case ScheduleKind::kHardRestarts: {
      const double share = step / total;
      return share >= 1 ? low : low + height * half_cosine(std::fmod(share * static_cast<double>(config_.cycles), 1.0));
    }
    case ScheduleKind::kInverseSqrt: {
      const double scale = std::max(static_cast<double>(config_.warmup_steps), 1.0);
      return std::max(low, rate_ / std::sqrt(1 + step / scale));
    }
    case ScheduleKind::kCyclic: {
      const double rise = std::max(period, 1.0), cycle = std::floor(1 + step / (2 * rise)), place = std::abs(step / rise - 2 * cycle + 1);
      const double halving = config_.cyclic_mode == "triangular" ? 1 : std::pow(0.5, cycle - 1);
      return low + height * std::max(0.0, 1 - place) * halving;
    }
  }
  return rate_;
}

// Smith 2018 with the phases of torch's OneCycleLR: first -> high -> last, or first -> high -> first -> last.
double Schedule::one_cycle(double step, double first, double high, double last) const {
  const double total = static_cast<double>(total_), top = config_.warmup_share * total - 1;
  const auto blend = [&](double from, double to, double begin, double end) {
    const double share = end > begin ? std::clamp((step - begin) / (end - begin), 0.0, 1.0) : 1.0;
    return config_.one_cycle_linear ? from + (to - from) * share : to + (from - to) * half_cosine(share);
  };
  if (step <= top) return blend(first, high, 0, top);
  const double start = std::max(top, 0.0);
  if (!config_.three_phase) return blend(high, last, start, total - 1);
  const double down = 2 * config_.warmup_share * total - 2;
  return step <= down ? blend(high, first, start, down) : blend(first, last, std::max(down, start), total - 1);
}

std::optional<double> Schedule::momentum(std::int64_t step) const {
  if (kind_ != ScheduleKind::kOneCycle) return std::nullopt;
  return one_cycle(static_cast<double>(step), config_.momentum_high, config_.momentum_low, config_.momentum_high);
}

void Schedule::observe(double measure) {
  if (kind_ != ScheduleKind::kPlateau) return;
  const double sign = config_.plateau_rising ? -1 : 1, threshold = config_.plateau_threshold;
  const double needed = config_.plateau_absolute ? watch_.best - sign * threshold : watch_.best * (1 - sign * threshold);
  if (sign * measure < sign * needed) {
    watch_.best = measure;
    watch_.bad = 0;
  } else {
    watch_.bad += 1;
  }
  if (watch_.cooldown > 0) {
    watch_.cooldown -= 1;
    watch_.bad = 0;
  }
  if (watch_.bad > config_.plateau_patience) {
    watch_.rate = std::max(watch_.rate * config_.decay_factor, std::min(config_.min_learning_rate, watch_.rate));
    watch_.cooldown = config_.plateau_cooldown;
    watch_.bad = 0;
  }
}

}  // namespace kizzasi
