// What a growing prefix of a trace says of a formula of linear temporal logic: its automata, built before the stream starts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// For one formula, from the start of the stream. The comparisons are taken as independent propositions.
struct PrefixVerdict {
  bool known = true;       // false once a comparison was unknown, until the next reset or unless the verdict was permanent by then
  bool now = false;        // true of the prefix as a finite trace (LTLf)
  bool permanent = false;  // no finite continuation changes that
  bool every = false, some = false;  // every, some infinite continuation satisfies (LTL3: true if every, false if not some, else open)
};
// "true", "false", "presumably_true", "presumably_false" (RV-LTL; Bauer, Leucker and Schallhart 2010).
const char* rv_ltl(const PrefixVerdict& verdict);

// States are what is left of the formula (see Residual); transitions and verdicts are looked up, so a sample costs the same however long
// the formula. Thread: any. Real-time: step yes.
class PrefixMonitor {
 public:
  // Errors: past operators; more than kMostPropositions comparisons, kMostObligations open "next"s or kMostStates states.
  static Result<PrefixMonitor> create(const NodeGraph& graph, std::uint32_t root, const std::string& place);

  std::span<const std::uint32_t> propositions() const { return propositions_; }  // nodes of the graph, bit i of a letter
  std::int32_t start() const { return 0; }
  // The state after a letter; -1 where `state` is -1 or the letter is not known (letter < 0).
  std::int32_t step(std::int32_t state, std::int64_t letter) const noexcept {
    if (state < 0) return -1;
    if (letter < 0) return settled_[static_cast<std::size_t>(state)] != 0 ? state : -1;
    return next_[static_cast<std::size_t>(state) * letters_ + static_cast<std::size_t>(letter)];
  }
  // Of the prefix that led here; of the start, before any letter, `now` and `permanent` mean nothing.
  PrefixVerdict verdict(std::int32_t state) const noexcept;

 private:
  friend class PrefixBuilder;
  std::vector<std::uint32_t> propositions_;
  std::size_t letters_ = 1;
  std::vector<std::int32_t> next_;       // (states, letters)
  std::vector<PrefixVerdict> verdicts_;  // (states)
  std::vector<std::uint8_t> settled_;    // (states) 1: no letter leads to another verdict
};

}  // namespace kizzasi::logic
