// Constraints that are enforced together: coupled conditions in any directions, choices, what looks back, convex sets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/clauses.h"
#include "kizzasi/logic/grid.h"
#include "kizzasi/logic/monitor/stage.h"
#include "kizzasi/logic/predicate.h"
#include "kizzasi/logic/present.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::logic {

// One constraint as the guard knows it, to be enforced here.
struct JointConstraint {
  std::uint32_t index = 0;  // among the guard's constraints
  ConstraintText text;
  bool enforced = true;  // false: judged only
  std::vector<Choice> clauses;
};

struct JointLiteral {
  Literal::Kind kind = Literal::Kind::kCompare;
  std::uint32_t left = 0, right = 0;  // number nodes
  NodeKind relation = NodeKind::kLessEqual;
  bool apart = false, convex = false;
  double rounding = 0;               // by how many eps of its size a moved value stays inside: of windows, which others may sum otherwise
  std::vector<std::uint32_t> order;  // number nodes that it depends on
  std::vector<std::uint32_t> variables;   // channels that move it now
  std::uint32_t node = 0;                 // kKnown
  bool weak = false, negated = false;     // kKnown
  std::int64_t ahead = 0, ahead_of = -1;  // kCompare: must be in reach so many frames ahead; or as many as that promise has left
  std::int64_t slack = -1;                // of a soft curve: which unknown of its group says by how much it is broken
  bool looks_at_now = false;              // at a channel as it is now, or at the clock
  bool looks_elsewhere = false;           // at the past, the clock or given channels
};

// An obligation that frames before may have taken on. Its state: one byte for each of the last `ring` frames, 1 where that frame took it on
// and it is still open, and one that says that it holds for ever.
struct JointPromise {
  Promise::Kind kind = Promise::Kind::kReach;
  std::int64_t low = 0, high = 0, ring = 1;
  bool frees_at_once = false;
  std::uint32_t clause = 0;                      // what an open one asks for
  std::vector<std::vector<std::uint32_t>> free;  // kKeep: branches that set free
  std::size_t at = 0;                            // of its state
};

// What a branch does for an obligation.
enum class Deed : std::uint8_t { kNothing, kMeets, kStaysNear, kFrees };

struct JointClause {
  std::int64_t promise = -1;                         // that it is the open obligation of; -1: it is asked for at every frame
  std::vector<std::vector<std::uint32_t>> takes;     // (branches) promises that it takes on
  std::vector<Deed> deeds;                           // (branches)
  std::uint32_t constraint = 0;                      // among those given
  std::vector<std::vector<std::uint32_t>> branches;  // literals
  std::vector<std::uint32_t> channels;               // that it can move
  std::size_t offset = 0;
  bool enforced = true;
  int form = 0;  // 0: bounds, 1: what looks back, 2: coupled; among equal priorities the lower is obeyed first
};

// What a literal asks of the values at one moment.
enum Standing : std::int8_t {
  kFalse = -1,
  kUnknown = 0,
  kTrue = 1,
  kRow = 2,     // a plane
  kEnds = 3,    // bounds of one channel
  kCurve = 4,   // planes where it was broken
  kFrozen = 5,  // no time has passed: its channels stay
  kPaying = 6,  // cannot hold: gives way as little as possible
  kGiven = 7,   // and by so much
  kStill = 8,   // no time has passed: the sum that it takes a rate of stays
};

// Channels that clauses couple.
struct JointGroup {
  std::vector<std::uint32_t> channels;
  std::vector<std::uint32_t> slacks;   // soft curved literals: all planes that stand for one share its slack
  std::vector<std::uint32_t> clauses;  // in the order in which they are obeyed where not all can hold
  std::size_t number = 0;
  std::size_t rows = 0;  // most that a program may have
  bool curved = false;
  std::size_t branches = 1;  // combinations

  std::size_t unknowns() const noexcept { return channels.size() + slacks.size(); }
};

