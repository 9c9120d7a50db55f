// Constraints that a recording obeys, each with what it promises for frames to come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

// Rows of one recording; several series may stand in it side by side.
struct RecordedRows {
  std::span<const double> values;         // (rows, channels), NaN where missing
  std::span<const std::int64_t> time_ns;  // (rows) or empty: rows are one step apart
  std::span<const std::int32_t> series;   // (rows) or empty: one series
};

struct LearnOptions {
  double confidence = 0.99;  // of each promise, in (0, 1)
  double share = 0;     // 0: no row that was judged is left out; else the share of rows that must hold: bounds as narrow as that allows
  double noise = 0.01;  // a relation: standard deviation of what is left, as a share of its largest term's
};

struct LearnedConstraint {
  enum class Kind : std::uint8_t { kRange, kRate, kRelation, kSettling };
  Kind kind = Kind::kRange;
  std::string name, that;
  std::size_t judged = 0;  // rows that fixed its numbers; episodes for kSettling
  double held = 0;         // share of those that obey it
  double promised = 0;     // with the confidence asked for, at least this share of further rows (episodes) obeys it
};

// Learns, of channels that are predicted:
// - the range of each channel and of its rate, between order statistics. With n rows of which m are left out or lie on the edge, the share
// p
//   covered has P(p < s) = P(Bin(n, 1 - s) < m) (Wilks 1941);
// - linear relations: the smallest principal components of every second row (0, 2, ...), brought to reduced echelon form, so that collinear
//   channels give each relation once; whole numbers up to a common denominator of 12 where they leave no more than 5 % more; the tolerance
//   is an order statistic of the other rows, so the promise does not lean on the rows that chose the relation;
// - how long a channel takes to come back below its 80 % quantile once it is above its 95 % quantile: levels of the first half of the rows,
//   the longest of the episodes of the second.
// Where no row may be left out, tolerances and times also cover the rows that chose relations and levels. Numbers are rounded to the loose
// side. A promise speaks of rows drawn like these, independently of one another, as the scenario bound does (Campi and Garatti 2008); rows
// that follow one another closely count for fewer than they are, and a trend is not foreseen. What is not supported (fewer rows than the
// share needs, fewer than 10 episodes) is left out. Errors: options out of their range, wrong sizes. Thread: any. Real-time: no.
Result<std::vector<LearnedConstraint>> learn_constraints(const Schema& schema, const RecordedRows& rows, const LearnOptions& options = {});

// The largest share s with P(Bin(rows, 1 - s) < edge) <= 1 - confidence; 0 where there is none. edge >= 1: rows left out and on the edge.
double promised_share(std::size_t rows, std::size_t edge, double confidence);

}  // namespace kizzasi
