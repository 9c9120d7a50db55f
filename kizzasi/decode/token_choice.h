// One token out of a law: by lot, in constant time, several without putting back, and where only some are allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/rng.h"

namespace kizzasi {

// The first token whose cumulative probability exceeds u in [0, 1). `p` sums to 1; what rounding leaves goes to the last token that can
// come. Real-time: yes.
std::uint32_t pick(std::span<const double> p, double u) noexcept;

// Draws from one law in constant time (Walker 1977, Vose 1991). Immutable. Thread: any. Real-time: all but `make`.
class AliasTable {
 public:
  // Errors: a probability that is negative or no number; a sum that is not 1 to 1e-9.
  static Result<AliasTable> make(std::span<const double> p);
  std::uint32_t draw(Rng& rng) const noexcept;
  std::span<const double> probability() const noexcept { return probability_; }
  std::span<const std::uint32_t> alias() const noexcept { return alias_; }

 private:
  std::vector<double> probability_;
  std::vector<std::uint32_t> alias_;
};

// k different tokens, each next one from what is left, by the largest logit - ln(-ln u) (Gumbel; Kool et al. 2019). `uniform`: one in
// (0, 1) a token. Fewer where fewer can come. `chosen` is overwritten.
void gumbel_top_k(std::span<const double> logits, std::span<const double> uniform, std::size_t k, std::vector<std::uint32_t>& chosen);

// --- Where only some are allowed ---------------------------------------------------------------------------------------------------------

enum class RejectionFallback : std::uint8_t {
  kBestAllowed,  // the most likely of the allowed
  kGreedy,       // the most likely of all, allowed or not: `allowed` of the choice says so
  kError,
};

struct RejectionOptions {
  std::size_t attempts = 100;
  RejectionFallback fallback = RejectionFallback::kBestAllowed;
  // What was refused once is not drawn again: the same law in fewer attempts.
  bool adaptive = false;
};

struct RejectionChoice {
  std::uint32_t token = 0;
  std::size_t attempts = 0;  // draws made
  bool allowed = true;       // false: only with kGreedy
  bool fell_back = false;
};

// Draws until what came is allowed: then its law is `p` on what is allowed, made to sum to 1. `scratch` (p.size()) is overwritten.
// Errors: nothing that can come is allowed (but for kGreedy); the attempts are spent (kError).
Result<RejectionChoice> draw_allowed(std::span<const double> p, const std::function<bool(std::uint32_t)>& allowed,
                                     const RejectionOptions& options, Rng& rng, std::span<double> scratch);

}  // namespace kizzasi
