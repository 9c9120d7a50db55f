// What a set of constraints says about itself: whether it can be obeyed, and what of it says nothing new.
#pragma once

#include <optional>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/logic/consistency.h"
#include "kizzasi/logic/redundancy.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::cli {

struct Insight {
  Consistency consistency;
  std::optional<Redundancy> redundancy;  // asked where the set can be obeyed
  bool conflicts() const { return consistency.verdict == Consistency::Verdict::kConflict; }
};

Result<Insight> insight_of(const Schema& schema, const std::vector<ConstraintText>& texts, std::span<const double> scale);
// The conflict and its repair alone where there is one; else what can be said of the set, line by line.
void print_insight(const Insight& insight, const std::vector<ConstraintText>& texts);
// {"verdict": "holds" | "conflict" | "undecided", "frames", "example" (frames, channels), "conflict": [names], "repair": [{"name", "that",
// "becomes"}], "redundant": [{"name", "from"}], "not_judged": [{"name", "why"}]}
Json insight_json(const Insight& insight, const std::vector<ConstraintText>& texts, const Schema& schema);

}  // namespace kizzasi::cli
