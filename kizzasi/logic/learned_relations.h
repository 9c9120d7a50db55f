// Linear relations between columns of numbers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kizzasi::logic {

struct Relation {
  std::vector<double> factors;  // (columns), whole numbers where they fit; 0: not in it
  double constant = 0;          // sum of factor * column, up to noise
};

// Of `rows` (rows, columns), all finite: each combination of columns that stays within `noise` times the spread of its largest term.
// Columns that do not move are left out. Sorted by their first column. Thread: any. Real-time: no.
std::vector<Relation> find_relations(std::span<const double> rows, std::size_t columns, double noise);

// Rounded to the next number with four digits of `width`: up or down.
double rounded(double value, double width, bool up);

}  // namespace kizzasi::logic
