#include "kizzasi/decode/token_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kizzasi {

std::uint32_t pick(std::span<const double> p, double u) noexcept {
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] <= 0) continue;
    sum += p[i];
    if (u < sum) return static_cast<std::uint32_t>(i);
    last = i;
  }
  return static_cast<std::uint32_t>(last);
}

Result<AliasTable> AliasTable::make(std::span<const double> p) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] >= 0)) {
      return fail({Fault::kBadInput, fmt::format("the probability {}", p[i]), fmt::format("token {}", i), "0 to 1", ""});
    }
    sum += p[i];
  }
  if (!(std::abs(sum - 1) <= 1e-9)) {
    return fail({Fault::kBadInput, fmt::format("probabilities that sum to {}", sum), "alias table", "1", "Divide them by their sum."});
  }
  AliasTable out;
  const std::size_t n = p.size();
  out.probability_.assign(n, 1);
  out.alias_.resize(n);
  std::iota(out.alias_.begin(), out.alias_.end(), 0u);
  std::vector<double> share(n);
  std::vector<std::uint32_t> poor, rich;
  for (std::uint32_t i = 0; i < n; ++i) {
    share[i] = p[i] * static_cast<double>(n);
    (share[i] < 1 ? poor : rich).push_back(i);
  }
  while (!poor.empty() && !rich.empty()) {
    const std::uint32_t from = rich.back(), to = poor.back();
    poor.pop_back();
    rich.pop_back();
    out.probability_[to] = share[to];
    out.alias_[to] = from;
    share[from] = share[from] + share[to] - 1;
    (share[from] < 1 ? poor : rich).push_back(from);
  }
  return out;
}

std::uint32_t AliasTable::draw(Rng& rng) const noexcept {
  const auto i = static_cast<std::uint32_t>(rng.below(alias_.size()));
  return rng.uniform() < probability_[i] ? i : alias_[i];
}

void gumbel_top_k(std::span<const double> logits, std::span<const double> uniform, std::size_t k, std::vector<std::uint32_t>& chosen) {
  chosen.clear();
  for (std::uint32_t i = 0; i < logits.size(); ++i) {
    if (std::isfinite(logits[i])) chosen.push_back(i);
  }
  const auto key = [&](std::uint32_t i) { return logits[i] - std::log(-std::log(uniform[i])); };
  k = std::min(k, chosen.size());
  std::partial_sort(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(k), chosen.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return key(a) > key(b); });
  chosen.resize(k);
}

Result<RejectionChoice> draw_allowed(std::span<const double> p, const std::function<bool(std::uint32_t)>& allowed,
                                     const RejectionOptions& options, Rng& rng, std::span<double> scratch) {
  RejectionChoice out;
  std::copy(p.begin(), p.end(), scratch.begin());
  double left = 1;
  while (out.attempts < options.attempts && left > 0) {
    out.token = pick(scratch, rng.uniform() * left);
    ++out.attempts;
    if (allowed(out.token)) return out;
    if (!options.adaptive) continue;
    scratch[out.token] = 0;
    left = std::accumulate(scratch.begin(), scratch.end(), 0.0);
  }
  out.fell_back = true;
  double most = 0;
  bool any = false;
  for (std::uint32_t i = 0; i < p.size(); ++i) {
    if (p[i] <= most || !allowed(i)) continue;
    most = p[i];
    any = true;
    out.token = i;
  }
  if (options.fallback == RejectionFallback::kGreedy) {
    out.token = static_cast<std::uint32_t>(std::max_element(p.begin(), p.end()) - p.begin());
    out.allowed = allowed(out.token);
    return out;
  }
  if (!any) {
    return fail({Fault::kBadInput, "nothing that can come is allowed", "rejection", "an allowed token of probability above 0", ""});
  }
  if (options.fallback == RejectionFallback::kError) {
    return fail(
        {Fault::kBadInput, fmt::format("no allowed token in {} attempts", out.attempts), "rejection", "a fallback, or more attempts", ""});
  }
  return out;
}

}  // namespace kizzasi
