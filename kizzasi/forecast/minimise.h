// The lowest point of a smooth function of some tens of variables, from values alone.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kizzasi {

struct MinimiseOptions {
  std::size_t iterations = 500;
  double tolerance = 1e-10;  // stops when an iteration gains less, relative to the value
};

// BFGS (Nocedal and Wright 2006, algorithm 6.1) with central differences and backtracking. Variables should be of size 1; values that are
// not finite are taken as infinitely high. x: the start, then the lowest point found. Returns its value. Thread: any.
double minimise(const std::function<double(std::span<const double>)>& f, std::vector<double>& x, const MinimiseOptions& options = {});

// The lowest point of a function of one variable on [low, high]: a grid, then golden sections around its lowest point.
double minimise_on_line(const std::function<double(double)>& f, double low, double high, std::size_t grid = 60);

}  // namespace kizzasi
