// Small maps of parameters, computed in double on a tape of either type: poles of many radians keep their phase, sums that cancel their
// digits.
#pragma once

#include <vector>

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// build: (std::vector<Var<double>>) -> Var<double>, a pure function of its arguments. For T = float it runs on a tape of its own, and once
// more for the gradients: for parameters, not for signals.
template <typename T, typename Build>
Var<T> in_double(const std::vector<Var<T>>& inputs, Build build) {
  if constexpr (std::is_same_v<T, double>) {
    return build(inputs);
  } else {
    const auto evaluate = [inputs, build](const Tape<T>& on, Tape<double>& wide, std::vector<Var<double>>& leaves) {
      for (const Var<T>& input : inputs) {
        const std::span<const T> narrow = on.value(input.id);
        leaves.push_back(wide.leaf(on.dims(input.id), std::span<const double>(std::vector<double>(narrow.begin(), narrow.end()))));
      }
      return build(leaves);
    };
    Tape<T>& tape = *inputs.front().tape;
    Tape<double> wide;
    std::vector<Var<double>> leaves;
    const Var<double> result = evaluate(tape, wide, leaves);
    const Var<T> y = tape.record(result.dims(), std::span<const Var<T>>(inputs), [evaluate, inputs](Tape<T>& on, std::size_t id) {
      Tape<double> again;
      std::vector<Var<double>> from;
      const Var<double> value = evaluate(on, again, from);
      const std::span<const T> g = on.grad(id);
      again.backward(value, std::span<const double>(std::vector<double>(g.begin(), g.end())));
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!on.wants_gradient(inputs[k].id)) continue;
        const std::span<const double> exact = again.grad(from[k]);
        on.add_to_grad(inputs[k].id, [exact](std::size_t i) { return static_cast<T>(exact[i]); });
      }
    });
    const std::span<T> out = tape.mutable_value(y.id);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(result.value()[i]);
    return y;
  }
}

}  // namespace kizzasi::autograd
