// Random numbers that are the same on every machine: xoshiro256++ (Blackman and Vigna 2021), seeded through splitmix64.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace kizzasi {

// Plain bytes: copy it to fork a sequence, save it to resume one. The standard library's distributions differ between vendors; these do
// not. Real-time: yes. Thread: one stream.
class Rng {
 public:
  explicit Rng(std::uint64_t seed = 0) noexcept;

  // An independent generator for a named purpose ("init", "shuffle"): adding a use of one never shifts the numbers of another.
  Rng named(std::string_view purpose) const noexcept;
  // An independent generator for the index-th of many equal uses.
  Rng numbered(std::uint64_t index) const noexcept;

  std::uint64_t bits() noexcept;
  // In [0, 1), 53 bits.
  double uniform() noexcept;
  double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  // In [0, n) without bias; n >= 1.
  std::uint64_t below(std::uint64_t n) noexcept;
  // Standard normal, by the polar method (the second value of a pair is dropped, so the state stays four words).
  double normal() noexcept;
  // Gamma of shape > 0 and scale 1 (Marsaglia and Tsang 2000).
  double gamma(double shape) noexcept;

  friend bool operator==(const Rng&, const Rng&) = default;

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace kizzasi
