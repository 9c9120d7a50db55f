#include "kizzasi/logic/monitor/prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kizzasi/logic/monitor/residual.h"

namespace kizzasi::logic {
namespace {

constexpr std::size_t kMostPropositions = 8, kMostObligations = 10, kMostStates = 20'000;

}  // namespace

class PrefixBuilder {
 public:
  PrefixBuilder(const NodeGraph& graph, Residual residual) : graph_(graph), residual_(std::move(residual)) {}

  bool run() {
    for (const std::uint32_t leaf : residual_.leaves()) {
      if (graph_.nodes[leaf].kind != NodeKind::kTruth) out.propositions_.push_back(leaf);
    }
    if (out.propositions_.size() > kMostPropositions) {
      wrong = fmt::format("it holds {} comparisons", out.propositions_.size());
      return false;
    }
    out.letters_ = std::size_t{1} << out.propositions_.size();
    corners_ = residual_.table_size();
    tabulate();
    if (!explore()) {
      wrong = fmt::format("its automaton has more than {} states", kMostStates);
      return false;
    }
    judge();
    return true;
  }

  PrefixMonitor out;
  std::string wrong;

 private:
  using Table = std::vector<bool>;  // the value at the start for every assignment of the obligations

  bool value(std::uint32_t part, std::size_t letter, std::size_t corner) const {
    const auto leaf = [&](std::uint32_t node) -> Verdict {
      if (graph_.nodes[node].kind == NodeKind::kTruth) return graph_.nodes[node].weak ? 1 : -1;
      const auto at = std::find(out.propositions_.begin(), out.propositions_.end(), node) - out.propositions_.begin();
      return (letter >> at & 1U) != 0 ? 1 : -1;
    };
    const auto next = [&](std::uint32_t i) -> Verdict { return (corner >> i & 1U) != 0 ? 1 : -1; };
    return residual_.value<Verdict>(part, leaf, next) > 0;
  }

  // What the obligations of a sample are worth, by its letter and by those of the next one.
  void tabulate() {
    before_.assign(out.letters_ * corners_, 0);
    for (std::size_t letter = 0; letter < out.letters_; ++letter) {
      for (std::size_t corner = 0; corner < corners_; ++corner) {
        std::size_t bits = 0;
        for (std::size_t i = 0; i < residual_.obligations().size(); ++i) {
          if (value(residual_.obligations()[i].part, letter, corner)) bits |= std::size_t{1} << i;
        }
        before_[letter * corners_ + corner] = bits;
      }
    }
    for (std::size_t i = 0; i < residual_.obligations().size(); ++i) {
      if (residual_.obligations()[i].weak) end_ |= std::size_t{1} << i;
    }
  }

  // State 0 is the start, where no letter has been read.
  bool explore() {
    std::map<Table, std::int32_t> known;
    tables_.emplace_back();
    for (std::size_t state = 0; state < tables_.size(); ++state) {
      for (std::size_t letter = 0; letter < out.letters_; ++letter) {
        Table table(corners_);
        for (std::size_t corner = 0; corner < corners_; ++corner) {
          table[corner] = state == 0 ? value(residual_.root(), letter, corner) : tables_[state][before_[letter * corners_ + corner]];
        }
        const auto [at, fresh] = known.emplace(table, static_cast<std::int32_t>(tables_.size()));
        if (fresh) tables_.push_back(std::move(table));
        if (tables_.size() > kMostStates) return false;
        out.next_.push_back(at->second);
      }
    }
    return true;
  }

  void judge() {
    const std::vector<bool> fair = fair_assignments();
    const std::size_t states = tables_.size();
    out.verdicts_.resize(states);
    std::vector<std::uint8_t> sees(states, 0);  // bit 0: a prefix that is false can follow, bit 1: one that is true
    for (std::size_t s = 1; s < states; ++s) {
      PrefixVerdict& verdict = out.verdicts_[s];
      verdict.now = tables_[s][end_];
      sees[s] = verdict.now ? 2 : 1;
      verdict.every = true;
      for (std::size_t corner = 0; corner < corners_; ++corner) {
        if (!fair[corner]) continue;
        verdict.every = verdict.every && tables_[s][corner];
        verdict.some = verdict.some || tables_[s][corner];
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t s = states; s-- > 0;) {
        std::uint8_t all = sees[s];
        for (std::size_t letter = 0; letter < out.letters_; ++letter)
          all |= sees[static_cast<std::size_t>(out.next_[s * out.letters_ + letter])];
        changed = changed || all != sees[s];
        sees[s] = all;
      }
    }
    out.settled_.assign(states, 0);
    for (std::size_t s = 1; s < states; ++s) {
      out.verdicts_[s].permanent = sees[s] != 3;
      out.settled_[s] = sees[s] != 3 ? 1 : 0;
    }
    PrefixVerdict& start = out.verdicts_[0];
    start.every = start.some = false;
    bool every = true;
    for (std::size_t letter = 0; letter < out.letters_; ++letter) {
      const PrefixVerdict& v = out.verdicts_[static_cast<std::size_t>(out.next_[letter])];
      every = every && v.every;
      start.some = start.some || v.some;
    }
    start.every = every;
  }

