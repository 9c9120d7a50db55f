// The states of layers whose state is one row of complex numbers, as their references write them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kizzasi/model/published.h"

namespace kizzasi {

// (batch, N, re/im) of the field layer0.h, (2, N); nothing where `name` is no state.
inline std::optional<std::vector<float>> complex_states(const std::string& name, const StateBatch& states) {
  if (name != "state") return std::nullopt;
  return states.with_last_axes_swapped("layer0.h");
}

}  // namespace kizzasi
