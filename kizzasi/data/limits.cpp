#include "kizzasi/data/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kizzasi::data {
namespace {

bool says_per_cent(const Channel& channel) {
  const std::string& name = channel.name;
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  return channel.unit == "%" || channel.unit == "%RH" || ends("_pct") || ends("_percent") || ends("_rh") || name == "humidity" ||
         name == "RH";
}

// Temperatures and the like end at no zero, even where a summer's recording never saw one below.
bool has_no_zero(const Channel& channel) {
  const auto holds = [&](std::string_view part) { return channel.name.find(part) != std::string::npos; };
  constexpr std::array<std::string_view, 9> kUnits{"degC", "\xC2\xB0\x43", "C", "degF", "\xC2\xB0\x46", "F", "deg", "rad", "dB"};
  return std::find(kUnits.begin(), kUnits.end(), channel.unit) != kUnits.end() || holds("temp") || holds("Temp") ||
         channel.name.ends_with("_c") || channel.name.ends_with("_f");
}

io::ChannelFacts facts_of(const std::vector<Series>& series, std::size_t channel) {
  io::ChannelFacts facts;
  for (const Series& one : series) {
    for (std::size_t row = 0; row < one.rows(); ++row) facts.add(one.at(row, channel));
  }
  return facts;
}

}  // namespace

std::vector<SuggestedLimit> suggest_limits(const std::vector<Series>& series) {
  if (series.empty()) return {};
  std::vector<io::ChannelFacts> facts;
  for (std::size_t channel = 0; channel < series.front().channels(); ++channel) facts.push_back(facts_of(series, channel));
  return suggest_limits(series.front().schema, facts);
}

std::vector<SuggestedLimit> suggest_limits(const Schema& schema, std::span<const io::ChannelFacts> facts) {
  std::vector<SuggestedLimit> limits;
  for (const std::size_t channel : schema.with_role(Role::kTarget)) {
    const Channel& about = schema.channels[channel];
    const io::ChannelFacts& range = facts[channel];
    if (range.present < 2 || range.low < 0 || range.high <= range.low) continue;
    if (says_per_cent(about) && range.high <= 100) {
      limits.push_back({about.name, 0.0, 100.0, fmt::format("a percentage, {} to {} in {} values", range.low, range.high, range.present)});
    } else if (!has_no_zero(about) && range.low <= (range.whole ? 0.1 : 0.001) * (range.high - range.low)) {
      limits.push_back({about.name, 0.0, std::nullopt, fmt::format("never below 0 in {} values", range.present)});
    }
  }
  return limits;
}

}  // namespace kizzasi::data
