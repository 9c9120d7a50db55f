// Speculative decoding: a cheap model drafts, the true one judges several tokens at once, and what comes out has exactly the law of the
// true one (Leviathan et al. 2023, Chen et al. 2023).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/rng.h"

namespace kizzasi {

// A drafted token stays with probability min(1, p / q); 1 where q is 0. Real-time: yes.
double acceptance(double p, double q) noexcept;
// What is drawn from where a draft is refused: max(p - q, 0), made to sum to 1. False: p = q, nothing is ever refused. Real-time: yes.
bool residual_law(std::span<const double> p, std::span<const double> q, std::span<double> out) noexcept;

// Writes the law of the next token after `sequence` into `p` (vocabulary), which sums to 1.
using NextLaw = std::function<Result<void>(std::span<const std::uint32_t> sequence, std::span<double> p)>;
// The laws after each of the last `count + 1` prefixes of `sequence`, the shortest first: what one pass of the true model gives for a draft
// of `count` tokens. `p`: (count + 1, vocabulary).
using DraftLaws = std::function<Result<void>(std::span<const std::uint32_t> sequence, std::size_t count, std::span<double> p)>;

struct SpeculativeOptions {
  std::size_t draft_tokens = 4;  // at least 1
};

struct SpeculativeRound {
  std::size_t accepted = 0;  // of the draft; one more token always follows
};

// Memory is taken by the constructor. Thread: one at a time.
class SpeculativeDecoder {
 public:
  SpeculativeDecoder(std::size_t vocabulary, const SpeculativeOptions& options);

  // One round: 1 to draft_tokens + 1 tokens are appended to `sequence`. Errors: those of the models; then `sequence` is as it was.
  Result<SpeculativeRound> round(std::vector<std::uint32_t>& sequence, const NextLaw& draft, const DraftLaws& target, Rng& rng);

 private:
  std::size_t vocabulary_, draft_tokens_;
  std::vector<double> draft_laws_, target_laws_, residual_;
};

}  // namespace kizzasi
