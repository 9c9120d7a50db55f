// usage: kizzasi_convolution [BATCH]
// Training with long windows, forward and backward: a diagonal system (S4D, DSS) and one diagonal plus rank one (S4), as a recurrence and
// as a convolution through Fourier transforms. Nanoseconds a frame and channel; the least of several runs. Last the scan of states with
// inputs of their own (S5, LRU): a transform of those, complex as they are, would cost twice what it does a channel above.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kizzasi/autograd/causal_convolution.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/base/rng.h"

namespace {

using namespace kizzasi;
using namespace kizzasi::autograd;

constexpr std::size_t kChannels = 32;

template <typename Build>
double seconds_of(const Build& build) {
  Tape<float> tape;
  double least = 1e30;
  for (int run = 0; run < 5; ++run) {
    tape.clear();
    const auto begin = std::chrono::steady_clock::now();
    const Var<float> y = build(tape);
    tape.backward(sum(square(y)));
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

}  // namespace

int main(int count, char** words) {
  const FloatEnv env;
  const std::size_t batch = count > 1 ? std::max<std::size_t>(1, std::strtoull(words[1], nullptr, 10)) : 8;
  std::printf("batch %zu, %zu channels: ns a frame and channel, forward and backward\n", batch, kChannels);
  std::printf("%8s %7s %14s %14s %14s %14s\n", "time", "states", "diagonal scan", "convolution", "dplr scan", "convolution");
  Rng rng(1);
  for (std::size_t time = 256; time <= 16384; time *= 2) {
    for (const std::size_t states : {8u, 16u, 32u}) {
      std::vector<float> x(batch * time * kChannels), a(2 * states * kChannels), c(2 * states * kChannels), p(c.size()), d(kChannels);
      for (auto* values : {&x, &c, &d}) {
        for (float& v : *values) v = static_cast<float>(rng.normal());
      }
      for (float& v : p) v = static_cast<float>(0.05 * rng.normal());
      for (std::size_t i = 0; i < states * kChannels; ++i) {
        const double radius = rng.uniform(0.9, 0.999), angle = rng.uniform(0, 3);
        a[i] = static_cast<float>(radius * std::cos(angle));
        a[states * kChannels + i] = static_cast<float>(radius * std::sin(angle));
      }
      const auto with = [&](Tape<float>& tape, auto use) {
        const Dims planes{2, states, kChannels};
        const auto leaf = [&](const Dims& dims, const std::vector<float>& v) { return tape.leaf(dims, std::span<const float>(v)); };
        return use(leaf({batch, time, kChannels}, x), leaf(planes, a), leaf(planes, c), leaf(planes, p), leaf({kChannels}, d));
      };
      using V = Var<float>;
      const double per = 1e9 / static_cast<double>(batch * time * kChannels);
      const double ds =
          per * seconds_of([&](Tape<float>& t) { return with(t, [](V u, V i, V o, V, V f) { return diagonal_scan(u, i, o, f); }); });
      const double dc =
          per * seconds_of([&](Tape<float>& t) { return with(t, [](V u, V i, V o, V, V f) { return diagonal_convolution(u, i, o, f); }); });
      const double rs = per * seconds_of([&](Tape<float>& t) {
                          return with(t, [](V u, V i, V o, V q, V f) { return dplr_scan(u, DplrCoefficients<float>{i, o, o, q, q, f}); });
                        });
      const double rc =
          per * seconds_of([&](Tape<float>& t) {
            return with(t, [](V u, V i, V o, V q, V f) { return dplr_convolution(u, DplrCoefficients<float>{i, o, o, q, q, f}); });
          });
      std::printf("%8zu %7zu %14.1f %14.1f %14.1f %14.1f\n", time, states, ds, dc, rs, rc);
      std::fflush(stdout);
    }
  }
  for (const std::size_t time : {1024u, 16384u}) {
    constexpr std::size_t kStates = 64;
    std::vector<float> x(batch * time * 2 * kStates), a(2 * kStates, 0.6f), b(2 * kStates, 0.5f);
    for (float& v : x) v = static_cast<float>(rng.normal());
    const double seconds = seconds_of([&](Tape<float>& tape) {
      const auto leaf = [&](const Dims& dims, const std::vector<float>& v) { return tape.leaf(dims, std::span<const float>(v)); };
      return complex_scan(leaf({batch, time, 2 * kStates}, x), leaf({2, kStates}, a), leaf({2, kStates}, b));
    });
    std::printf("complex scan, %zu frames: %.1f ns a frame and state\n", time, 1e9 * seconds / static_cast<double>(batch * time * kStates));
  }
  return 0;
}
