#include "kizzasi/decode/token_law.h"

#include <algorithm>
#include <numeric>

#include "kizzasi/base/rng.h"
#include "kizzasi/decode/token_cases_test.h"

namespace kizzasi {
namespace {

// The filters of a published case; one of its steps is two of ours.
std::vector<TokenFilter> filters_of(const Json& steps) {
  std::vector<TokenFilter> out;
  for (const Json& step : steps.items()) {
    const std::string& op = step.find("op")->string();
    const auto value = [&](const char* key) { return step.find(key)->number(); };
    const auto count = [&](const char* key) { return static_cast<std::size_t>(step.find(key)->integer()); };
    if (op == "temperature") out.push_back({TokenFilterKind::kTemperature, value("t")});
    if (op == "top_k") out.push_back({TokenFilterKind::kTopK, 1, count("k")});
    if (op == "top_p") out.push_back({TokenFilterKind::kTopP, value("p")});
    if (op == "min_p") out.push_back({TokenFilterKind::kMinP, value("p")});
    if (op == "typical") out.push_back({TokenFilterKind::kTypical, value("mass")});
    if (op == "epsilon") out.push_back({TokenFilterKind::kEpsilon, value("eps")});
    if (op == "eta") out.push_back({TokenFilterKind::kEta, value("eps")});
    if (op == "repetition") out.push_back({TokenFilterKind::kRepetition, value("penalty")});
    if (op == "frequency_presence") {
      out.push_back({TokenFilterKind::kFrequency, value("frequency")});
      out.push_back({TokenFilterKind::kPresence, value("presence")});
    }
    if (op == "no_repeat_ngram") out.push_back({TokenFilterKind::kNoRepeatedNgram, 1, count("n")});
  }
  return out;
}

bool near(std::span<const double> ours, const std::vector<double>& theirs) {
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                    [](double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(1.0, std::abs(b)); });
}

TEST(TokenLaw, EveryPublishedFilterLeavesWhatItShould) {
  for (const Json& one : sampling_cases("filters")) {
    const std::string id = one.find("id")->string();
    const std::vector<double> logits = numbers_of(*one.find("logits"));
    auto law = TokenLaw::make(logits.size(), filters_of(*one.find("steps")));
    ASSERT_TRUE(law) << id << law.error().text();
    const auto applied = law->apply(std::span<const double>(logits), tokens_of(*one.find("history")));
    if (one.find("probabilities")->is_null()) {
      EXPECT_FALSE(applied) << id;
      continue;
    }
    ASSERT_TRUE(applied) << id << applied.error().text();
    const bool as_told = near(law->probabilities(), numbers_of(*one.find("probabilities")));
    const Json* definition = one.find("by_definition");
    const bool as_defined = definition != nullptr && near(law->probabilities(), numbers_of(*definition));
    EXPECT_TRUE(as_told || as_defined) << id << ": " << fmt::format("{}", fmt::join(law->probabilities(), ", "));
  }
}

TEST(TokenLaw, WhatStaysSumsToOneAndTheBestStays) {
  Rng rng(5);
  for (int turn = 0; turn < 500; ++turn) {
    std::vector<double> logits(2 + rng.below(40));
    for (double& x : logits) x = rng.below(8) == 0 ? -std::numeric_limits<double>::infinity() : 4 * rng.normal();
    logits[rng.below(logits.size())] = 1;
    std::vector<TokenFilter> filters;
    for (std::size_t k = 1 + rng.below(4); k > 0; --k) {
      const double value = 0.05 + 0.9 * rng.uniform();
      filters.push_back({static_cast<TokenFilterKind>(rng.below(7)), value, 1 + rng.below(5)});
    }
    auto law = TokenLaw::make(logits.size(), filters);
    ASSERT_TRUE(law);
    ASSERT_TRUE(law->apply(std::span<const double>(logits), {}));
    EXPECT_NEAR(std::accumulate(law->probabilities().begin(), law->probabilities().end(), 0.0), 1, 1e-12);
    const auto best = static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const bool typical =
        std::any_of(filters.begin(), filters.end(), [](const TokenFilter& f) { return f.kind == TokenFilterKind::kTypical; });
    if (!typical) {
      EXPECT_EQ(law->best(), best);
      EXPECT_GT(law->probabilities()[best], 0);
    }
  }
}

TEST(TokenLaw, ACallersOwnStepSeesTheHistory) {
  auto law = TokenLaw::make(3, {}, [](std::span<double> logits, std::span<const std::uint32_t> history) {
    for (const std::uint32_t token : history) logits[token] = -std::numeric_limits<double>::infinity();
  });
  ASSERT_TRUE(law);
  ASSERT_TRUE(law->apply(std::vector<float>{1, 2, 3}, std::vector<std::uint32_t>{2}));
  EXPECT_EQ(law->best(), 1u);
  EXPECT_EQ(law->probabilities()[2], 0);
  EXPECT_EQ(law->apply(std::vector<float>{1, 2, 3}, std::vector<std::uint32_t>{0, 1, 2}).error().what, "no token is left");
}

TEST(TokenLaw, SaysWhatIsWrong) {
  const auto told = [](TokenFilter filter) {
    const auto law = TokenLaw::make(3, {filter});
    return law ? "made" : law.error().text();
  };
  EXPECT_EQ(told({TokenFilterKind::kTemperature, 0}), "temperature: the value 0 (expected above 0).");
  EXPECT_EQ(told({TokenFilterKind::kTopP, 1.5}), "top_p: the value 1.5 (expected 0 to 1).");
  EXPECT_EQ(told({TokenFilterKind::kTopK, 1, 0}), "top_k: the count 0 (expected at least 1).");
  auto law = TokenLaw::make(2, {});
  EXPECT_EQ(law->apply(std::vector<double>{0, std::nan("")}, {}).error().where, "token 1");
  EXPECT_EQ(law->apply(std::vector<float>{0, 1, 2}, {}).error().text(), "logits: 3 logits (expected 2, one a token).");
  EXPECT_FALSE(TokenLaw::make(0, {}));
}

}  // namespace
}  // namespace kizzasi
