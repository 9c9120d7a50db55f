// How often this binary has asked the system for memory.
#pragma once

#include <cstddef>

namespace kizzasi {

std::size_t allocations_so_far();

}  // namespace kizzasi
