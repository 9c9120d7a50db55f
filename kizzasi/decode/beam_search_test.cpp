#include "kizzasi/decode/beam_search.h"

#include <algorithm>
#include <map>

#include "kizzasi/base/rng.h"
#include "kizzasi/decode/token_cases_test.h"

namespace kizzasi {
namespace {

using Sequence = std::vector<std::uint32_t>;

// A chain whose next token depends on the last few; before the first there were zeros.
struct Chain {
  std::size_t vocabulary = 0, order = 0;
  std::map<Sequence, std::vector<double>> table;

  explicit Chain(const Json& json)
      : vocabulary(static_cast<std::size_t>(json.find("vocabulary")->integer())),
        order(static_cast<std::size_t>(json.find("order")->integer())) {
    for (const Json& row : json.find("log_table")->items()) table[tokens_of(row.items()[0])] = numbers_of(row.items()[1]);
  }

  double log_p(const Sequence& tokens) const {
    double sum = 0;
    std::vector<double> row(vocabulary);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_TRUE(next()(std::span(tokens).first(i), row));
      sum += row[tokens[i]];
    }
    return sum;
  }

  NextLogProbabilities next() const {
    return [this](std::span<const std::uint32_t> sequence, std::span<double> out) -> Result<void> {
      Sequence key(order, 0);
      key.insert(key.end(), sequence.begin(), sequence.end());
      key.erase(key.begin(), key.end() - static_cast<std::ptrdiff_t>(order));
      std::copy(table.at(key).begin(), table.at(key).end(), out.begin());
      return {};
    };
  }
};

void same(const std::vector<Beam>& ours, const Json& theirs, const std::string& what, double tolerance = 1e-12) {
  ASSERT_EQ(ours.size(), theirs.items().size()) << what;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double score = theirs.items()[i].items()[1].number();
    EXPECT_NEAR(ours[i].score, score, tolerance * std::max(1.0, std::abs(score))) << what << " " << i;
    if (tolerance < 1e-9) {  // which of equal sequences is kept is decided by rounding where they compute in floats
      EXPECT_EQ(ours[i].tokens, tokens_of(theirs.items()[i].items()[0])) << what << " " << i;
    }
  }
}

std::function<bool(std::span<const std::uint32_t>)> rule_of(const std::string& rule) {
  if (rule == "no two equal neighbours") {
    return [](std::span<const std::uint32_t> q) { return std::adjacent_find(q.begin(), q.end()) == q.end(); };
  }
  if (rule == "never decreasing") return [](std::span<const std::uint32_t> q) { return std::is_sorted(q.begin(), q.end()); };
  if (rule.starts_with("first token 0")) return [](std::span<const std::uint32_t> q) { return q.size() == 1 && q[0] == 0; };
  const auto banned = static_cast<std::uint32_t>(rule[6] - '0');
  return [banned](std::span<const std::uint32_t> q) { return std::find(q.begin(), q.end(), banned) == q.end(); };
}

TEST(BeamSearch, PlainAndDiverseBeamsEqualThePublishedOnes) {
  for (const Json& one : sampling_cases("beams")) {
    const Chain chain(one);
    const std::string id = one.find("id")->string();
    BeamOptions options;
    options.length = static_cast<std::size_t>(one.find("length")->integer());
    for (const auto& [width, beams] : one.find("beam")->members()) {
      options.width = std::stoul(width);
      const auto found = beam_search(options, chain.vocabulary, chain.next());
      ASSERT_TRUE(found) << found.error().text();
      same(found->front(), beams, id + " width " + width);
    }
    // Wide enough, it finds the best of all.
    options.width = 1;
    for (std::size_t i = 0; i < options.length; ++i) options.width *= chain.vocabulary;
    auto all = beam_search(options, chain.vocabulary, chain.next());
    ASSERT_TRUE(all);
    all->front().resize(one.find("best")->items().size());
    same(all->front(), *one.find("best"), id + " best");
    for (const Json& diverse : one.find("diverse")->items()) {
      BeamOptions groups = options;
      groups.width = static_cast<std::size_t>(diverse.find("width")->integer());
      groups.groups = static_cast<std::size_t>(diverse.find("groups")->integer());
      groups.diversity = diverse.find("diversity")->number();
      const auto found = beam_search(groups, chain.vocabulary, chain.next());
      ASSERT_TRUE(found);
      for (std::size_t g = 0; g < groups.groups; ++g) same((*found)[g], diverse.find("groups_found")->items()[g], id + " diverse");
    }
  }
}

TEST(BeamSearch, UnderARuleNoBeamBreaksIt) {
  for (const Json& one : sampling_cases("beams")) {
    const Chain chain(one);
    for (const Json& ruled : one.find("constrained")->items()) {
      const std::string what = one.find("id")->string() + " " + ruled.find("rule")->string();
      BeamOptions options;
      options.length = static_cast<std::size_t>(one.find("length")->integer());
      options.width = 2;
      const BeamRules rules{rule_of(ruled.find("rule")->string()), {}};
      const auto found = beam_search(options, chain.vocabulary, chain.next(), rules);
      if (ruled.find("beam_2")->items().empty()) {
        ASSERT_FALSE(found) << what;
        EXPECT_EQ(found.error().what, "no allowed sequence was found with 2 beams");
        continue;
      }
      ASSERT_TRUE(found) << what << found.error().text();
      same(found->front(), *ruled.find("beam_2"), what);
    }
  }
}