  // Assignments of the obligations that some infinite word gives: those from which a cycle can be reached on which every promise is kept
  // (an eventuality that is due is met, one that is not is not, as the automata of LTL ask).
  std::vector<bool> fair_assignments() const {
    const std::size_t count = residual_.obligations().size(), all = (std::size_t{1} << count) - 1;
    // Edges from what holds at a sample to what holds at the next, with the promises that are kept on the way.
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>> edges(corners_);
    for (std::size_t letter = 0; letter < out.letters_; ++letter) {
      for (std::size_t after = 0; after < corners_; ++after) {
        const std::size_t here = before_[letter * corners_ + after];
        if (agree(here) && agree(after)) edges[here].emplace_back(after, kept(letter, here, after));
      }
    }
    const std::vector<std::size_t> component = components(edges);
    std::vector<std::size_t> promises(corners_ + 1, 0);
    std::vector<bool> cycles(corners_ + 1, false);
    for (std::size_t a = 0; a < corners_; ++a) {
      for (const auto& [b, good] : edges[a]) {
        if (component[a] != component[b]) continue;
        promises[component[a]] |= good;
        cycles[component[a]] = true;
      }
    }
    std::vector<bool> fair(corners_);
    for (std::size_t a = 0; a < corners_; ++a) fair[a] = cycles[component[a]] && promises[component[a]] == all;
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t a = 0; a < corners_; ++a) {
        if (fair[a]) continue;
        fair[a] = std::any_of(edges[a].begin(), edges[a].end(), [&](const auto& edge) { return fair[edge.first]; });
        changed = changed || fair[a];
      }
    }
    return fair;
  }

  // Weak and strong "next" of one part differ at the end of a trace only.
  bool agree(std::size_t bits) const {
    const auto obligations = residual_.obligations();
    for (std::size_t i = 0; i < obligations.size(); ++i) {
      for (std::size_t j = i + 1; j < obligations.size(); ++j) {
        if (obligations[i].part == obligations[j].part && (bits >> i & 1U) != (bits >> j & 1U)) return false;
      }
    }
    return true;
  }

  std::size_t kept(std::size_t letter, std::size_t here, std::size_t after) const {
    std::size_t bits = 0;
    for (std::size_t i = 0; i < residual_.obligations().size(); ++i) {
      const Residual::Part& part = residual_.parts()[residual_.obligations()[i].part];
      const bool due = (here >> i & 1U) != 0;
      bool good = true;
      if (part.op == Residual::Op::kEventually) good = !due || value(part.a, letter, after);
      if (part.op == Residual::Op::kUntil) good = !due || value(part.b, letter, after);
      if (part.op == Residual::Op::kAlways) good = due || !value(part.a, letter, after);
      if (part.op == Residual::Op::kRelease) good = due || !value(part.b, letter, after);
      if (good) bits |= std::size_t{1} << i;
    }
    return bits;
  }

  // Strongly connected components, by forward and backward reachability: the graphs are small.
  std::vector<std::size_t> components(const std::vector<std::vector<std::pair<std::size_t, std::size_t>>>& edges) const {
    std::vector<std::vector<std::size_t>> forward(corners_), backward(corners_);
    for (std::size_t a = 0; a < corners_; ++a) {
      for (const auto& edge : edges[a]) {
        forward[a].push_back(edge.first);
        backward[edge.first].push_back(a);
      }
    }
    std::vector<std::size_t> component(corners_, corners_);
    for (std::size_t a = 0; a < corners_; ++a) {
      if (component[a] != corners_) continue;
      const std::vector<bool> to = reached(a, forward), from = reached(a, backward);
      for (std::size_t b = 0; b < corners_; ++b) {
        if (to[b] && from[b]) component[b] = a;
      }
    }
    return component;
  }

  std::vector<bool> reached(std::size_t from, const std::vector<std::vector<std::size_t>>& edges) const {
    std::vector<bool> seen(corners_, false);
    std::vector<std::size_t> todo{from};
    seen[from] = true;
    while (!todo.empty()) {
      const std::size_t a = todo.back();
      todo.pop_back();
      for (const std::size_t b : edges[a]) {
        if (seen[b]) continue;
        seen[b] = true;
        todo.push_back(b);
      }
    }
    return seen;
  }

  const NodeGraph& graph_;
  Residual residual_;
  std::size_t corners_ = 1, end_ = 0;
  std::vector<std::size_t> before_;  // (letters, corners)
  std::vector<Table> tables_;        // (states)
};

Result<PrefixMonitor> PrefixMonitor::create(const NodeGraph& graph, std::uint32_t root, const std::string& place) {
  auto residual = Residual::build(graph, root, Residual::Leaves::kPresent, kMostObligations, place);
  if (!residual) return tl::unexpected(residual.error());
  PrefixBuilder builder(graph, *std::move(residual));
  if (builder.run()) return std::move(builder.out);
  return fail({Fault::kBadInput, fmt::format("the formula has no verdict of prefixes: {}", builder.wrong), place,
               fmt::format("at most {} comparisons and {} states", kMostPropositions, kMostStates),
               "Its interval of robustness has no such limit."});
}

PrefixVerdict PrefixMonitor::verdict(std::int32_t state) const noexcept {
  if (state >= 0) return verdicts_[static_cast<std::size_t>(state)];
  PrefixVerdict unknown;
  unknown.known = false;
  unknown.some = true;
  return unknown;
}

const char* rv_ltl(const PrefixVerdict& verdict) {
  if (!verdict.known) return "unknown";
  if (verdict.every) return "true";
  if (!verdict.some) return "false";
  return verdict.now ? "presumably_true" : "presumably_false";
}

}  // namespace kizzasi::logic
