// Conditions written out over the steps of a course: each number of a formula as an affine function of all values of the course.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// sum of coefficient * variable + constant. Not `known`: it reads a value that is missing, or is no affine function.
struct Affine {
  std::vector<std::pair<std::uint32_t, double>> terms;  // variables rising
  double constant = 0;
  bool known = true;
};

// a + factor * b; what comes to 0 is left out.
Affine combined(const Affine& a, double factor, const Affine& b);

struct Course {
  std::span<const double> frames;             // (rows, channels)
  std::span<const std::int64_t> times;        // (rows)
  std::size_t past = 0;                       // rows whose values are given
  std::span<const std::int64_t> variable_of;  // (rows, channels) -1: given
  std::span<const double> sent;               // (channels) what was emitted for the last row of the past; empty: the same
};

// Of an affine node: what its value is made of at every row, in the sense of Present (windows are cut at the first row; prev(x, 1) and
// rate(x) look at the last value that there was). O(rows * window). Thread: any. Real-time: no.
class CourseRows {
 public:
  CourseRows(const NodeGraph& graph, const Course& course);
  Affine at(std::uint32_t node, std::size_t row);

 private:
  Affine evaluate(std::uint32_t node, std::size_t row);
  double seconds(std::size_t from, std::size_t to) const;

  const NodeGraph& graph_;
  const Course& course_;
  double zone_hours_ = 0, step_s_ = 1;
  std::vector<std::vector<Affine>> kept_;  // (nodes) by row, of those that others look back to
  std::vector<std::uint8_t> keeps_;
};

}  // namespace kizzasi::logic
