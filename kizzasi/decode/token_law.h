// What comes next, as a law over tokens: logits made probabilities, and the usual ways to keep only some of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

enum class TokenFilterKind : std::uint8_t {
  kTemperature,     // logits / value, value > 0
  kTopK,            // every token from the count-th probability up; ties may be more
  kTopP,            // the fewest of the most likely tokens whose sum reaches value (Holtzman et al. 2020)
  kMinP,            // p >= value times the largest (Nguyen et al. 2024)
  kTypical,         // nearest to the entropy first, until their sum reaches value (Meister et al. 2023)
  kEpsilon,         // p >= value (Hewitt et al. 2022)
  kEta,             // p >= min(value, sqrt(value) e^-H) (Hewitt et al. 2022)
  kRepetition,      // of tokens in the history: logits > 0 divided by value, others multiplied (Keskar et al. 2019)
  kFrequency,       // minus value for each time that a token stands in the history
  kPresence,        // minus value for tokens that stand in the history
  kNoRepeatedNgram  // no token that would complete count tokens which stand in the history already
};

struct TokenFilter {
  TokenFilterKind kind = TokenFilterKind::kTemperature;
  double value = 1;
  std::size_t count = 1;
};

// A caller's own step: reads the history, changes the logits; -inf takes a token out.
using TokenStep = std::function<void(std::span<double> logits, std::span<const std::uint32_t> history)>;

// Filters in their order, each over what those before left. Of top_p, min_p, epsilon, eta and typical at least the most likely token stays.
// Memory is taken by `prepare`. Thread: one at a time. Real-time: `apply`, but for a caller's own steps.
class TokenLaw {
 public:
  // Errors: a value out of its range, with the filter's name; no vocabulary.
  static Result<TokenLaw> make(std::size_t vocabulary, std::vector<TokenFilter> filters, TokenStep own = {});

  // `logits` (vocabulary): -inf for tokens that cannot come. Errors: a logit that is NaN or +inf, with its token; nothing is left.
  Result<void> apply(std::span<const float> logits, std::span<const std::uint32_t> history);
  Result<void> apply(std::span<const double> logits, std::span<const std::uint32_t> history);

  // Of the last apply: they sum to 1; 0 where a token was taken out.
  std::span<const double> probabilities() const noexcept { return probabilities_; }
  // Logits after all filters, up to a constant.
  std::span<const double> logits() const noexcept { return logits_; }
  std::size_t vocabulary() const noexcept { return logits_.size(); }
  // The most likely; of equal ones the first.
  std::uint32_t best() const noexcept;

 private:
  void run(const TokenFilter& filter, std::span<const std::uint32_t> history) noexcept;
  void normalise() noexcept;
  void keep(double least) noexcept;
  void keep_first(double mass) noexcept;
  void ban_ngrams(std::size_t length, std::span<const std::uint32_t> history) noexcept;
  Result<void> wrong_size(std::size_t size) const;
  Result<void> finish(std::span<const std::uint32_t> history);

  std::vector<TokenFilter> filters_;
  TokenStep own_;
  std::vector<double> logits_, probabilities_, rank_;
  std::vector<std::uint32_t> order_;
};

const char* name(TokenFilterKind kind) noexcept;

}  // namespace kizzasi
