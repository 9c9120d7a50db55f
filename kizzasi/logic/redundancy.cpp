#include "kizzasi/logic/redundancy.h"

#include <algorithm>

#include "kizzasi/logic/region.h"

namespace kizzasi {

using logic::Region;

Result<Redundancy> find_redundant(const Schema& schema, std::span<const ConstraintText> constraints) {
  const auto region = Region::build(schema, constraints, {});
  if (!region) return fail(region.error());
  Redundancy out;
  std::vector<std::uint8_t> kept;
  for (const ConstraintText& c : constraints) kept.push_back(c.soft ? 0 : 1);
  for (std::size_t i = constraints.size(); i-- > 0;) {
    if (constraints[i].soft) continue;
    kept[i] = 0;
    const Region::Found found = region->find(kept, i).found;
    if (found == Region::Found::kNothing) {
      out.follows.push_back({i, {}});
      continue;
    }
    kept[i] = 1;
    const auto why =
        std::find_if(region->not_written().begin(), region->not_written().end(), [&](const auto& n) { return n.constraint == i; });
    if (why != region->not_written().end()) {
      out.unjudged.push_back({i, why->why});
    } else if (!region->denial_is_written(i)) {
      out.unjudged.push_back({i, "what breaks it is no convex set"});
    } else if (found == Region::Found::kUndecided) {
      out.unjudged.push_back({i, "the search came to its bound"});
    } else {
      // What others demand beyond what can be written may still make it follow.
      const bool others = std::any_of(region->not_written().begin(), region->not_written().end(),
                                      [&](const auto& n) { return n.constraint != i && !constraints[n.constraint].soft; });
      if (others) out.unjudged.push_back({i, "other constraints are not judged"});
    }
  }
  for (Redundancy::Follows& follows : out.follows) {
    auto from = kept;
    for (std::size_t j = from.size(); j-- > 0;) {
      if (from[j] == 0) continue;
      from[j] = 0;
      if (region->find(from, follows.constraint).found != Region::Found::kNothing) from[j] = 1;
    }
    for (std::size_t j = 0; j < from.size(); ++j) {
      if (from[j] != 0) follows.from.push_back(j);
    }
  }
  std::reverse(out.follows.begin(), out.follows.end());
  std::reverse(out.unjudged.begin(), out.unjudged.end());
  return out;
}

}  // namespace kizzasi
