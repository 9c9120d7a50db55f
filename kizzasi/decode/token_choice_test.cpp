#include "kizzasi/decode/token_choice.h"

#include <map>
#include <numeric>

#include "kizzasi/decode/speculative.h"
#include "kizzasi/decode/token_cases_test.h"

namespace kizzasi {
namespace {

TEST(TokenChoice, PickFollowsTheLaw) {
  const std::vector<double> p{0, 0.25, 0, 0.5, 0.25, 0};
  EXPECT_EQ(pick(p, 0), 1u);
  EXPECT_EQ(pick(p, 0.25), 3u);
  EXPECT_EQ(pick(p, 0.7499), 3u);
  EXPECT_EQ(pick(p, 0.9999999), 4u);
  EXPECT_EQ(pick(p, 1), 4u);
  Rng rng(1);
  std::vector<double> counts(p.size());
  for (int i = 0; i < 100'000; ++i) ++counts[pick(p, rng.uniform())];
  double most = 0;
  EXPECT_LT(chi_square(counts, p, most), most);
}

TEST(TokenChoice, AliasTablesRebuildTheLaw) {
  for (const Json& one : sampling_cases("alias")) {
    const std::vector<double> p = numbers_of(*one.find("p"));
    const auto table = AliasTable::make(p);
    ASSERT_TRUE(table);
    const double n = static_cast<double>(p.size());
    std::vector<double> back(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      back[i] += table->probability()[i] / n;
      back[table->alias()[i]] += (1 - table->probability()[i]) / n;
    }
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(back[i], p[i], 1e-13);
    Rng rng(2);
    std::vector<double> counts(p.size());
    for (int i = 0; i < 50'000; ++i) ++counts[table->draw(rng)];
    double most = 0;
    EXPECT_LT(chi_square(counts, p, most), most);
  }
  EXPECT_EQ(AliasTable::make(std::vector<double>{0.5, 0.6}).error().text(),
            "alias table: probabilities that sum to 1.1 (expected 1). Divide them by their sum.");
  EXPECT_FALSE(AliasTable::make(std::vector<double>{1.5, -0.5}));
}

TEST(TokenChoice, GumbelsTrickChoosesWithoutPuttingBack) {
  for (const Json& one : sampling_cases("gumbel")) {
    const std::vector<double> logits = numbers_of(*one.find("logits")), inclusion = numbers_of(*one.find("inclusion"));
    const auto k = static_cast<std::size_t>(one.find("k")->integer());
    std::vector<std::uint32_t> chosen;
    gumbel_top_k(logits, numbers_of(*one.find("uniform")), k, chosen);
    EXPECT_EQ(chosen, tokens_of(*one.find("chosen")));
    Rng rng(3);
    std::vector<double> counts(logits.size()), uniform(logits.size());
    constexpr int kTurns = 20'000;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (double& u : uniform) u = std::max(rng.uniform(), 1e-300);
      gumbel_top_k(logits, uniform, k, chosen);
      for (const std::uint32_t token : chosen) ++counts[token];
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double p = inclusion[i];
      EXPECT_NEAR(counts[i] / kTurns, p, 5 * std::sqrt(p * (1 - p) / kTurns) + 1e-12);
    }
  }
}

TEST(TokenChoice, RejectionHasTheLawOfWhatIsAllowed) {
  for (const Json& one : sampling_cases("rejection")) {
    const std::vector<double> p = numbers_of(*one.find("p"));
    std::vector<bool> allowed;
    for (const Json& item : one.find("allowed")->items()) allowed.push_back(item.boolean());
    const auto may = [&](std::uint32_t token) { return allowed[token]; };
    RejectionOptions options;
    options.attempts = static_cast<std::size_t>(one.find("limit")->integer());
    std::vector<double> scratch(p.size());
    Rng rng(4);
    if (one.find("accepted_law")->is_null()) {
      EXPECT_FALSE(draw_allowed(p, may, options, rng, scratch));
      options.fallback = RejectionFallback::kGreedy;
      const auto choice = draw_allowed(p, may, options, rng, scratch);
      ASSERT_TRUE(choice);
      EXPECT_FALSE(choice->allowed);
      continue;
    }
    const std::vector<double> law = numbers_of(*one.find("accepted_law")), fallen = numbers_of(*one.find("law_with_best_allowed_fallback"));
    for (const bool adaptive : {false, true}) {
      options.adaptive = adaptive;
      std::vector<double> counts(p.size()), first(p.size());
      double within = 0, attempts = 0;
      constexpr int kTurns = 40'000;
      for (int turn = 0; turn < kTurns; ++turn) {
        const auto choice = draw_allowed(p, may, options, rng, scratch);
        ASSERT_TRUE(choice);
        ASSERT_TRUE(allowed[choice->token]);
        ++counts[choice->token];
        attempts += static_cast<double>(choice->attempts);
        if (choice->fell_back) continue;
        ++within;
        ++first[choice->token];
      }
      double most = 0;
      EXPECT_LT(chi_square(first, law, most), most) << one.find("id")->string() << adaptive;
      const double expected = one.find("accepted_within_limit")->number();
      if (!adaptive) {
        EXPECT_LT(chi_square(counts, fallen, most), most) << one.find("id")->string();
        EXPECT_NEAR(within / kTurns, expected, 5 * std::sqrt(expected * (1 - expected) / kTurns) + 1e-12);
      } else {
        EXPECT_GE(within / kTurns,
                  expected - 5 * std::sqrt(expected * (1 - expected) / kTurns) - 1e-12);  // what was refused is not drawn again
      }
      EXPECT_LE(attempts / kTurns, number_of(*one.find("expected_attempts")) * 1.05);
    }
  }
}

TEST(Speculative, AcceptsAndReplacesAsPublished) {
  for (const Json& one : sampling_cases("speculative")) {
    if (one.find("accept") == nullptr) continue;
    const std::vector<double> p = numbers_of(*one.find("target")), q = numbers_of(*one.find("draft")),
                              accept = numbers_of(*one.find("accept"));
    std::vector<double> residual(p.size());
    const bool differs = residual_law(p, q, residual);
    EXPECT_EQ(differs, !one.find("residual")->is_null());
    for (std::size_t i = 0; i < p.size(); ++i) {
      EXPECT_NEAR(acceptance(p[i], q[i]), accept[i], 1e-12);
      if (differs) {
        EXPECT_NEAR(residual[i], numbers_of(*one.find("residual"))[i], 1e-12);
      }
    }
    // Positions that are alike: the law of the number accepted, and of every token.
    SpeculativeDecoder decoder(p.size(), {static_cast<std::size_t>(one.find("draft_tokens")->integer())});
    const auto draft = [&](std::span<const std::uint32_t>, std::span<double> out) -> Result<void> {
      std::copy(q.begin(), q.end(), out.begin());
      return {};
    };
    const auto target = [&](std::span<const std::uint32_t>, std::size_t count, std::span<double> out) -> Result<void> {
      for (std::size_t k = 0; k <= count; ++k) std::copy(p.begin(), p.end(), out.begin() + static_cast<std::ptrdiff_t>(k * p.size()));
      return {};
    };
    const std::vector<double> accepted = numbers_of(*one.find("accepted_count"));
    std::vector<double> rounds(accepted.size()), tokens(p.size());
    Rng rng(6);
    for (int turn = 0; turn < 20'000; ++turn) {
      std::vector<std::uint32_t> sequence;
      const auto round = decoder.round(sequence, draft, target, rng);
      ASSERT_TRUE(round);
      ASSERT_EQ(sequence.size(), round->accepted + 1);
      ++rounds[round->accepted];
      for (const std::uint32_t token : sequence) ++tokens[token];
    }
    double most = 0;
    EXPECT_LT(chi_square(rounds, accepted, most), most) << one.find("id")->string();
    // Tokens of one round are as many as they are for what they are, so only the first of each has the law of the target by itself.
  }
}

TEST(Speculative, WhatComesOutHasExactlyTheLawOfTheTarget) {
  for (const Json& one : sampling_cases("speculative")) {
    if (one.find("emitted") == nullptr) continue;
    const auto rows = [&](const char* key) {
      std::vector<std::vector<double>> out;
      for (const Json& row : one.find(key)->items()) out.push_back(numbers_of(row));
      return out;
    };
    const auto target_of = rows("target"), draft_of = rows("draft");
    const auto start = static_cast<std::uint32_t>(one.find("start")->integer());
    const std::size_t vocabulary = target_of.size(), count = static_cast<std::size_t>(one.find("draft_tokens")->integer());
    const auto last = [&](std::span<const std::uint32_t> sequence) { return sequence.empty() ? start : sequence.back(); };
    const auto draft = [&](std::span<const std::uint32_t> sequence, std::span<double> out) -> Result<void> {
      std::copy_n(draft_of[last(sequence)].begin(), vocabulary, out.begin());
      return {};
    };
    const auto target = [&](std::span<const std::uint32_t> sequence, std::size_t drafted, std::span<double> out) -> Result<void> {
      for (std::size_t k = 0; k <= drafted; ++k) {
        const auto prefix = sequence.first(sequence.size() - drafted + k);
        std::copy_n(target_of[last(prefix)].begin(), vocabulary, out.begin() + static_cast<std::ptrdiff_t>(k * vocabulary));
      }
      return {};
    };
    SpeculativeDecoder decoder(vocabulary, {count});
    Rng rng(7);
    std::map<std::vector<std::uint32_t>, double> seen;
    constexpr int kTurns = 50'000;
    for (int turn = 0; turn < kTurns; ++turn) {
      std::vector<std::uint32_t> sequence;
      ASSERT_TRUE(decoder.round(sequence, draft, target, rng));
      ++seen[sequence];
    }
    std::vector<double> counts, law;
    for (const Json& item : one.find("emitted")->items()) {
      counts.push_back(seen[tokens_of(item.items()[0])]);
      law.push_back(item.items()[1].number());
    }
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0), kTurns);  // nothing else came
    double most = 0;
    EXPECT_LT(chi_square(counts, law, most), most) << one.find("id")->string();
    // A long stream, judged by pairs of neighbours: the law of the target's chain.
    std::vector<double> pairs(vocabulary * vocabulary), totals(vocabulary);
    std::vector<std::uint32_t> sequence;
    const std::size_t length = std::getenv("KIZZASI_CASES") != nullptr ? std::strtoull(std::getenv("KIZZASI_CASES"), nullptr, 10) : 50'000;
    while (sequence.size() < length) ASSERT_TRUE(decoder.round(sequence, draft, target, rng));
    std::uint32_t before = start;
    for (const std::uint32_t token : sequence) {
      ++pairs[before * vocabulary + token];
      before = token;
    }
    for (std::size_t row = 0; row < vocabulary; ++row) {
      const std::vector<double> of(pairs.begin() + static_cast<std::ptrdiff_t>(row * vocabulary),
                                   pairs.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocabulary));
      if (std::accumulate(of.begin(), of.end(), 0.0) == 0) continue;
      EXPECT_LT(chi_square(of, target_of[row], most), most) << one.find("id")->string() << " after " << row;
    }
  }
}

TEST(Speculative, AFailingModelLeavesTheSequenceAsItWas) {
  SpeculativeDecoder decoder(2, {3});
  int calls = 0;
  const auto draft = [&](std::span<const std::uint32_t>, std::span<double> out) -> Result<void> {
    if (++calls == 3) return fail({Fault::kBadInput, "no more", "draft", "", ""});
    out[0] = out[1] = 0.5;
    return {};
  };
  const auto target = [](std::span<const std::uint32_t>, std::size_t, std::span<double>) -> Result<void> { return {}; };
  std::vector<std::uint32_t> sequence{1, 0};
  Rng rng(8);
  EXPECT_EQ(decoder.round(sequence, draft, target, rng).error().what, "no more");
  EXPECT_EQ(sequence, (std::vector<std::uint32_t>{1, 0}));
}

}  // namespace
}  // namespace kizzasi
