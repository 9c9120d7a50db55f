#include "kizzasi/logic/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/logic/region.h"

namespace kizzasi {
namespace {

using namespace logic;

constexpr double kStill = 1e-9;  // of the size of a value: no move worth a word

std::string shown(double x) { return fmt::format("{}", std::stod(fmt::format("{:.6g}", x)) + 0.0); }
bool differs(double a, double b) { return std::abs(a - b) > kStill * std::max({1.0, std::abs(a), std::abs(b)}); }
std::string name_of(const ConstraintText& text) { return text.name.empty() ? text.that : text.name; }

}  // namespace

Result<Explainer> Explainer::make(const Schema& schema, std::span<const ConstraintText> constraints, std::span<const double> scale) {
  const auto region = Region::build(schema, constraints, scale);
  if (!region) return fail(region.error());
  Explainer out;
  out.schema_ = schema;
  out.constraints_.assign(constraints.begin(), constraints.end());
  out.scale_.assign(scale.begin(), scale.end());
  out.frames_ = region->frames();
  for (const ConstraintText& c : constraints) out.asked_.push_back(!c.soft && c.otherwise == "project" ? 1 : 0);
  return out;
}

void Explainer::accept(std::int64_t time_ns, std::span<const double> emitted) {
  past_.insert(past_.end(), emitted.begin(), emitted.end());
  times_.push_back(time_ns);
  if (times_.size() < frames_) return;
  past_.erase(past_.begin(), past_.begin() + static_cast<std::ptrdiff_t>(schema_.size()));
  times_.erase(times_.begin());
}

Result<MoveCost> Explainer::explain(std::int64_t time_ns, std::span<const double> proposed, std::span<const double> emitted) const {
  const std::size_t channels = schema_.size();
  std::vector<double> frames = past_;
  frames.insert(frames.end(), proposed.begin(), proposed.end());
  std::vector<std::int64_t> times = times_;
  times.push_back(time_ns);
  std::vector<std::uint8_t> free(frames.size(), 0);
  const std::size_t now = past_.size();
  for (const std::size_t c : schema_.with_role(Role::kTarget)) free[now + c] = 1;
  const Given given{frames, times, free};
  const auto region = Region::build(schema_, constraints_, scale_, &given);
  if (!region) return fail(region.error());
  const Region::Answer answer = region->nearest(asked_);
  MoveCost out;
  out.price.assign(constraints_.size(), 0);
  out.share.assign(constraints_.size(), 0);
  if (answer.found != Region::Found::kPoint) return out;
  out.found = true;
  out.distance = std::sqrt(answer.cost);
  const bool moved = out.distance > 0;
  for (const Region::Pull& pull : answer.pulls) {
    if (!moved) break;
    out.price[pull.constraint] += std::abs(pull.multiplier) / out.distance;
    out.share[pull.constraint] += pull.multiplier * pull.gap / answer.cost;
  }
  for (std::size_t c = 0; c < channels; ++c) {
    if (!differs(proposed[c], emitted[c]) || !std::isfinite(proposed[c])) continue;
    const Region::Pull* strongest = nullptr;
    double slope = 0, force = 0;
    for (const Region::Pull& pull : answer.pulls) {
      double own = 0;
      for (const auto& [v, factor] : pull.demand->terms) own += v == now + c ? factor : 0;
      if (pull.demand->curved) own = 1;
      if (std::abs(own * pull.multiplier) > force) strongest = &pull, slope = own, force = std::abs(own * pull.multiplier);
    }
    if (strongest == nullptr) continue;
    const Demand& d = *strongest->demand;
    std::string why;
    if (!d.curved && d.terms.size() == 1) {
      const double edge = d.bound / slope;
      const bool above = strongest->multiplier * slope > 0;
      const char* most = d.equal ? "allows" : above ? "allows at most" : "allows at least";
      const double before = d.reach == 1 && now >= channels ? past_[past_.size() - channels + c] : std::nan("");
      const double seconds = times_.empty() || schema_.step_ns == 0 ? 1 : static_cast<double>(time_ns - times_.back()) / 1e9;
      if (d.rate && std::isfinite(before) && seconds > 0) {
        const double change = (edge - before) / seconds;
        why = fmt::format("{} {}{} {} after {}", most, change > 0 ? "+" : "", shown(change), schema_.step_ns == 0 ? "a row" : "a second",
                          shown(before));
      } else {
        why = fmt::format("{} {}", most, shown(edge));
        if (std::isfinite(before)) why += fmt::format(" after {}", shown(before));
      }
    } else {
      why = fmt::format("asks for {}", constraints_[strongest->constraint].that);
    }
    const std::string name = name_of(constraints_[strongest->constraint]);
    out.sentence += fmt::format("{}{} {} -> {}: '{}' {}", out.sentence.empty() ? "" : "; ", schema_.channels[c].name, shown(proposed[c]),
                                shown(emitted[c]), name, why);
  }
  return out;
}

Result<Counterfactual> Explainer::what_if(std::int64_t time_ns, std::span<const double> proposed, std::span<const std::size_t> channels,
                                          bool previous) const {
  const std::size_t count = schema_.size(), now = past_.size();
  std::vector<double> frames = past_;
  frames.insert(frames.end(), proposed.begin(), proposed.end());
  std::vector<std::int64_t> times = times_;
  times.push_back(time_ns);
  std::vector<std::uint8_t> free(frames.size(), 0);
  for (const std::size_t c : channels) {
    if (c >= count) return fail({Fault::kBadUse, fmt::format("there is no channel {}", c), "", fmt::format("below {}", count), ""});
    free[now + c] = 1;
  }
  for (std::size_t c = 0; previous && now >= count && c < count; ++c) free[now - count + c] = 1;
  const Given given{frames, times, free};
  const auto region = Region::build(schema_, constraints_, scale_, &given);
  if (!region) return fail(region.error());
  const Region::Answer answer = region->nearest(asked_);
  Counterfactual out;
  if (answer.found != Region::Found::kPoint) {
    out.sentence = "no such change is enough";
    return out;
  }
  out.found = true;
  out.distance = std::sqrt(answer.cost);
  const auto part = [&](std::size_t from) {
    std::vector<double> row(answer.x.begin() + static_cast<std::ptrdiff_t>(from),
                            answer.x.begin() + static_cast<std::ptrdiff_t>(from + count));
    for (std::size_t c = 0; c < count; ++c) {
      if (!std::isfinite(frames[from + c])) row[c] = frames[from + c];
    }
    return row;
  };
  out.frame = part(now);
  if (now >= count) out.previous = part(now - count);
  std::string changes;
  for (std::size_t v = now >= count ? now - count : now; v < frames.size(); ++v) {
    if (free[v] == 0 || !differs(answer.x[v], frames[v])) continue;
    changes += fmt::format("{}{} {} instead of {}{}", changes.empty() ? "" : ", ", schema_.channels[v % count].name, shown(answer.x[v]),
                           shown(frames[v]), v < now ? " in the frame before" : "");
  }
  out.sentence = changes.empty() ? "it holds as it is" : "it would have held with " + changes;
  return out;
}

void count(const GuardReport& report, std::span<ConstraintTally> tallies) {
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    tallies[i].active += report.active[i];
    tallies[i].broken += report.broken[i];
    tallies[i].unknown += report.unknown[i];
  }
}

void count(const MoveCost& cost, std::span<ConstraintTally> tallies) {
  for (std::size_t i = 0; cost.found && i < tallies.size(); ++i) {
    tallies[i].distance += cost.share[i] * cost.distance;
    tallies[i].worst_price = std::max(tallies[i].worst_price, cost.price[i]);
  }
}

}  // namespace kizzasi
