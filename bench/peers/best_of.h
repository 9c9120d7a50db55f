// How long a call takes, the same for ours and the peers in C++. Includes nothing of the project: peers are built outside of it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>

// Seconds: of several rounds the fastest, so that another's use of the core counts as little as can be.
inline double best_of(double seconds, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  call();
  const auto first = Clock::now();
  call();
  const auto calls = static_cast<std::size_t>(std::max(1.0, seconds / 10 / std::max(since(first), 1e-7)));
  double best = 1e9;
  for (const auto begin = Clock::now(); since(begin) < seconds;) {
    const auto round = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) call();
    best = std::min(best, since(round) / static_cast<double>(calls));
  }
  return best;
}
