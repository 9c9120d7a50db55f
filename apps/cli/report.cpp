#include "apps/cli/report.h"

#include <utility>

#include "apps/cli/report_template.h"
#include "kizzasi/io/file.h"

namespace kizzasi::cli {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// In JSON a '<' stands only inside texts; written as \u003c it can end no script element.
std::string script_safe(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string report_html(const Json& content) {
  const std::string_view page = kReportTemplate;
  constexpr std::string_view kTitle = "@TITLE@", kContent = "@CONTENT@";
  const std::size_t title_at = page.find(kTitle), content_at = page.find(kContent);
  const Json* title = content.find("title");
  std::string out(page.substr(0, title_at));
  out += escaped(title != nullptr && title->is_string() ? title->string() : "Kizzasi");
  out += page.substr(title_at + kTitle.size(), content_at - title_at - kTitle.size());
  out += script_safe(content.dump());
  out += page.substr(content_at + kContent.size());
  return out;
}

Result<void> write_report(const std::string& path, const Json& content) { return io::write_file(path, report_html(content)); }

Json report_axis(const Series& series, std::size_t begin) {
  const std::int64_t step_ns = series.schema.step_ns;
  Json axis = Json::object();
  axis["kind"] = step_ns > 0 ? "time" : "number";
  axis["start"] = step_ns > 0 ? static_cast<double>(series.time_ns(begin)) * 1e-6 : static_cast<double>(begin);
  axis["step"] = step_ns > 0 ? static_cast<double>(step_ns) * 1e-6 : 1.0;
  if (step_ns == 0) axis["label"] = "row";
  return axis;
}

Json report_line(std::string_view name, std::string_view role, std::span<const double> values, std::size_t from) {
  Json line = Json::object();
  line["name"] = name;
  if (!role.empty()) line["role"] = role;
  if (from > 0) line["from"] = from;
  line["values"] = Json::list(values);
  return line;
}

Json report_band(std::string_view name, std::span<const double> low, std::span<const double> high, std::size_t from) {
  Json band = Json::object();
  band["name"] = name;
  if (from > 0) band["from"] = from;
  band["low"] = Json::list(low);
  band["high"] = Json::list(high);
  return band;
}

}  // namespace kizzasi::cli
