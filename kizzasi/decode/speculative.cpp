#include "kizzasi/decode/speculative.h"

#include <algorithm>

#include "kizzasi/decode/token_choice.h"

namespace kizzasi {

double acceptance(double p, double q) noexcept { return q <= 0 || p >= q ? 1 : p / q; }

bool residual_law(std::span<const double> p, std::span<const double> q, std::span<double> out) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    out[i] = std::max(p[i] - q[i], 0.0);
    sum += out[i];
  }
  if (sum <= 1e-15) return false;  // rounding of two laws that are the same
  for (double& share : out) share /= sum;
  return true;
}

SpeculativeDecoder::SpeculativeDecoder(std::size_t vocabulary, const SpeculativeOptions& options)
    : vocabulary_(vocabulary),
      draft_tokens_(std::max<std::size_t>(1, options.draft_tokens)),
      draft_laws_(draft_tokens_ * vocabulary),
      target_laws_((draft_tokens_ + 1) * vocabulary),
      residual_(vocabulary) {}

Result<SpeculativeRound> SpeculativeDecoder::round(std::vector<std::uint32_t>& sequence, const NextLaw& draft, const DraftLaws& target,
                                                   Rng& rng) {
  const std::size_t begin = sequence.size();
  const auto law = [&](std::vector<double>& laws, std::size_t k) { return std::span(laws).subspan(k * vocabulary_, vocabulary_); };
  const auto back_out = [&](const Error& error) -> Result<SpeculativeRound> {
    sequence.resize(begin);
    return fail(error);
  };
  for (std::size_t k = 0; k < draft_tokens_; ++k) {
    if (auto drafted = draft(sequence, law(draft_laws_, k)); !drafted) return back_out(drafted.error());
    sequence.push_back(pick(law(draft_laws_, k), rng.uniform()));
  }
  if (auto judged = target(sequence, draft_tokens_, target_laws_); !judged) return back_out(judged.error());
  SpeculativeRound out;
  for (; out.accepted < draft_tokens_; ++out.accepted) {
    const std::size_t k = out.accepted;
    const std::uint32_t token = sequence[begin + k];
    if (rng.uniform() < acceptance(law(target_laws_, k)[token], law(draft_laws_, k)[token])) continue;
    sequence.resize(begin + k);
    const bool differs = residual_law(law(target_laws_, k), law(draft_laws_, k), residual_);
    sequence.push_back(pick(differs ? std::span<const double>(residual_) : law(target_laws_, k), rng.uniform()));
    return out;
  }
  sequence.push_back(pick(law(target_laws_, draft_tokens_), rng.uniform()));
  return out;
}

}  // namespace kizzasi
