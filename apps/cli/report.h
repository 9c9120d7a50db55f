// The report: one HTML file that opens without a network. What it shows is a Json value, described in web/report/README.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/base/json.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::cli {

// `content` has "title", "parts" and "foot". Any text is safe in it; numbers that are not finite become gaps.
std::string report_html(const Json& content);

// Writes it as a whole file or not at all. Errors: no folder, no permission, a full disk.
Result<void> write_report(const std::string& path, const Json& content);

// Pieces of a plot block, so that verbs agree on their form. `from` is the index on the x axis of the first value.
// An axis from that row on, of times in the recording's own clock, or of rows where those are counted.
Json report_axis(const Series& series, std::size_t begin);
// role: truth, history, forecast, limit, residual, score; "" takes the next colour.
Json report_line(std::string_view name, std::string_view role, std::span<const double> values, std::size_t from = 0);
Json report_band(std::string_view name, std::span<const double> low, std::span<const double> high, std::size_t from = 0);

}  // namespace kizzasi::cli
