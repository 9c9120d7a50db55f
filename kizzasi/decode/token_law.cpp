#include "kizzasi/decode/token_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kizzasi {
namespace {

constexpr double kOut = -std::numeric_limits<double>::infinity();
constexpr double kEps = std::numeric_limits<double>::epsilon();

}  // namespace

const char* name(TokenFilterKind kind) noexcept {
  constexpr const char* kNames[] = {"temperature", "top_k",      "top_p",     "min_p",    "typical",          "epsilon",
                                    "eta",         "repetition", "frequency", "presence", "no_repeated_ngram"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<TokenLaw> TokenLaw::make(std::size_t vocabulary, std::vector<TokenFilter> filters, TokenStep own) {
  if (vocabulary == 0) return fail({Fault::kBadUse, "a law over no tokens", "vocabulary", "at least 1", ""});
  for (const TokenFilter& filter : filters) {
    const double v = filter.value;
    const auto bad = [&](const char* expected) {
      return fail({Fault::kBadUse, fmt::format("the value {}", v), name(filter.kind), expected, ""});
    };
    switch (filter.kind) {
      case TokenFilterKind::kTemperature:
      case TokenFilterKind::kRepetition:
        if (!(v > 0 && std::isfinite(v))) return bad("above 0");
        break;
      case TokenFilterKind::kFrequency:
      case TokenFilterKind::kPresence:
        if (!std::isfinite(v)) return bad("a number");
        break;
      case TokenFilterKind::kTopK:
      case TokenFilterKind::kNoRepeatedNgram:
        if (filter.count == 0) return fail({Fault::kBadUse, "the count 0", name(filter.kind), "at least 1", ""});
        break;
      default:
        if (!(v >= 0 && v <= 1)) return bad("0 to 1");
    }
  }
  TokenLaw out;
  out.filters_ = std::move(filters);
  out.own_ = std::move(own);
  out.logits_.resize(vocabulary);
  out.probabilities_.resize(vocabulary);
  out.rank_.resize(vocabulary);
  out.order_.resize(vocabulary);
  return out;
}

Result<void> TokenLaw::apply(std::span<const float> logits, std::span<const std::uint32_t> history) {
  if (logits.size() != vocabulary()) return wrong_size(logits.size());
  std::copy(logits.begin(), logits.end(), rank_.begin());
  return apply(std::span<const double>(rank_.data(), logits.size()), history);
}

Result<void> TokenLaw::wrong_size(std::size_t size) const {
  return fail({Fault::kBadUse, fmt::format("{} logits", size), "logits", fmt::format("{}, one a token", vocabulary()), ""});
}

Result<void> TokenLaw::apply(std::span<const double> logits, std::span<const std::uint32_t> history) {
  if (logits.size() != vocabulary()) return wrong_size(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == -kOut) {
      return fail({Fault::kBadInput, std::isnan(logits[i]) ? "a logit is no number" : "a logit is infinite", fmt::format("token {}", i),
                   "numbers, or -inf for what cannot come", ""});
    }
  }
  std::copy(logits.begin(), logits.end(), logits_.begin());
  return finish(history);
}

Result<void> TokenLaw::finish(std::span<const std::uint32_t> history) {
  for (const TokenFilter& filter : filters_) run(filter, history);
  if (own_) {
    own_(logits_, history);
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      if (!std::isnan(logits_[i]) && logits_[i] != -kOut) continue;
      return fail({Fault::kBadInput, "a step of the caller's own left a logit that is no number", fmt::format("token {}", i),
                   "numbers, or -inf", ""});
    }
  }
  if (*std::max_element(logits_.begin(), logits_.end()) == kOut) {
    return fail(
        {Fault::kBadInput, "no token is left", "logits", "at least one that can come", "Loosen the filters, or what is forbidden."});
  }
  normalise();
  return {};
}

std::uint32_t TokenLaw::best() const noexcept {
  return static_cast<std::uint32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
}

void TokenLaw::normalise() noexcept {
  const double most = *std::max_element(logits_.begin(), logits_.end());
  double sum = 0;
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    probabilities_[i] = most == kOut ? 0 : std::exp(logits_[i] - most);
    sum += probabilities_[i];
  }
  if (sum > 0) {
    for (double& p : probabilities_) p /= sum;
  }
}

