// Why a frame was moved, what each constraint cost, and what else would have had to be otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

// What one move cost. Distances are Euclidean in units of `scale`.
struct MoveCost {
  bool found = false;  // the nearest point could be written: its distance is that of the guard
  double distance = 0;
  std::vector<double> price;  // (constraints) by how much the distance would shrink for each unit that the constraint gave way (its edge
                              // moved out); of an equality, for each unit in the better direction
  std::vector<double> share;  // (constraints) of the distance; they add to 1 where it is not 0
  std::string sentence;       // "outflow 14.2 -> 12: 'valve rate' allows at most +2 a second after 10"; empty where nothing moved
};

struct Counterfactual {
  bool found = false;  // false: no change of what may move is enough
  double distance = 0;
  std::vector<double> frame;     // (channels) the frame that was asked about
  std::vector<double> previous;  // (channels) the frame before; empty where there is none
  std::string sentence;          // "it would have held with outflow 11.5 instead of 10 in the frame before"
};

// Explains frames of a stream that a guard with these constraints went through: it looks at the last frames that were emitted and at the
// proposal, writes the conditions out, and solves for the nearest point again, with its multipliers (shadow prices; Boyd and Vandenberghe
// 2004, 5.6). Soft constraints and such that do not project are left out. What check_consistency does not judge, and what looks back
// further than 31 frames, is taken as kept; then `found` may be true while the guard moved further. Slow: reads the texts again for each
// frame. Thread: one at a time. Real-time: no.
class Explainer {
 public:
  // Errors: those of parser, names and units.
  static Result<Explainer> make(const Schema& schema, std::span<const ConstraintText> constraints, std::span<const double> scale = {});

  // A frame went out: what later ones look back to.
  void accept(std::int64_t time_ns, std::span<const double> emitted);
  // `proposed` (channels) would have gone out at this time; `emitted`: what did.
  Result<MoveCost> explain(std::int64_t time_ns, std::span<const double> proposed, std::span<const double> emitted) const;
  // The smallest change of `channels` of the proposal, or of all channels of the frame before it (`previous`), with which the rest of the
  // proposal would have obeyed.
  Result<Counterfactual> what_if(std::int64_t time_ns, std::span<const double> proposed, std::span<const std::size_t> channels,
                                 bool previous) const;

 private:
  Schema schema_;
  std::vector<ConstraintText> constraints_;
  std::vector<double> scale_;
  std::vector<std::uint8_t> asked_;
  std::size_t frames_ = 2;
  std::vector<double> past_;  // (rows, channels)
  std::vector<std::int64_t> times_;
};

// What a stream's constraints did: counters of GuardReport and the costs of moves.
struct ConstraintTally {
  std::size_t active = 0, broken = 0, unknown = 0;  // frames
  double distance = 0;                              // of the moves, its share of each
  double worst_price = 0;
};
void count(const GuardReport& report, std::span<ConstraintTally> tallies);
void count(const MoveCost& cost, std::span<ConstraintTally> tallies);

}  // namespace kizzasi
