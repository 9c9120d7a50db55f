// Learning rates over the steps of a training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kizzasi/base/fields.h"

namespace kizzasi {

enum class ScheduleKind {
  kConstant,
  kLinear,
  kCosine,
  kStep,
  kMultistep,
  kExponential,
  kOneCycle,
  kPolynomial,
  kWarmRestarts,
  kHardRestarts,
  kInverseSqrt,
  kCyclic,
  kPlateau
};

const char* to_string(ScheduleKind kind);  // "constant", "linear", "cosine", ...

struct ScheduleConfig {
  std::string schedule = "cosine";
  std::int64_t warmup_steps = 0;   // linear rise before every schedule but one_cycle
  double warmup_start = 0;         // share of the rate with which it begins
  double min_learning_rate = 0;    // where falling schedules end; the low of cyclic; the floor of plateau
  std::int64_t period_steps = 0;   // cosine: of one fall (0: the whole training); warm_restarts: the first; cyclic: of one rise;
                                   // exponential, step: of one factor (0: 1)
  double period_growth = 1;        // warm_restarts: each period over the one before
  std::int64_t cycles = 1;         // hard_restarts
  double decay_factor = 0.1;       // step, multistep, exponential, plateau
  std::vector<double> milestones;  // multistep: steps
  double polynomial_power = 1;     // polynomial
  double warmup_share = 0.3;       // one_cycle: part of the steps with a rising rate
  double start_divisor = 25, end_divisor = 1e4;        // one_cycle: highest over first rate, first over last
  double momentum_low = 0.85, momentum_high = 0.95;    // one_cycle
  bool one_cycle_linear = false, three_phase = false;  // one_cycle
  std::string cyclic_mode = "triangular2";             // triangular; triangular2: half as high each cycle
  std::int64_t plateau_patience = 10, plateau_cooldown = 0;
  double plateau_threshold = 1e-4;
  bool plateau_absolute = false, plateau_rising = false;  // threshold not relative; larger is better

  void fields(FieldVisitor& visit);
  ScheduleKind kind() const;
  Result<void> check(std::string_view where) const;
  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

// The rate and momentum of every step, as torch.optim.lr_scheduler and transformers.optimization define them. A pure function of the step,
// but for plateau, which watches a measure.
// Thread: one at a time for observe, any otherwise.
class Schedule {
 public:
  // rate: the highest. total_steps: of the training, at least 1.
  static Result<Schedule> of(const ScheduleConfig& config, double rate, std::int64_t total_steps);

  double rate(std::int64_t step) const;  // step: 0 for the first
  // Where the schedule moves the momentum (one_cycle).
  std::optional<double> momentum(std::int64_t step) const;

  // plateau: one measure (validation loss) after another; others ignore it. NaN is no improvement.
  void observe(double measure);
  // What observe has left behind, for exact resume.
  struct Watch {
    double rate = 0, best = 0;
    std::int64_t bad = 0, cooldown = 0;
    friend bool operator==(const Watch&, const Watch&) = default;
  };
  const Watch& watch() const noexcept { return watch_; }
  void restore(const Watch& watch) { watch_ = watch; }

 private:
  Schedule(const ScheduleConfig& config, double rate, std::int64_t total_steps);
  double after_warmup(double step, double total) const;
  double one_cycle(double step, double first, double high, double last) const;

  ScheduleConfig config_;
  ScheduleKind kind_;
  double rate_;
  std::int64_t total_;
  Watch watch_;
};

}  // namespace kizzasi