constexpr std::size_t kMostCuts = 96;  // planes that stand for curved sets at a time

class Joint;

// What one call works in; taken from a pool, since a guard serves all threads.
struct JointWorkspace {
  std::atomic<bool> busy{false};
  std::vector<solve::QuadraticProgram> programs;  // (groups)
  std::vector<double> recalled, values, adjoint, slopes, frame, sent, seen_values, sent_values;
  // (literals): -1 false, 0 unknown, 1 true, 2 to be seen to; its row (literals, widest group), constant part, margin and ends.
  std::vector<std::int8_t> standing;
  std::vector<std::uint32_t> still;  // (literals) the rate that no time has passed for
  std::vector<double> rows, constants, margins, shifts, low, high;
  std::vector<std::int8_t> live;           // (branches of all clauses)
  std::vector<std::int32_t> chosen;        // (clauses) branch, -1: open, -2: not enforced now
  std::vector<std::uint8_t> kept, wanted;  // (clauses)
  std::vector<std::uint8_t> taken;         // (promises)
  std::vector<std::uint32_t> active;
  // Of the program.
  std::vector<double> a, lo, hi, l1, l2, lower, upper, y, weight, x, best, cuts, cut_ends, relaxed;
  std::vector<std::uint32_t> row_literal, cut_literal;
  std::size_t cut_count = 0, cut_next = 0;
  std::vector<std::int64_t> left;  // (promises) frames until it must hold
  double best_cost = 0;
  bool found = false;
};

// Immutable but for its pool. Real-time: all noexcept members.
class Joint {
 public:
  // Errors: what is neither affine nor convex; too many combinations; constraints that no values obey, with the place.
  static Result<std::unique_ptr<Joint>> build(const Schema& schema, const Grid& grid, std::vector<JointConstraint> constraints,
                                              std::span<const double> squared_scale);

  std::size_t state_bytes() const noexcept { return state_bytes_; }
  void reset(std::span<std::byte> state) const noexcept;
  std::span<const JointConstraint> constraints() const noexcept { return constraints_; }
  std::span<const JointClause> clauses() const noexcept { return clauses_; }
  std::span<const JointGroup> groups() const noexcept { return groups_; }
  std::span<const JointLiteral> literals() const noexcept { return literals_; }
  bool promises() const noexcept { return !promises_.empty(); }
  std::int64_t group_of(std::size_t channel) const noexcept { return group_of_[channel]; }  // -1: moved elsewhere

  // A look at one frame's moment; gives its workspace back when it ends.
  class Look {
   public:
    Look(const Joint& joint, std::span<const std::byte> state, const Past& past, std::int64_t time_ns) noexcept;
    ~Look();
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

    // Of constraint i at this frame; `excess`: by how much it is broken.
    Truth judge(std::size_t i, std::span<const double> frame, double& excess) noexcept;
    // Moves the channels of all groups in `value` to the nearest values that obey. False: not all could.
    bool settle(std::span<double> value) noexcept;
    // The first clause, in the order of the group, that cannot hold with those before it; soft ones left aside.
    std::optional<std::uint32_t> conflict(const JointGroup& group, std::span<const double> given) noexcept;
    // The values that a channel can take while its partners may move; around(c): where channel c stands. Soft ones left aside.
    template <typename Around>
    void interval(std::size_t channel, const Around& around, double& low, double& high) noexcept {
      for (std::size_t c = 0; c < w_.sent.size(); ++c) w_.sent[c] = around(c);
      reach(channel, low, high);
    }