void TokenLaw::run(const TokenFilter& filter, std::span<const std::uint32_t> history) noexcept {
  const double v = filter.value;
  switch (filter.kind) {
    case TokenFilterKind::kTemperature:
      for (double& logit : logits_) logit /= v;
      break;
    case TokenFilterKind::kTopK: {
      if (filter.count >= logits_.size()) break;
      std::copy(logits_.begin(), logits_.end(), rank_.begin());
      const auto last = rank_.begin() + static_cast<std::ptrdiff_t>(filter.count - 1);
      std::nth_element(rank_.begin(), last, rank_.end(), std::greater<>());
      for (double& logit : logits_) logit = logit < *last ? kOut : logit;
      break;
    }
    case TokenFilterKind::kTopP:
      normalise();
      for (std::size_t i = 0; i < rank_.size(); ++i) rank_[i] = -probabilities_[i];
      keep_first(v);
      break;
    case TokenFilterKind::kTypical: {
      normalise();
      double entropy = 0;
      for (const double p : probabilities_) entropy -= p > 0 ? p * std::log(p) : 0;
      for (std::size_t i = 0; i < rank_.size(); ++i) {
        rank_[i] = probabilities_[i] > 0 ? std::abs(-std::log(probabilities_[i]) - entropy) : -kOut;
      }
      keep_first(v);
      break;
    }
    case TokenFilterKind::kMinP:
      normalise();
      keep(v * *std::max_element(probabilities_.begin(), probabilities_.end()));
      break;
    case TokenFilterKind::kEpsilon:
      normalise();
      keep(v);
      break;
    case TokenFilterKind::kEta: {
      normalise();
      double entropy = 0;
      for (const double p : probabilities_) entropy -= p > 0 ? p * std::log(p) : 0;
      keep(std::min(v, std::sqrt(v) * std::exp(-entropy)));
      break;
    }
    case TokenFilterKind::kRepetition:
    case TokenFilterKind::kPresence:
      for (std::size_t i = 0; i < history.size(); ++i) {
        const std::uint32_t token = history[i];
        if (token >= logits_.size() || std::find(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(i), token) !=
                                           history.begin() + static_cast<std::ptrdiff_t>(i)) {
          continue;  // once a token
        }
        double& logit = logits_[token];
        if (filter.kind == TokenFilterKind::kPresence) {
          logit -= v;
        } else {
          logit = logit > 0 ? logit / v : logit * v;
        }
      }
      break;
    case TokenFilterKind::kFrequency:
      for (const std::uint32_t token : history) {
        if (token < logits_.size()) logits_[token] -= v;
      }
      break;
    case TokenFilterKind::kNoRepeatedNgram:
      ban_ngrams(filter.count, history);
      break;
  }
}

// Tokens less likely than `least`, but never the most likely one.
void TokenLaw::keep(double least) noexcept {
  const double most = *std::max_element(probabilities_.begin(), probabilities_.end());
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (probabilities_[i] < least && probabilities_[i] < most) logits_[i] = kOut;
  }
}

// The first tokens by rank_, lowest first, until their probabilities reach `mass`; of equal rank the first by number.
void TokenLaw::keep_first(double mass) noexcept {
  std::iota(order_.begin(), order_.end(), 0u);
  std::sort(order_.begin(), order_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return rank_[a] != rank_[b] ? rank_[a] < rank_[b] : a < b; });
  double sum = 0;
  bool full = false;
  for (const std::uint32_t token : order_) {
    if (full) logits_[token] = kOut;
    sum += probabilities_[token];
    full = full || sum >= mass * (1 - kEps);
  }
}

void TokenLaw::ban_ngrams(std::size_t length, std::span<const std::uint32_t> history) noexcept {
  if (history.size() + 1 < length) return;
  const auto last = history.last(length - 1);
  for (std::size_t at = 0; at + length <= history.size(); ++at) {
    if (!std::equal(last.begin(), last.end(), history.begin() + static_cast<std::ptrdiff_t>(at))) continue;
    const std::uint32_t token = history[at + length - 1];
    if (token < logits_.size()) logits_[token] = kOut;
  }
}

}  // namespace kizzasi
