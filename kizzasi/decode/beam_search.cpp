#include "kizzasi/decode/beam_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi {
namespace {

constexpr double kOut = -std::numeric_limits<double>::infinity();

struct Extension {
  double rank = 0, score = 0;  // rank: with what diversity costs
  std::size_t beam = 0;
  std::uint32_t token = 0;
};

class Search {
 public:
  Search(const BeamOptions& options, std::size_t vocabulary, const NextLogProbabilities& next, const BeamRules& rules)
      : o_(options), next_(next), rules_(rules), log_p_(vocabulary), used_(vocabulary) {}

  Result<std::vector<std::vector<Beam>>> run() {
    if (auto checked = check(); !checked) return fail(checked.error());
    per_group_ = o_.width / o_.groups;
    groups_.assign(o_.groups, Group{{Beam{}}, {}, false});
    for (std::size_t step = 1; step <= o_.length; ++step) {
      std::fill(used_.begin(), used_.end(), 0.0);
      bool any = false;
      for (Group& group : groups_) {
        if (group.closed || group.running.empty()) continue;
        any = true;
        if (auto grown = grow(group, step); !grown) return fail(grown.error());
      }
      if (!any) break;
    }
    std::vector<std::vector<Beam>> out;
    bool any = false;
    for (Group& group : groups_) {
      std::vector<Beam>& found = o_.end ? group.ended : group.running;
      any = any || !found.empty();
      out.push_back(std::move(found));
    }
    if (!any) {
      return fail({Fault::kBadInput, fmt::format("no allowed sequence was found with {} beams", o_.width), "beam search",
                   "rules that some sequence obeys", "A wider search may find one that a narrow one missed."});
    }
    return out;
  }

 private:
  struct Group {
    std::vector<Beam> running, ended;
    bool closed = false;
  };

  static bool better(const Beam& a, const Beam& b) { return a.score != b.score ? a.score > b.score : a.tokens < b.tokens; }

  Result<void> check() const {
    const auto bad = [](std::string what, std::string expected) {
      return fail({Fault::kBadUse, std::move(what), "beam search", std::move(expected), ""});
    };
    if (log_p_.empty()) return bad("a vocabulary of no tokens", "at least 1");
    if (o_.width == 0 || o_.length == 0) return bad(fmt::format("{} beams of {} tokens", o_.width, o_.length), "at least 1 of each");
    if (o_.groups == 0 || o_.width % o_.groups != 0) {
      return bad(fmt::format("{} beams in {} groups", o_.width, o_.groups), "groups that divide the width");
    }
    if (!std::isfinite(o_.diversity) || !std::isfinite(o_.length_penalty)) return bad("a penalty that is no number", "numbers");
    if (o_.end && *o_.end >= log_p_.size()) {
      return bad(fmt::format("the end token {}", *o_.end), fmt::format("0 to {}", log_p_.size() - 1));
    }
    return {};
  }

  double worth(double score, std::size_t tokens) const {
    return o_.length_penalty == 0 ? score : score / std::pow(static_cast<double>(tokens), o_.length_penalty);
  }

  // One more token on every beam of a group.
  Result<void> grow(Group& group, std::size_t step) {
    extensions_.clear();
    for (std::size_t b = 0; b < group.running.size(); ++b) {
      Beam& beam = group.running[b];
      if (auto done = next_(beam.tokens, log_p_); !done) return fail(done.error());
      for (std::uint32_t token = 0; token < log_p_.size(); ++token) {
        if (std::isnan(log_p_[token])) {
          return fail({Fault::kBadInput, "log p is no number", fmt::format("token {}", token), "numbers, or -inf", ""});
        }
        if (log_p_[token] == kOut) continue;
        beam.tokens.push_back(token);
        const bool can = !rules_.allowed || rules_.allowed(beam.tokens);
        const double score = can ? beam.score + log_p_[token] - (rules_.cost ? rules_.cost(beam.tokens) : 0) : 0;
        beam.tokens.pop_back();
        if (can) extensions_.push_back({score - o_.diversity * used_[token], score, b, token});
      }
    }
    std::sort(extensions_.begin(), extensions_.end(), [&](const Extension& x, const Extension& y) {
      if (x.rank != y.rank) return x.rank > y.rank;
      const auto &p = group.running[x.beam].tokens, &q = group.running[y.beam].tokens;
      return p != q ? p < q : x.token < y.token;
    });
    keep(group, step);
    return {};
  }

  // The best go on; with an end token those among the best `width` that end, or are as long as may be, are set aside.
  void keep(Group& group, std::size_t step) {
    std::vector<Beam> running;
    const bool full_already = group.ended.size() >= per_group_;
    for (std::size_t i = 0; i < extensions_.size() && running.size() < per_group_; ++i) {
      const Extension& e = extensions_[i];
      Beam beam = group.running[e.beam];
      beam.tokens.push_back(e.token);
      beam.score = e.score;
      beam.ended = o_.end == e.token;
      const bool stops = o_.end && (beam.ended || step == o_.length);
      if (!stops) {
        ++used_.at(e.token);
        running.push_back(std::move(beam));
        continue;
      }
      if (i >= per_group_ || (o_.early_stopping && full_already)) continue;
      ++used_.at(e.token);
      beam.score = worth(beam.score, step);
      group.ended.push_back(std::move(beam));
    }
    std::sort(group.ended.begin(), group.ended.end(), better);
    if (group.ended.size() > per_group_) group.ended.resize(per_group_);
    group.running = std::move(running);
    if (!o_.end || group.ended.size() < per_group_) return;
    if (o_.early_stopping) {
      group.closed = true;
      return;
    }
    // log p only falls: what runs is worth most now, or at full length where length pays.
    double most = kOut;
    for (const Beam& beam : group.running) most = std::max(most, worth(beam.score, o_.length_penalty > 0 ? o_.length : step));
    group.closed = !rules_.cost && most <= group.ended.back().score;
  }

  const BeamOptions& o_;
  const NextLogProbabilities& next_;
  const BeamRules& rules_;
  std::vector<double> log_p_, used_;
  std::size_t per_group_ = 1;
  std::vector<Group> groups_;
  std::vector<Extension> extensions_;
};

}  // namespace

Result<std::vector<std::vector<Beam>>> beam_search(const BeamOptions& options, std::size_t vocabulary, const NextLogProbabilities& next,
                                                   const BeamRules& rules) {
  return Search(options, vocabulary, next, rules).run();
}

}  // namespace kizzasi