   private:
    void reach(std::size_t channel, double& low, double& high) noexcept;
    void see(const JointGroup& group, std::span<const double> value, bool soft) noexcept;
    void see_literal(const JointGroup& group, std::uint32_t literal) noexcept;
    void see_now(const JointGroup& group, std::uint32_t literal) noexcept;
    void widen(std::uint32_t literal) noexcept;
    std::int64_t frames_ahead(std::uint32_t literal) const noexcept;
    void hold_still(const JointGroup& group, std::uint32_t literal) noexcept;
    double difference(std::uint32_t literal) noexcept;
    void find_ends(const JointGroup& group, std::uint32_t literal) noexcept;
    Truth truth(std::uint32_t literal, std::span<const double> frame) noexcept;
    bool holds_now(std::uint32_t literal, bool with_margin) noexcept;
    bool literal_holds(std::uint32_t literal, bool with_margin) noexcept;
    double gap(std::uint32_t literal) noexcept;
    double size(std::uint32_t literal) noexcept;
    bool clause_holds(std::uint32_t clause) noexcept;
    void put(const JointGroup& group, std::span<const double> x) noexcept;
    bool search(const JointGroup& group) noexcept;
    void descend(const JointGroup& group) noexcept;
    bool solve(const JointGroup& group, double& cost) noexcept;
    bool approach(const JointGroup& group) noexcept;
    double most_rounded(std::uint32_t literal) noexcept;
    double heaviest(const JointGroup& group) const noexcept;
    bool polish(const JointGroup& group) noexcept;
    bool repair_equality(const JointGroup& group, std::uint32_t literal) noexcept;
    void add_cut(const JointGroup& group, std::uint32_t literal) noexcept;
    bool give_way(const JointGroup& group) noexcept;

    const Joint& j_;
    JointWorkspace& w_;
    std::span<const std::byte> state_;
    Past past_;
    bool soft_ = true;
  };

  // One frame: what was measured and what was emitted. `past` is what stood before it.
  void accept(std::span<std::byte> state, const Past& past, std::int64_t time_ns, std::span<const double> measured,
              std::span<const double> emitted) const noexcept;

 private:
  Joint() = default;
  friend class JointBuilder;
  JointWorkspace& take() const noexcept;
  std::span<const double> numbers(std::span<const std::byte> state) const noexcept;
  Truth known(const JointLiteral& literal, std::span<const std::byte> state) const noexcept;
  // What is open of a promise at this frame.
  struct Open {
    bool any = false, now = false;  // some frame took it on; `goal` may (kReach) or must (kKeep) hold now
    std::int64_t left = 0;          // frames until it must
  };
  Open open(const JointPromise& promise, std::span<const std::byte> state) const noexcept;
  bool is_live(const Open& open, const JointPromise& promise, Deed deed) const noexcept;
  void keep_promises(JointWorkspace& w, std::span<std::byte> state) const noexcept;
  Truth sent_truth(const JointLiteral& literal, std::span<const std::byte> state, std::span<const double> values) const noexcept;
  Verdict relation(const JointLiteral& literal, std::span<const double> values) const noexcept;

  Schema schema_;
  Grid grid_;
  std::vector<double> squared_scale_;
  std::vector<JointConstraint> constraints_;
  std::vector<JointLiteral> literals_;
  std::vector<JointClause> clauses_;
  std::vector<std::size_t> first_branch_;               // (clauses) among all branches
  std::vector<std::vector<std::uint32_t>> clauses_of_;  // (constraints)
  std::vector<std::uint32_t> constraint_of_literal_;
  std::vector<JointPromise> promises_;
  std::vector<double> rise_, fall_;  // (channels) what a channel can move in one frame; infinite: anywhere
  std::vector<JointGroup> groups_;
  std::vector<std::int64_t> group_of_, variable_of_;  // (channels)
  std::size_t widest_ = 0;
  Present present_;
  std::vector<std::uint32_t> all_numbers_, comparisons_;
  std::optional<Stage<Verdict>> stage_;
  std::size_t counters_at_ = 0, numbers_at_ = 0, verdicts_at_ = 0, state_bytes_ = 0;
  mutable std::vector<std::unique_ptr<JointWorkspace>> pool_;
};

}  // namespace kizzasi::logic
