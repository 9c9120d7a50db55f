// L D L' of a symmetric matrix whose entries lie near its diagonal.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kizzasi::solve {

// Without exchanges of rows: for matrices that are definite, or quasi-definite (Vanderbei 1995). Real-time: every noexcept member.
class BandedFactor {
 public:
  // `bandwidth`: the largest distance of an entry from the diagonal.
  void prepare(std::size_t size, std::size_t bandwidth);
  std::size_t size() const noexcept { return size_; }
  std::size_t bandwidth() const noexcept { return bandwidth_; }

  void clear() noexcept;
  // Adds to the entry (i, j), in either triangle.
  void add(std::size_t i, std::size_t j, double value) noexcept;
  // Overwrites the matrix with its factor. False: a pivot is 0 or not finite.
  bool factor() noexcept;
  // After `factor`: x := the solution for the right-hand side x.
  void solve(std::span<double> x) const noexcept;

 private:
  std::size_t size_ = 0, bandwidth_ = 0;
  std::vector<double> columns_;  // column j: its diagonal, then bandwidth entries below
};

}  // namespace kizzasi::solve
