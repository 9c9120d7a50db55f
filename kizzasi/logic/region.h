// What a set of constraints leaves over a few frames in a row: conditions written out as rows, choices between them, and a search for a
// point. Nothing is proposed and no past is given: every value of every frame is free.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/clauses.h"
#include "kizzasi/logic/present.h"
#include "kizzasi/signal/constraint_text.h"

namespace kizzasi::logic {

// A number of a text that stands alone on one side of a comparison: what a repair may change.
struct Limit {
  std::size_t constraint = 0;
  std::size_t offset = 0;  // in its text
  double value = 0;
  double unit = 1;        // a change of so much counts as 1
  bool two_ways = false;  // of an equality: no direction loosens it
  double loosens = 0;     // the sign of the change that loosens it
};

// terms . x + by * (change of a limit) <= bound, or < or ==. A curved one stands for terms that are cut where they are needed.
struct Demand {
  std::vector<std::pair<std::uint32_t, double>> terms;
  double bound = 0;
  bool equal = false, strict = false;
  bool judged = true;       // false: it cannot be written so, and counts as true
  std::int64_t limit = -1;  // number of the Limit
  double by = 0;            // its sign
  std::uint32_t frame = 0;
  std::uint32_t reach = 0;  // frames that it looks back
  bool rate = false;        // it compares a rate of one channel with a number
  bool curved = false;
  std::uint32_t left = 0, right = 0;  // nodes, curved
};
using Way = std::vector<Demand>;  // all of them
struct Decision {
  std::size_t constraint = 0;
  std::vector<Way> ways;  // one of them
};

struct NotWritten {
  std::size_t constraint = 0;
  std::string why;
};

// Frames that have happened and the one that is asked about, the last: what may move in them.
struct Given {
  std::span<const double> frames;         // (rows, channels)
  std::span<const std::int64_t> time_ns;  // (rows)
  std::span<const std::uint8_t> free;     // (rows, channels) 1: may move
};

class Region {
 public:
  static constexpr std::size_t kMostFrames = 32;
  static constexpr std::size_t kMostVariables = 400;

  // `scale`: (channels) or empty: 1 each. Errors: those of parser, names and units. What cannot be enforced is listed in `not_written`.
  // `given`: only its last frame must obey, and the rest has happened.
  static Result<Region> build(const Schema& schema, std::span<const ConstraintText> constraints, std::span<const double> scale,
                              const Given* given = nullptr);

  enum class Found : std::uint8_t { kPoint, kNothing, kUndecided };
  struct Pull {
    const Demand* demand = nullptr;  // of this region
    std::size_t constraint = 0;
    double multiplier = 0;  // of half the squared distance, by the bound
    double gap = 0;         // by how much what was asked for breaks it
  };
  struct Answer {
    Found found = Found::kUndecided;
    std::vector<double> x;       // (frames, channels)
    std::vector<double> change;  // (limits) kRepair
    double cost = std::numeric_limits<double>::infinity();
    std::vector<Pull> pulls{};  // nearest: conditions that hold it where it is
  };
  // A point that obeys the constraints flagged in `asked`, and at the last frame the negation of `denied` (nothing: kNobody).
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  Answer find(std::span<const std::uint8_t> asked, std::size_t denied = kNobody) const;
  // The least sum of squares of changes of limits, in their units, for which there is a point.
  Answer repair(std::span<const std::uint8_t> asked) const;

  // With `given`: the point nearest to it in units of scale; cost is the squared distance. What was not finite starts at 0.
  Answer nearest(std::span<const std::uint8_t> asked) const;

  std::size_t frames() const { return frames_; }
  const std::vector<Limit>& limits() const { return limits_; }
  const std::vector<NotWritten>& not_written() const { return not_written_; }
  bool is_written(std::size_t constraint) const { return written_[constraint] != 0; }
  bool denial_is_written(std::size_t constraint) const { return denial_written_[constraint] != 0; }
  const std::vector<Formula>& formulas() const { return formulas_; }

 private:
  struct Search;
  class Writer;
  Region() = default;

  Schema schema_;
  std::size_t frames_ = 1, variables_ = 0;
  std::vector<Formula> formulas_;
  std::vector<Decision> decisions_;             // of all frames
  std::vector<std::vector<Decision>> denials_;  // (constraints) of the last frame
  std::vector<Limit> limits_;
  std::vector<std::uint8_t> written_, denial_written_;
  std::vector<NotWritten> not_written_;
  std::shared_ptr<const Present> present_;
  std::vector<double> centre_, stiffness_, lower_, upper_;  // with `given`
};

}  // namespace kizzasi::logic
