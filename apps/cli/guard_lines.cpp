#include "apps/cli/guard_lines.h"

#include <fmt/format.h>

#include <cmath>

#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

std::string cell(const std::string& text) {
  if (text.empty()) return "";
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? "\"\"" : std::string(1, c));
  return out + "\"";
}

}  // namespace

std::string GuardLines::head(bool timed) const {
  if (words_.json) return "";
  std::string out = timed ? "time" : "";
  for (const Channel& channel : schema_.channels) out.append(out.empty() ? "" : ",").append(channel.name);
  return out + ",status" + (words_.why ? ",why" : "") + (words_.what_if ? ",what_if" : "") + "\n";
}

std::string GuardLines::line(const io::StreamFrame& frame, std::span<const double> value, const GuardReport& report,
                             const MovedWords& said) const {
  const bool refused = report.status == GuardStatus::kRejected;
  const std::string time = frame.time_ns ? time_text(*frame.time_ns, "UTC") : "";
  if (words_.json) return json(time, refused, value, report, said).dump() + "\n";
  std::string out = time;
  for (std::size_t c = 0; c < value.size(); ++c) {
    if (c > 0 || !time.empty()) out.push_back(',');
    if (!refused && !std::isnan(value[c])) out.append(number(value[c]));
  }
  out.append(",").append(to_string(report.status));
  if (words_.why) out.append(",").append(cell(said.why));
  if (words_.what_if) out.append(",").append(cell(said.what_if));
  return out + "\n";
}

std::string GuardLines::number(double x) const {
  if (x == 0) x = 0;  // no -0
  return words_.decimals < 0 ? fmt::format("{}", x) : fmt::format("{:.{}f}", x, static_cast<int>(words_.decimals));
}

Json GuardLines::json(const std::string& time, bool refused, std::span<const double> value, const GuardReport& report,
                      const MovedWords& said) const {
  Json out = Json::object();
  if (!time.empty()) out["time"] = time;
  for (std::size_t c = 0; c < schema_.size(); ++c) {
    out[schema_.channels[c].name] = refused || std::isnan(value[c]) ? Json() : Json(value[c] == 0 ? 0.0 : value[c]);
  }
  out["status"] = to_string(report.status);
  out["distance"] = report.distance;
  const auto names = [&](const std::vector<std::uint8_t>& flags) {
    Json list = Json::array();
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (flags[i] != 0) list.push_back(std::string(guard_.name(i)));
    }
    return list;
  };
  // A course as a whole names no constraint frame by frame: an empty list would say that none is active.
  if (report.status != GuardStatus::kClean && !words_.whole) out["active"] = names(report.active);
  if (const Json broken = names(report.broken); !broken.items().empty()) out["broken"] = broken;
  if (!said.why.empty()) out["why"] = said.why;
  if (words_.why && said.cost.found) {
    Json prices = Json::object();
    for (std::size_t i = 0; i < said.cost.price.size(); ++i) {
      if (said.cost.price[i] != 0) prices[std::string(guard_.name(i))] = said.cost.price[i];
    }
    if (!prices.members().empty()) out["price"] = std::move(prices);
  }
  if (!said.what_if.empty()) out["what_if"] = said.what_if;
  return out;
}

}  // namespace kizzasi::cli
