#include "kizzasi/signal/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kizzasi {
namespace {

constexpr std::array<HeadKind, 5> kKinds{HeadKind::kPoint, HeadKind::kGaussian, HeadKind::kStudentT, HeadKind::kMixture,
                                         HeadKind::kQuantiles};

}  // namespace

const char* to_string(HeadKind kind) {
  switch (kind) {
    case HeadKind::kPoint:
      return "point";
    case HeadKind::kGaussian:
      return "gaussian";
    case HeadKind::kStudentT:
      return "student_t";
    case HeadKind::kMixture:
      return "mixture";
    case HeadKind::kQuantiles:
      return "quantiles";
  }
  return "point";
}

void HeadConfig::fields(FieldVisitor& visit) {
  FieldInfo kinds{"head", "Family of the predicted distribution."};
  for (const HeadKind each : kKinds) kinds.choices.emplace_back(to_string(each));
  visit.field(kinds, kind);
  visit.field({"levels", "Levels of the predicted quantiles, rising, 0.5 among them.", 0, 1}, levels);
  visit.field({"components", "Gaussians in a mixture.", 1, 64}, components);
}

HeadKind HeadConfig::which() const {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](HeadKind each) { return kind == to_string(each); });
  return found == kKinds.end() ? HeadKind::kPoint : *found;
}

std::size_t HeadConfig::parameters() const {
  switch (which()) {
    case HeadKind::kPoint:
      return 1;
    case HeadKind::kGaussian:
      return 2;
    case HeadKind::kStudentT:
      return 3;
    case HeadKind::kMixture:
      return 3 * static_cast<std::size_t>(components);
    case HeadKind::kQuantiles:
      return levels.size();
  }
  return 1;
}

Result<void> HeadConfig::check() const {
  if (auto in_range = check_fields(*this, "head"); !in_range) return in_range;
  if (which() != HeadKind::kQuantiles) return {};
  const auto bad = [&](std::string what) {
    return fail({Fault::kBadUse, std::move(what), "head: field 'levels'", "levels above 0 and below 1, rising, 0.5 among them",
                 "For example 0.1,0.5,0.9."});
  };
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (!(levels[i] > 0 && levels[i] < 1)) return bad(fmt::format("level {} is no quantile", levels[i]));
    if (i > 0 && !(levels[i] > levels[i - 1])) return bad(fmt::format("level {} follows {}", levels[i], levels[i - 1]));
  }
  if (std::find(levels.begin(), levels.end(), 0.5) == levels.end()) return bad("the median is missing");
  return {};
}

}  // namespace kizzasi
