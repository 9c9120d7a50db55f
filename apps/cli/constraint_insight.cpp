#include "apps/cli/constraint_insight.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/print.h"

namespace kizzasi::cli {
namespace {

std::string name_of(const ConstraintText& text) { return text.name.empty() ? text.that : text.name; }

std::string counted(std::size_t n, std::string_view one, std::string_view many) { return fmt::format("{} {}", n, n == 1 ? one : many); }

void print_conflict(const Consistency& c, const std::vector<ConstraintText>& texts) {
  print(c.conflict.size() == 1
            ? fmt::format("conflict: no course of {} frames obeys this.\n", c.frames)
            : fmt::format("conflict: no course of {} frames obeys these {} together; without any one of them the rest can hold.\n",
                          c.frames, c.conflict.size()));
  for (const std::size_t i : c.conflict) {
    const std::string name = name_of(texts[i]);
    print(fmt::format("  {}{}\n", name == texts[i].that ? "" : name + ": ", texts[i].that));
  }
  if (c.repairs.empty()) {
    print("repair: none was found that changes only numbers that stand alone on one side.\n");
    return;
  }
  print("repair: the smallest change of limits with which all can hold.\n");
  for (const Repair& repair : c.repairs) {
    const std::string name = name_of(texts[repair.constraint]);
    print(fmt::format("  {}{}  becomes  {}\n", name == texts[repair.constraint].that ? "" : name + ": ", texts[repair.constraint].that,
                      repair.that));
  }
}

}  // namespace

Result<Insight> insight_of(const Schema& schema, const std::vector<ConstraintText>& texts, std::span<const double> scale) {
  auto consistency = check_consistency(schema, texts, scale);
  if (!consistency) return fail(consistency.error());
  Insight insight{std::move(*consistency), std::nullopt};
  if (insight.consistency.verdict == Consistency::Verdict::kHolds) {
    auto redundancy = find_redundant(schema, texts);
    if (!redundancy) return fail(redundancy.error());
    insight.redundancy = std::move(*redundancy);
  }
  return insight;
}

void print_insight(const Insight& insight, const std::vector<ConstraintText>& texts) {
  const Consistency& c = insight.consistency;
  if (insight.conflicts()) return print_conflict(c, texts);
  const auto soft = static_cast<std::size_t>(std::count_if(texts.begin(), texts.end(), [](const ConstraintText& t) { return t.soft; }));
  const std::size_t asked = texts.size() - soft;
  if (c.verdict == Consistency::Verdict::kUndecided) {
    print("Whether all can hold together was not decided: there are too many choices.\n");
  } else if (asked > 0) {
    const std::string set = asked == 1 ? std::string("the constraint") : fmt::format("all {} constraints", asked);
    print(fmt::format("consistent: some course of {} frames obeys {}{}.\n", c.frames, set,
                      soft == 0 ? "" : fmt::format(", {} left out", counted(soft, "soft one", "soft ones"))));
  }
  for (const Unjudged& u : c.unjudged) print(fmt::format("  not judged: '{}': {}\n", name_of(texts[u.constraint]), u.why));
  if (!insight.redundancy) return;
  std::vector<std::pair<std::string, std::string>> by_reason;
  for (const Unjudged& u : insight.redundancy->unjudged) {
    const auto told = [&](const Unjudged& other) { return other.constraint == u.constraint; };
    if (std::any_of(c.unjudged.begin(), c.unjudged.end(), told)) continue;
    auto found = std::find_if(by_reason.begin(), by_reason.end(), [&](const auto& one) { return one.first == u.why; });
    if (found == by_reason.end()) found = by_reason.insert(by_reason.end(), {u.why, ""});
    found->second.append(found->second.empty() ? "'" : ", '").append(name_of(texts[u.constraint])).append("'");
  }
  for (const auto& [why, names] : by_reason) print(fmt::format("  redundancy not judged: {}: {}\n", names, why));
  for (const auto& follows : insight.redundancy->follows) {
    std::string from;
    for (const std::size_t j : follows.from) from.append(from.empty() ? "" : ", ").append("'").append(name_of(texts[j])).append("'");
    print(follows.from.empty() ? fmt::format("redundant: '{}' is always true.\n", name_of(texts[follows.constraint]))
                               : fmt::format("redundant: '{}' follows from {}.\n", name_of(texts[follows.constraint]), from));
  }
}

Json insight_json(const Insight& insight, const std::vector<ConstraintText>& texts, const Schema& schema) {
  const Consistency& c = insight.consistency;
  Json out = Json::object();
  out["verdict"] = c.verdict == Consistency::Verdict::kHolds ? "holds" : insight.conflicts() ? "conflict" : "undecided";
  out["frames"] = c.frames;
  if (!c.example.empty()) {
    Json frames = Json::array();
    for (std::size_t r = 0; r < c.frames; ++r) {
      Json frame = Json::object();
      for (std::size_t k = 0; k < schema.size(); ++k) frame[schema.channels[k].name] = c.example[r * schema.size() + k];
      frames.push_back(std::move(frame));
    }
    out["example"] = std::move(frames);
  }
  const auto names = [&](const std::vector<std::size_t>& list) {
    Json json = Json::array();
    for (const std::size_t i : list) json.push_back(name_of(texts[i]));
    return json;
  };
  if (insight.conflicts()) {
    out["conflict"] = names(c.conflict);
    Json repairs = Json::array();
    for (const Repair& repair : c.repairs) {
      Json one = Json::object();
      one["name"] = name_of(texts[repair.constraint]);
      one["that"] = texts[repair.constraint].that;
      one["becomes"] = repair.that;
      repairs.push_back(std::move(one));
    }
    out["repair"] = std::move(repairs);
  }
  const auto unjudged = [&](const std::vector<Unjudged>& list) {
    Json json = Json::array();
    for (const Unjudged& u : list) {
      Json one = Json::object();
      one["name"] = name_of(texts[u.constraint]);
      one["why"] = u.why;
      json.push_back(std::move(one));
    }
    return json;
  };
  out["not_judged"] = unjudged(c.unjudged);
  if (insight.redundancy) {
    Json redundant = Json::array();
    for (const auto& follows : insight.redundancy->follows) {
      Json one = Json::object();
      one["name"] = name_of(texts[follows.constraint]);
      one["from"] = names(follows.from);
      redundant.push_back(std::move(one));
    }
    out["redundant"] = std::move(redundant);
    out["redundancy_not_judged"] = unjudged(insight.redundancy->unjudged);
  }
  return out;
}

}  // namespace kizzasi::cli
