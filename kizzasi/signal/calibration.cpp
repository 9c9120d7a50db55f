#include "kizzasi/signal/calibration.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace kizzasi {
namespace {

// The numbers of the list under `key`; one that is missing is empty.
Result<std::vector<double>> numbers(const Json& json, const char* key, std::string_view where) {
  std::vector<double> list;
  const Json* items = json.find(key);
  if (items == nullptr) return list;
  const auto bad = [&](std::string what) {
    return fail({Fault::kBadInput, std::move(what), std::string(where), "a list of finite numbers", ""});
  };
  if (!items->is_array()) return bad(fmt::format("'{}' is of kind {}", key, items->kind()));
  for (const Json& item : items->items()) {
    if (!item.is_number() || !std::isfinite(item.number())) return bad(fmt::format("'{}' holds something that is no number", key));
    list.push_back(item.number());
  }
  return list;
}

Result<std::int64_t> whole(const Json& json, const char* key, std::string_view where) {
  const Json* value = json.find(key);
  if (value == nullptr) return 0;
  if (value->is_integer() && value->integer() >= 0) return value->integer();
  return fail({Fault::kBadInput, fmt::format("'{}' is no count", key), std::string(where), "a whole number, at least 0", ""});
}

}  // namespace

Json to_json(const Calibration& c) {
  return Json::Object{{"levels", Json::list(c.levels)}, {"horizon", c.horizon}, {"targets", c.targets}, {"stretch", Json::list(c.stretch)},
                      {"shift", Json::list(c.shift)},   {"windows", c.windows}, {"rate", c.rate}};
}

Result<Calibration> calibration_from_json(const Json& json, std::string_view where) {
  const auto bad = [&](std::string what, std::string expected) {
    return fail({Fault::kBadInput, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (!json.is_object()) return bad(fmt::format("the calibration is of kind {}", json.kind()), "an object");
  Calibration c;
  for (const auto& [key, list] : {std::pair{"levels", &c.levels}, {"stretch", &c.stretch}, {"shift", &c.shift}}) {
    auto read = numbers(json, key, where);
    if (!read) return fail(read.error());
    *list = std::move(*read);
  }
  const auto horizon = whole(json, "horizon", where), targets = whole(json, "targets", where), windows = whole(json, "windows", where);
  for (const auto* count : {&horizon, &targets, &windows}) {
    if (!*count) return fail(count->error());
  }
  c.horizon = static_cast<std::size_t>(*horizon);
  c.targets = static_cast<std::size_t>(*targets);
  c.windows = *windows;
  if (const Json* rate = json.find("rate")) {
    if (!rate->is_number() || !(rate->number() >= 0 && rate->number() < 1)) return bad("'rate' is no share", "0 or more and below 1");
    c.rate = rate->number();
  }
  for (std::size_t i = 0; i < c.levels.size(); ++i) {
    if (!(c.levels[i] > 0 && c.levels[i] < 1) || (i > 0 && !(c.levels[i] > c.levels[i - 1]))) {
      return bad(fmt::format("level {} is {}", i + 1, c.levels[i]), "levels above 0 and below 1, rising");
    }
  }
  // Sizes are compared by division, so that no product can overflow.
  const auto fits = [&](std::size_t size) {
    if (c.levels.empty()) return size == 0;
    if (c.horizon == 0 || c.targets == 0 || size % c.levels.size() != 0) return false;
    const std::size_t rows = size / c.levels.size();
    return rows % c.targets == 0 && rows / c.targets == c.horizon;
  };
  if (!fits(c.stretch.size()) || !fits(c.shift.size())) {
    return bad(fmt::format("{} stretches and {} shifts", c.stretch.size(), c.shift.size()),
               fmt::format("{} steps x {} targets x {} levels of each", c.horizon, c.targets, c.levels.size()));
  }
  for (const double stretch : c.stretch) {
    if (stretch < 0) return bad(fmt::format("a stretch is {}", stretch), "at least 0");
  }
  return c;
}

}  // namespace kizzasi
