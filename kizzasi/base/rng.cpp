#include "kizzasi/base/rng.h"

#include <bit>
#include <cmath>

namespace kizzasi {
namespace {

std::uint64_t splitmix(std::uint64_t& x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(std::uint64_t seed) noexcept : state_{} {
  for (auto& word : state_) word = splitmix(seed);
}

Rng Rng::named(std::string_view purpose) const noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return numbered(hash);
}

Rng Rng::numbered(std::uint64_t index) const noexcept {
  std::uint64_t mix = index;
  return Rng(state_[0] ^ std::rotl(state_[1], 17) ^ std::rotl(state_[2], 31) ^ splitmix(mix) ^ std::rotl(state_[3], 47));
}

std::uint64_t Rng::bits() noexcept {
  auto& s = state_;
  const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double Rng::uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }

std::uint64_t Rng::below(std::uint64_t n) noexcept {
  const std::uint64_t reject = (0 - n) % n;  // the incomplete block at the start of the range
  std::uint64_t draw = bits();
  while (draw < reject) draw = bits();
  return draw % n;
}

double Rng::normal() noexcept {
  for (;;) {
    const double u = 2 * uniform() - 1, v = 2 * uniform() - 1, s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
  }
}

double Rng::gamma(double shape) noexcept {
  if (shape < 1) return gamma(shape + 1) * std::pow(1 - uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(), t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t;
    if (std::log(1 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace kizzasi