TEST(BeamSearch, WithAnEndTokenTheBestAreThoseOfAllThatEnd) {
  for (const Json& one : sampling_cases("beams")) {
    const Chain chain(one);
    for (const Json& ended : one.find("with_end")->items()) {
      const std::string what = fmt::format("{} penalty {}", one.find("id")->string(), ended.find("length_penalty")->number());
      BeamOptions options;
      options.length = static_cast<std::size_t>(one.find("length")->integer());
      options.end = static_cast<std::uint32_t>(ended.find("eos")->integer());
      options.length_penalty = ended.find("length_penalty")->number();
      for (const std::size_t width : {2, 4}) {
        const Json* theirs = ended.find(fmt::format("transformers_{}", width));
        if (theirs == nullptr) continue;
        options.width = width;
        const auto found = beam_search(options, chain.vocabulary, chain.next());
        ASSERT_TRUE(found);
        same(found->front(), *theirs, fmt::format("{} width {}", what, width), 1e-5);
        for (const Beam& beam : found->front()) {
          EXPECT_NEAR(beam.score, chain.log_p(beam.tokens) / std::pow(beam.tokens.size(), options.length_penalty), 1e-12);
        }
      }
      options.early_stopping = false;
      options.width = 1;
      for (std::size_t i = 0; i < options.length; ++i) options.width *= chain.vocabulary;
      auto all = beam_search(options, chain.vocabulary, chain.next());
      ASSERT_TRUE(all);
      all->front().resize(ended.find("best")->items().size());
      same(all->front(), *ended.find("best"), what);
    }
  }
}

// Rules of random automata: a token is allowed where the automaton has an arrow for it.
TEST(BeamSearch, NoBeamLeavesARandomAutomaton) {
  const char* cases = std::getenv("KIZZASI_CASES");
  const std::size_t wanted = cases == nullptr ? 2'000 : std::strtoull(cases, nullptr, 10);
  Rng rng(9);
  std::size_t found_some = 0;
  for (std::size_t turn = 0; turn < wanted; ++turn) {
    const std::size_t states = 1 + rng.below(4), vocabulary = 2 + rng.below(4);
    std::vector<std::int64_t> arrow(states * vocabulary);
    for (auto& to : arrow) to = rng.below(3) == 0 ? static_cast<std::int64_t>(rng.below(states)) : -1;
    const auto accepts = [&](std::span<const std::uint32_t> sequence) {
      std::int64_t at = 0;
      for (const std::uint32_t token : sequence) {
        at = arrow[static_cast<std::size_t>(at) * vocabulary + token];
        if (at < 0) return false;
      }
      return true;
    };
    std::vector<double> table(vocabulary * vocabulary);
    for (double& x : table) x = rng.normal();
    const auto next = [&](std::span<const std::uint32_t> sequence, std::span<double> out) -> Result<void> {
      std::copy_n(table.begin() + static_cast<std::ptrdiff_t>((sequence.empty() ? 0 : sequence.back()) * vocabulary), vocabulary,
                  out.begin());
      return {};
    };
    BeamOptions options;
    options.width = 1 + rng.below(6);
    options.length = 1 + rng.below(6);
    if (rng.below(2) == 0) options.end = static_cast<std::uint32_t>(rng.below(vocabulary));
    const auto found = beam_search(options, vocabulary, next, {accepts, {}});
    if (!found) continue;
    ++found_some;
    for (const Beam& beam : found->front()) {
      ASSERT_TRUE(accepts(beam.tokens)) << turn;
      ASSERT_TRUE(beam.ended || beam.tokens.size() == options.length);
    }
  }
  EXPECT_GT(found_some, wanted / 4);
}

TEST(BeamSearch, ASoftRuleCostsWhatItSays) {
  // Two tokens of log p -1 and -2; the first costs 3 each time, so the second wins.
  const auto next = [](std::span<const std::uint32_t>, std::span<double> out) -> Result<void> {
    out[0] = -1;
    out[1] = -2;
    return {};
  };
  BeamOptions options;
  options.length = 2;
  const auto found = beam_search(options, 2, next, {{}, [](std::span<const std::uint32_t> q) { return q.back() == 0 ? 3.0 : 0.0; }});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front().front().tokens, (Sequence{1, 1}));
  EXPECT_EQ(found->front().front().score, -4);
  EXPECT_EQ(found->front().back().score, -8);
}

TEST(BeamSearch, SaysWhatIsWrong) {
  const auto next = [](std::span<const std::uint32_t>, std::span<double> out) -> Result<void> {
    std::fill(out.begin(), out.end(), std::nan(""));
    return {};
  };
  const auto told = [&](const BeamOptions& options) {
    const auto found = beam_search(options, 3, next);
    return found ? "found" : found.error().text();
  };
  EXPECT_EQ(told({.width = 0}), "beam search: 0 beams of 1 tokens (expected at least 1 of each).");
  EXPECT_EQ(told({.width = 4, .groups = 3}), "beam search: 4 beams in 3 groups (expected groups that divide the width).");
  EXPECT_EQ(told({.end = 3}), "beam search: the end token 3 (expected 0 to 2).");
  EXPECT_EQ(told({}), "token 0: log p is no number (expected numbers, or -inf).");
}

}  // namespace
}  // namespace kizzasi
