// What the compiler hands to the guard: every constraint sorted into the cheapest form that is exact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kizzasi/logic/grid.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/joint.h"
#include "kizzasi/logic/predicate.h"

namespace kizzasi::logic {

enum class Policy : std::uint8_t { kProject, kReject, kHold, kWarn };
enum class Form : std::uint8_t {
  kBox,    // one moving channel, bounds known when compiling
  kRate,   // one moving channel, bounds from the past, the time passed or given channels
  kRow,    // several moving channels in one linear condition
  kGiven,  // no moving channel: judged, never enforced
};

struct CompiledConstraint {
  ConstraintText text;
  std::string read_as;
  Policy policy = Policy::kProject;
  std::uint32_t first_atom = 0, atoms = 0;
  std::vector<std::uint32_t> channels;  // that it can move
  std::int64_t joint = -1;              // its number among those that are enforced together; they have no atoms
  bool enforced() const { return policy != Policy::kWarn; }
};

// One atom that bounds one channel.
struct Box {
  std::uint32_t atom = 0, channel = 0;
  bool fixed = false;
  double low = 0, high = 0;  // where fixed: on the emitted grid, both ends obey
};

// One atom over the channels of a group: half h of it reads  factor * (direction . x) + rest <= 0  (== 0 for an equality).
struct Row {
  std::uint32_t atom = 0;
  std::vector<double> factors;  // (halves)
};

struct Member {
  std::uint32_t channel = 0;
  double plain = 0, measured = 0, commanded = 0;  // direction = plain + measured / dt_measured + commanded / dt_commanded
};

// Channels that one direction couples, with everything that bounds them, in the order in which it is obeyed.
struct Group {
  struct Step {
    bool row = false;
    std::uint32_t index = 0;   // into boxes or rows
    std::uint32_t member = 0;  // of a box
  };
  std::vector<Member> members;
  std::vector<Row> rows;
  std::vector<Step> order;
  std::optional<double> weight;  // soft
};

struct Compiled {
  Schema schema;
  Grid grid;
  std::vector<double> squared_scale;  // (channels)
  std::vector<CompiledConstraint> constraints;
  std::vector<Atom> atoms;
  std::vector<Form> forms;                             // (atoms)
  std::vector<std::int64_t> box_of;                    // (atoms) -1: none
  std::vector<Box> boxes;                              // hard and soft
  std::vector<std::uint8_t> moves;                     // (channels) 1: a target
  std::vector<std::vector<std::uint32_t>> hard, soft;  // (channels) boxes in the order in which they are obeyed
  std::vector<std::int64_t> group_of;                  // (channels) -1: none
  std::vector<Group> groups;
  std::unique_ptr<Joint> joint;  // null: all are simpler

  bool timed() const { return schema.step_ns != 0; }
  const CompiledConstraint& constraint_of(std::uint32_t atom) const { return constraints[atoms[atom].constraint]; }
};

// The values of one channel that obey an atom at this moment, all else as it stands, on the grid. Empty: low > high.
struct Range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool empty() const { return low > high; }
};
Range range_of(const Atom& atom, std::size_t channel, const std::uint8_t* moves, Moment moment, const Grid& grid) noexcept;

// Narrows `range` by `by`; where the two do not meet, to the point of `range` that is nearest to `by`.
void narrow(Range& range, const Range& by, const Grid& grid) noexcept;

Json explain(const Compiled& compiled);

}  // namespace kizzasi::logic
