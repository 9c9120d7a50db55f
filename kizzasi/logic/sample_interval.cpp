// What a temporal interval spans, in samples.
#include <fmt/format.h>

#include <cmath>

#include "kizzasi/logic/parser.h"

namespace kizzasi::logic {

std::optional<double> nanoseconds(std::string_view unit) {
  if (unit == "ns") return 1.0;
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  if (unit == "s") return 1e9;
  if (unit == "min") return 60e9;
  if (unit == "h") return 3600e9;
  return {};
}

Result<SampleInterval> sample_interval(const Interval& interval, std::int64_t period_ns, const Source& source) {
  const auto bad = [&](std::string what, std::string expected) {
    return fail({Fault::kBadInput, std::move(what), source.place(interval.offset), std::move(expected), ""});
  };
  double ends[2] = {};
  for (int end = 0; end < 2; ++end) {
    const double number = end == 0 ? interval.low : interval.high;
    const std::string& unit = end == 0 ? interval.low_unit : interval.high_unit;
    double samples = number;
    if (std::isinf(number) && number > 0) {
      ends[end] = kEndless;
      continue;
    }
    if (!unit.empty() && unit != "samples") {
      const auto scale = nanoseconds(unit);
      if (!scale) return bad(fmt::format("'{}' is no unit of time", unit), "h, min, s, ms, us, ns, or no unit for samples");
      if (period_ns <= 0) return bad("a time stands here, but rows are counted, not timed", "whole numbers of samples");
      // A decimal such as 0.6 s is meant as 600 ms, whatever its nearest double; both sides are far below 2^53 ns in use.
      samples = number * *scale / static_cast<double>(period_ns);
      if (std::abs(samples - std::round(samples)) <= 1e-12 * std::abs(samples)) samples = std::round(samples);
    }
    if (samples < 0) return bad(fmt::format("the interval begins at {}{}, before now", number_text(number), unit), "0 or more");
    if (samples != std::floor(samples) || samples > 9e15) {
      return bad(fmt::format("{}{} is not a whole number of samples", number_text(number), unit), "a multiple of the sampling period");
    }
    ends[end] = samples;
  }
  if (ends[0] > ends[1]) return bad("the interval ends before it begins", "[a, b] with a <= b");
  return SampleInterval{static_cast<std::int64_t>(ends[0]), static_cast<std::int64_t>(ends[1])};
}

}  // namespace kizzasi::logic
