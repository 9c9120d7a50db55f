#include "kizzasi/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kizzasi/tokenizer/g711.h"
#include "kizzasi/tokenizer/linear_quantizer.h"
#include "kizzasi/tokenizer/mu_law.h"

namespace kizzasi {
namespace {

constexpr std::array<TokenizerKind, 6> kKinds{{
    {"mu_law", "companded by mu-law, levels at whole steps of half the range",
     [](const TokenizerConfig& c) -> std::unique_ptr<SignalTokenizer> {
       return c.mu > 0 ? std::make_unique<MuLaw>(MuLaw::with_mu(c.mu)) : std::make_unique<MuLaw>(static_cast<int>(c.bits));
     }},
    {"mu_law_torchaudio", "companded by mu-law, levels as WaveNet and torchaudio have them",
     [](const TokenizerConfig& c) -> std::unique_ptr<SignalTokenizer> {
       return c.mu > 0 ? std::make_unique<MuLaw>(MuLaw::with_mu(c.mu, MuLawRule::kTorchaudio))
                       : std::make_unique<MuLaw>(static_cast<int>(c.bits), MuLawRule::kTorchaudio);
     }},
    {"g711_mu_law", "the telephone's mu-law, exactly as ITU-T G.711 has it",
     [](const TokenizerConfig&) -> std::unique_ptr<SignalTokenizer> { return std::make_unique<G711>(G711Law::kMu); }},
    {"g711_a_law", "the telephone's A-law, exactly as ITU-T G.711 has it",
     [](const TokenizerConfig&) -> std::unique_ptr<SignalTokenizer> { return std::make_unique<G711>(G711Law::kA); }},
    {"linear", "equal steps from min to max, both ends among the levels",
     [](const TokenizerConfig& c) -> std::unique_ptr<SignalTokenizer> {
       return std::make_unique<LinearQuantizer>(c.min, c.max, static_cast<int>(c.bits));
     }},
    {"linear_rise", "equal cells from min to max, levels in their middles",
     [](const TokenizerConfig& c) -> std::unique_ptr<SignalTokenizer> {
       return std::make_unique<LinearQuantizer>(c.min, c.max, static_cast<int>(c.bits), LinearLevels::kRise);
     }},
}};

}  // namespace

Result<std::vector<Token>> Quantizer::encode(std::span<const double> signal) const {
  std::vector<Token> tokens(signal.size());
  for (std::size_t i = 0; i < signal.size(); ++i) {
    const auto token = quantize(signal[i]);
    if (!token) {
      return fail({Fault::kBadInput, "a value is no number", fmt::format("value {}", i), "numbers",
                   "Fill missing values before, or leave their frames out: no token stands for them."});
    }
    tokens[i] = *token;
  }
  return tokens;
}

Result<std::vector<double>> Quantizer::decode(std::span<const Token> tokens) const {
  std::vector<double> signal(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= levels()) {
      return fail({Fault::kBadInput, fmt::format("{} has no token {}", name(), tokens[i]), fmt::format("token {}", i),
                   fmt::format("0 to {}", levels() - 1), ""});
    }
    signal[i] = dequantize(tokens[i]);
  }
  return signal;
}

void TokenizerConfig::fields(FieldVisitor& visit) {
  FieldInfo kind{"tokenizer", "How values become tokens."};
  for (const TokenizerKind& one : kKinds) kind.choices.push_back(one.name);
  visit.field(kind, tokenizer);
  visit.field({"bits", "Of one token: 2^bits levels. G.711 has 8.", 1, 16}, bits);
  visit.field({"mu", "Of mu-law: mu + 1 levels; 0 means 2^bits - 1.", 0, 65535}, mu);
  visit.field({"min", "Of linear levels: the lowest value."}, min);
  visit.field({"max", "Of linear levels: the highest value."}, max);
}

Result<void> TokenizerConfig::check(std::string_view where) const {
  const auto bad = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (tokenizer.starts_with("linear") && !(min < max && std::isfinite(max - min))) {
    return bad(fmt::format("levels from {} to {}", min, max), "min below max, both finite");
  }
  if (tokenizer.starts_with("g711") && bits != 8) return bad(fmt::format("G.711 with {} bits", bits), "8 bits");
  return {};
}

std::span<const TokenizerKind> tokenizers() { return kKinds; }

Result<std::unique_ptr<SignalTokenizer>> make_tokenizer(const TokenizerConfig& config, std::string_view where) {
  if (auto checked = check_fields(config, where); !checked) return fail(checked.error());
  if (auto checked = config.check(where); !checked) return fail(checked.error());
  const auto* kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const TokenizerKind& k) { return k.name == config.tokenizer; });
  return kind->make(config);
}

}  // namespace kizzasi
