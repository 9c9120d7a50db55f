#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/core_limits.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "kizzasi/kernels/core_limits.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `rounds` x 12 vectors of multiply-adds; *flops: how many operations that were. Returns a value that depends on all of them.
float fused_chains(std::size_t rounds, double* flops) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 0.001f);
  auto s0 = hn::Set(d, 0.1f), s1 = hn::Set(d, 0.2f), s2 = hn::Set(d, 0.3f), s3 = hn::Set(d, 0.4f);
  auto s4 = hn::Set(d, 0.5f), s5 = hn::Set(d, 0.6f), s6 = hn::Set(d, 0.7f), s7 = hn::Set(d, 0.8f);
  auto s8 = hn::Set(d, 0.9f), s9 = hn::Set(d, 1.0f), s10 = hn::Set(d, 1.1f), s11 = hn::Set(d, 1.2f);
  for (std::size_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, factor, term), s1 = hn::MulAdd(s1, factor, term), s2 = hn::MulAdd(s2, factor, term);
    s3 = hn::MulAdd(s3, factor, term), s4 = hn::MulAdd(s4, factor, term), s5 = hn::MulAdd(s5, factor, term);
    s6 = hn::MulAdd(s6, factor, term), s7 = hn::MulAdd(s7, factor, term), s8 = hn::MulAdd(s8, factor, term);
    s9 = hn::MulAdd(s9, factor, term), s10 = hn::MulAdd(s10, factor, term), s11 = hn::MulAdd(s11, factor, term);
  }
  *flops = 2.0 * 12.0 * static_cast<double>(rounds * hn::Lanes(d));
  s0 = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)))));
}

float sum_of(const float* x, std::size_t size) {
  const hn::ScalableTag<float> d;
  const std::size_t width = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (std::size_t i = 0; i + 4 * width <= size; i += 4 * width) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i)), s1 = hn::Add(s1, hn::LoadU(d, x + i + width));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * width)), s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * width));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr double kLongEnough = 0.02;  // seconds of measuring

}  // namespace

HWY_EXPORT(fused_chains);
HWY_EXPORT(sum_of);

double fused_flops_per_second() {
  double best = 0;
  volatile float kept = 0;  // so that nothing is optimised away
  for (const auto start = Clock::now(); seconds_since(start) < kLongEnough;) {
    double flops = 0;
    const auto begin = Clock::now();
    kept = HWY_DYNAMIC_DISPATCH(fused_chains)(100000, &flops);
    best = std::max(best, flops / seconds_since(begin));
  }
  static_cast<void>(kept);
  return best;
}

double read_bytes_per_second(std::span<const float> memory) {
  const std::size_t passes = std::max<std::size_t>(1, (std::size_t{1} << 20) / std::max<std::size_t>(1, memory.size()));
  double best = 0;
  volatile float kept = 0;
  for (const auto start = Clock::now(); best == 0 || seconds_since(start) < kLongEnough;) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < passes; ++i) kept = HWY_DYNAMIC_DISPATCH(sum_of)(memory.data(), memory.size());
    best = std::max(best, static_cast<double>(passes * memory.size_bytes()) / seconds_since(begin));
  }
  static_cast<void>(kept);
  return best;
}

}  // namespace kizzasi::kernels
#endif
