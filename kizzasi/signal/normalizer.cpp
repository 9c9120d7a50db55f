#include "kizzasi/signal/normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kizzasi/base/suggest.h"

namespace kizzasi {
namespace {

constexpr std::array<Scaling, 4> kScalings{Scaling::kNone, Scaling::kStandard, Scaling::kRobust, Scaling::kMinMax};
constexpr double kIqrOfNormal = 1.349;  // interquartile range of a standard normal, as usual to three digits

// Quantile of rising values with linear interpolation between order statistics (Hyndman and Fan's type 7).
double quantile(std::span<const double> sorted, double level) {
  const double place = level * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

struct Fit {
  double offset = 0, scale = 1;
};

// The deviations are divided by the largest before they are squared, so that no square overflows or vanishes.
Fit standard(std::span<const double> sorted) {
  double sum = 0, shift = 0, largest = 0, squares = 0;
  const auto n = static_cast<double>(sorted.size());
  for (const double x : sorted) sum += x / n;
  for (const double x : sorted) shift += (x - sum) / n;
  const double mean = sum + shift;
  for (const double x : sorted) largest = std::max(largest, std::abs(x - mean));
  for (const double x : sorted) squares += (x - mean) / largest * ((x - mean) / largest);
  return {mean, largest * std::sqrt(squares / n)};
}

Fit fitted(std::span<const double> sorted, Scaling scaling) {
  if (scaling == Scaling::kNone) return {};
  const double low = sorted.front(), high = sorted.back();
  if (low == high) return {low, 1};
  if (scaling == Scaling::kMinMax) return {low, high - low};
  const Fit moments = standard(sorted);
  if (scaling == Scaling::kStandard) return moments;
  const double spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / kIqrOfNormal;
  return {quantile(sorted, 0.5), spread > 0 ? spread : moments.scale};
}

}  // namespace

const char* to_string(Scaling scaling) {
  switch (scaling) {
    case Scaling::kNone:
      return "none";
    case Scaling::kStandard:
      return "standard";
    case Scaling::kRobust:
      return "robust";
    case Scaling::kMinMax:
      return "min_max";
  }
  return "none";
}

Result<Scaling> scaling_from(std::string_view name, std::string_view where) {
  std::vector<std::string> names;
  for (const Scaling scaling : kScalings) {
    if (name == to_string(scaling)) return scaling;
    names.emplace_back(to_string(scaling));
  }
  return fail({Fault::kBadUse, fmt::format("'{}' is no scaling", name), std::string(where), fmt::to_string(fmt::join(names, ", ")),
               did_you_mean(name, names)});
}

Result<Normalizer> Normalizer::fit(const Series& series, Scaling scaling) {
  std::vector<double> offset(series.channels()), scale(series.channels()), present;
  for (std::size_t c = 0; c < series.channels(); ++c) {
    const std::string where = fmt::format("channel '{}'", series.schema.channels[c].name);
    present.clear();
    for (std::size_t r = 0; r < series.rows(); ++r) {
      const double value = series.at(r, c);
      if (std::isinf(value))
        return fail({Fault::kBadInput, fmt::format("row {} is infinite", r + 1), where, "finite or missing values", ""});
      if (!std::isnan(value)) present.push_back(value);
    }
    if (present.empty()) {
      return fail({Fault::kBadInput, "no value is present", where, "at least one value in the training rows", "Leave the channel out."});
    }
    std::sort(present.begin(), present.end());
    const Fit fit = fitted(present, scaling);
    if (!std::isfinite(fit.offset) || !std::isfinite(fit.scale) || !(fit.scale > 0)) {
      return fail({Fault::kBadInput, "the spread of the values is beyond what a double holds", where, "values of an ordinary size", ""});
    }
    offset[c] = fit.offset;
    scale[c] = fit.scale;
  }
  return Normalizer(std::move(offset), std::move(scale));
}

Json Normalizer::to_json() const { return Json::Object{{"offset", Json::list(offset_)}, {"scale", Json::list(scale_)}}; }

Result<Normalizer> Normalizer::from_json(const Json& json, std::string_view where) {
  const auto bad = [&](std::string what) {
    return fail(
        {Fault::kBadInput, std::move(what), std::string(where), "two lists 'offset' and 'scale' of equal length; scales above 0", ""});
  };
  std::array<std::vector<double>, 2> lists;
  for (std::size_t k = 0; k < 2; ++k) {
    const char* key = k == 0 ? "offset" : "scale";
    const Json* list = json.find(key);
    if (list == nullptr || !list->is_array()) return bad(fmt::format("the normaliser has no list '{}'", key));
    for (const Json& item : list->items()) {
      if (!item.is_number() || !std::isfinite(item.number())) return bad(fmt::format("'{}' holds something that is no number", key));
      lists[k].push_back(item.number());
    }
  }
  if (lists[0].size() != lists[1].size()) return bad(fmt::format("{} offsets stand beside {} scales", lists[0].size(), lists[1].size()));
  if (!std::all_of(lists[1].begin(), lists[1].end(), [](double s) { return s > 0; })) return bad("a scale is not above 0");
  return Normalizer(std::move(lists[0]), std::move(lists[1]));
}

}  // namespace kizzasi
