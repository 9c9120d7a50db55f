// A set of constraints as the price of a block of predicted frames, with its gradient, and as a judge of what the block breaks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/penalty/config.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

// Known frames with predicted ones after them. A missing value is NaN: what reads it costs nothing.
struct PricedBlock {
  std::span<const double> frames;       // (rows, channels), physical
  std::span<const std::int64_t> times;  // (rows)
  std::size_t past = 0;                 // rows of it that are known
};

// What one condition says of one block or many.
struct ConditionSum {
  double violation = 0;      // standard deviations, summed over the checks
  std::uint64_t checks = 0;  // positions at which it has a value
  std::uint64_t broken = 0;  // and those where it is violated by more than rounding (1e-6 standard deviations)
};

// Every constraint is taken apart into conditions that must hold together (the parts of `and`, of chains, of `*`, under a plain `always`).
// A condition is judged at each position whose future ends in the predicted rows; where its future has no end or is longer than the block,
// it is cut at the block's end. Its violation g is minus its robustness, smooth where the formula has choices or times, over its unit: the
// length of its gradient in normalised values. So g of a linear condition is the distance to it, in standard deviations.
// Constraints with else = "warn" cost nothing. Immutable after `measure`. Thread: any.
class ConstraintPrice {
 public:
  // channel_scale: (channels) a standard deviation of each. most_past: rows that an operator without end looks back.
  // Errors: those of the parser and of build_graph, with the place.
  static Result<ConstraintPrice> compile(const Schema& schema, std::span<const ConstraintText> constraints,
                                         std::span<const double> channel_scale, std::size_t most_past, double sharpness);
  ConstraintPrice(ConstraintPrice&&) noexcept;
  ConstraintPrice& operator=(ConstraintPrice&&) noexcept;
  ~ConstraintPrice();

  // Settles the units: the mean length of each condition's gradient over these blocks (1 where none of them gives one).
  void measure(std::span<const PricedBlock> samples);

  std::size_t conditions() const noexcept;
  const std::string& label(std::size_t condition) const noexcept;  // the constraint's name or text, and which of its parts
  double unit(std::size_t condition) const noexcept;               // physical units of its two sides that make one
  std::size_t past() const noexcept;                               // known rows that a block should hold

  // The sum over conditions and positions of the constraint's weight * price_of(g + margin), and its derivative by the predicted frames
  // added to `gradient` (rows, channels), the known rows' too. weights, multipliers: (conditions). `about`: (channels) only conditions that
  // read one of those marked; empty: all. `sums`: (conditions), added to; may be empty. Real-time: no.
  double price(const PenaltyConfig& config, const PricedBlock& block, std::span<const double> weights, std::span<const double> multipliers,
               std::span<const std::uint8_t> about, std::span<double> gradient, std::span<ConditionSum> sums) const;

  // What the block breaks, by the exact semantics: sums (conditions) are added to. Real-time: no.
  void judge(const PricedBlock& block, std::span<ConditionSum> sums) const;

 private:
  struct Parts;
  explicit ConstraintPrice(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace kizzasi
