// Where an adjoint adds a gradient that perhaps nobody wants.
#pragma once

#include <span>
#include <vector>

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// The gradient of `v`, or `unwanted` (made as large, zeroed) where v wants none: so a fused adjoint needs no cases.
template <typename T>
std::span<T> gradient_sink(Tape<T>& tape, Var<T> v, std::vector<T>& unwanted) {
  if (tape.wants_gradient(v.id)) return tape.grad(v.id);
  unwanted.assign(tape.value(v.id).size(), T{0});
  return unwanted;
}

}  // namespace kizzasi::autograd
