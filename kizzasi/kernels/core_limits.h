// What one core of this machine can do at most: the yardstick beside every benchmark.
#pragma once

#include <span>

namespace kizzasi::kernels {

// Floating-point operations a second (a fused multiply-add counts two) of independent chains in registers, f32, on the target that the
// kernels chose. Takes about 20 ms. Thread: any. Real-time: no.
double fused_flops_per_second();

// Bytes a second at which this thread reads `memory` from end to end, again and again: from the cache that it fits in, or from main memory.
// The best of several passes, about 20 ms in all. Thread: any. Real-time: no.
double read_bytes_per_second(std::span<const float> memory);

}  // namespace kizzasi::kernels
