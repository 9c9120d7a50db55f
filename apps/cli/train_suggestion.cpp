#include "apps/cli/train_suggestion.h"

#include <fmt/format.h>

#include <algorithm>

#include "kizzasi/data/limits.h"
#include "kizzasi/logic/formula.h"

namespace kizzasi::cli {
namespace {

constexpr std::size_t kFewest = 30;         // rows below which nothing is proposed
constexpr std::size_t kSmall = 3000;        // numbers below which the small preset is proposed
constexpr std::size_t kTogether = 64;       // channels above which each is proposed to be predicted from itself alone
constexpr std::int64_t kFast = 20'000'000;  // ns: a step that fast with several joints is a robot's

std::string base_name(const std::string& path) {
  const auto slash = path.find_last_of('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (const auto dot = name.find_last_of('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  return name.empty() || name == "-" ? "model" : name;
}

std::string limit_text(const data::SuggestedLimit& limit) {
  const std::string name = logic::quoted_name(limit.channel);
  if (limit.low && limit.high) return fmt::format("{} <= {} <= {}", *limit.low, name, *limit.high);
  return limit.low ? fmt::format("{} >= {}", name, *limit.low) : fmt::format("{} <= {}", name, *limit.high);
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+=@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted.append("'\\''") : quoted.append(1, c);
  return quoted.append("'");
}

TrainSuggestion suggest_training(const std::string& file, const std::vector<Series>& series, const std::vector<data::Season>& seasons,
                                 const std::vector<data::SuggestedLimit>& limits, bool sound, const std::vector<std::string>& given) {
  TrainSuggestion out;
  std::size_t longest = 0, rows = 0;
  for (const Series& one : series) {
    longest = std::max(longest, one.rows());
    rows += one.rows();
  }
  if (series.empty()) return out;
  const Schema& schema = series.front().schema;
  const std::size_t targets = schema.with_role(Role::kTarget).size();
  out.enough = longest >= kFewest;
  if (sound) {
    out.preset = "audio";
  } else if (schema.step_ns > 0 && schema.step_ns <= kFast && targets >= 3) {
    out.preset = "robotics";
  } else {
    out.preset = rows * targets < kSmall ? "lightweight" : "sensor";
  }
  // The longest season of which training sees several; the horizon is the shortest one, the day of an hourly signal.
  for (const data::Season& season : seasons) {
    if (5 * season.period <= longest) out.season = std::max(out.season, season.period);
  }
  if (out.season > 0 && (out.preset == "sensor" || out.preset == "lightweight")) out.preset = "forecast";
  const std::size_t wanted = seasons.empty() ? std::clamp<std::size_t>(longest / 100, 1, 50) : seasons.front().period;
  out.horizon = std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, longest / 10));
  out.context =
      std::clamp<std::size_t>(std::max({2 * out.season, 2 * out.horizon, std::size_t{64}}), 1, std::max<std::size_t>(1, longest / 4));
  for (const data::SuggestedLimit& limit : limits) {
    out.limits.push_back(limit_text(limit));
    out.reasons.push_back(limit.reason);
  }
  out.command = fmt::format("kizzasi train {} -o {}", shell_word(file), shell_word(base_name(file).append(".kizzasi")));
  for (const std::string& word : given) out.command.append(" ").append(shell_word(word));
  out.command.append(fmt::format(" --preset {}", out.preset));
  if (!sound) {
    out.command.append(fmt::format(" --context {} --horizon {}", out.context, out.horizon));
    if (out.season > 0) out.command.append(fmt::format(" --season {}", out.season));
    if (targets > kTogether) out.command.append(" --channel-mode independent");
  }
  for (const std::string& limit : out.limits) out.command.append(" --limit ").append(shell_word(limit));
  return out;
}

Json to_json(const TrainSuggestion& suggestion) {
  Json json = Json::object();
  json["enough_rows"] = suggestion.enough;
  json["preset"] = suggestion.preset;
  json["context"] = suggestion.context;
  json["horizon"] = suggestion.horizon;
  json["season"] = suggestion.season > 0 ? Json(suggestion.season) : Json();
  json["limits"] = Json::list(suggestion.limits);
  json["command"] = suggestion.command;
  return json;
}

}  // namespace kizzasi::cli
