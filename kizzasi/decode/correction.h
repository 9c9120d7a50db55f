// Calibrations at work: fitted on forecasts whose truth is known, and applied to quantiles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/signal/calibration.h"

namespace kizzasi {

// The quantile of that level after the calibration's correction (signal/calibration.h states it); between calibrated levels stretch and
// shift are interpolated in the level, beyond them the outermost hold. An empty calibration changes nothing.
// step: steps ahead, from 0. Thread: any. Real-time: yes.
double corrected_quantile(const Calibration& calibration, std::size_t step, std::size_t target, double level, double median,
                          double quantile) noexcept;

// Adaptive conformal inference (Gibbs and Candes 2021, equation 2) for one quantile, with the level's log-odds in place of the level, so
// that it can go as far out as the data ask and never leaves (0, 1): to first order the level moves by rate * (level - [truth <=
// quantile]). What to keep for the next step, given what was kept so far (0 at the start). Thread: any. Real-time: yes.
double adapted(double kept, double rate, double level, bool truth_below) noexcept;
// The level at which to look for the quantile `level` now; it stays on its side of the median.
double adapted_level(double level, double kept) noexcept;

// Learns a calibration from forecasts on data that training never saw (the order of calls does not matter).
//   shift    the level's conformal quantile of truth - quantile
//   stretch  the level's conformal quantile of (truth - median) / (quantile - median)
// For each step, target and level the one with the smaller pinball loss on these forecasts is taken; the median stays where it is.
// Thread: one at a time. Real-time: no.
class CalibrationFit {
 public:
  // levels: rising.
  CalibrationFit(std::vector<double> levels, std::size_t horizon, std::size_t targets);

  // One forecast of one target at one step ahead. quantiles: (levels). A truth or forecast that is not finite is left out.
  void add(std::size_t step, std::size_t target, double median, std::span<const double> quantiles, double truth);

  // rate: of the adaptation in streams (Calibration::rate). Where too few forecasts were seen for a level, the largest error seen stands
  // in, and where none was seen the quantile stays as it is.
  Calibration finish(double rate) const;

 private:
  struct Seen {
    std::vector<double> median, truth;
    std::vector<double> quantiles;  // (seen, levels)
  };
  std::vector<double> levels_;
  std::size_t horizon_, targets_;
  std::vector<Seen> seen_;  // (horizon, targets)
};

}  // namespace kizzasi
