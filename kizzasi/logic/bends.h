// What bends a linear expression: absolute values, minima and maxima over what moves, and the straight pieces that they are made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::logic {

// Formulas put together; `offset` is the place that messages name.
Formula joined(Op op, Formula a, Formula b, std::size_t offset);
Formula negative(Formula a);
Formula plain_number(double number, std::string unit, std::size_t offset);
Formula call_of(std::string name, std::vector<Formula> operands, std::size_t offset);
Formula compare(Formula a, Comparison sign, Formula b, std::size_t offset);
// Of an expression of numbers alone.
std::optional<double> constant_of(const Formula& f);

class Bends {
 public:
  Bends(const Schema& schema, const Source& source) : schema_(schema), source_(source) {}

  // The first abs, min, max, norm1 or norminf over something that moves; null: there is none. `pull` > 0: as it grows, left - right does.
  struct Bend {
    Formula* formula = nullptr;
    double pull = 1;
  };
  // Of a comparison; the formula found lies in it. Error: it is multiplied by something whose sign is not known when compiling.
  Result<Bend> find(Formula& comparison) const;
  // The pieces of abs, min or max: the value is the least (min) or the most (abs, max) of them.
  std::vector<Formula> alternatives(const Formula& bent) const;
  // norm1 as a sum of sizes, norminf as the largest of them, in the order in which they are evaluated.
  Formula spelled_out(const Formula& bent) const;

 private:
  Result<Formula*> find_in(Formula& f, double& pull) const;
  std::optional<std::int64_t> window_samples(const Formula& f) const;
  bool moves(const Formula& f) const;

  const Schema& schema_;
  const Source& source_;
};

}  // namespace kizzasi::logic
