// Many points against one set of constraints: lazily, what settles most points for the least work first, and from a cache of cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/monitor/nodes.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

enum class Obeys : std::uint8_t { kNo, kYes, kUnknown };  // kUnknown: none is broken, but one is not judged, since something is missing

struct BatchOptions {
  std::vector<double> cell{};                 // (channels) widths of the cells of the cache; empty: no cache
  std::size_t cells = std::size_t{1} << 16U;  // so many the cache holds; a new one takes the place of one that falls on the same slot
};

// Points are frames without a past, at time 0: what looks back is not judged. A point is kNo as soon as one constraint is found broken; the
// order in which they are asked follows how often each was broken before, for its work. A cell of the cache knows whether all constraints
// are true everywhere in it, or one is false everywhere, by interval arithmetic (Moore 1966), widened beyond any rounding; points of other
// cells are evaluated. Answers are those of Guard::check, whatever the order and the cache. Thread: one at a time. Real-time: check.
class BatchChecker {
 public:
  // Errors: those of compile_guard for each constraint alone; widths that are not above 0, no cell.
  static Result<BatchChecker> make(const Schema& schema, std::span<const ConstraintText> constraints, BatchOptions options = {});

  // points: (n, channels); out: (n). False: sizes do not fit, and nothing was written.
  bool check(std::span<const double> points, std::span<Obeys> out) noexcept;

  std::size_t evaluated() const noexcept { return evaluated_; }    // constraints at points, so far
  std::size_t from_cache() const noexcept { return from_cache_; }  // points answered by a cell, so far

 private:
  enum class Cell : std::uint8_t { kEmpty, kInside, kOutside, kMixed };
  struct Ends {
    double low = 0, high = 0;
  };
  struct One {  // a constraint on its own
    std::unique_ptr<Guard> guard;
    std::vector<std::byte> state;
    std::uint32_t root = 0;  // of `graph_`
    double work = 1, asked = 1, broken = 0.5;
  };

  Obeys evaluate(std::span<const double> point) noexcept;
  Cell cell_at(std::span<const double> point) noexcept;
  Cell judge_cell() noexcept;
  void bound_nodes() noexcept;

  std::size_t channels_ = 0;
  BatchOptions options_;
  logic::NodeGraph graph_;
  std::vector<One> ones_;
  std::vector<std::uint32_t> order_;
  GuardReport report_;
  std::size_t points_ = 0, evaluated_ = 0, from_cache_ = 0;
  std::vector<std::int64_t> keys_, key_;  // (cells, channels), (channels)
  std::vector<Cell> cells_;
  std::vector<Ends> ends_;     // (nodes) of numbers
  std::vector<Obeys> truths_;  // (nodes) of conditions; kUnknown: not the same everywhere
};

}  // namespace kizzasi
