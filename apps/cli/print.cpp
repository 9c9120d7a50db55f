#include "apps/cli/print.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kizzasi::cli {
namespace {

// Places on a terminal that UTF-8 text takes, as far as one place a code point is right.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Zero has no sign for a reader.
Json plain_zeros(Json json) {
  if (json.is_number() && !json.is_integer() && json.number() == 0) return 0.0;
  if (json.is_array()) {
    for (Json& item : json.items()) item = plain_zeros(std::move(item));
  } else if (json.is_object()) {
    for (auto& [name, value] : json.members()) value = plain_zeros(std::move(value));
  }
  return json;
}

}  // namespace

bool print(std::string_view text) { return std::fwrite(text.data(), 1, text.size(), stdout) == text.size(); }

bool print_json(const Json& json) {
  std::string text = plain_zeros(json).dump(isatty(STDOUT_FILENO) == 1 ? 2 : -1);
  text += '\n';
  return print(text);
}

bool flush() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

void remark(const Context& context, std::string_view text) {
  if (context.quiet) return;
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
}

std::string columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const std::string padding(widths[c] - width_of(rows[r][c]), ' ');
      if (c > 0) line += "  ";
      line += c == 0 ? rows[r][c] + padding : padding + rows[r][c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line;
    out += '\n';
    if (r > 0) continue;
    std::size_t total = 0;
    for (const std::size_t width : widths) total += width + 2;
    out.append(std::max<std::size_t>(total, 2) - 2, '-');
    out += '\n';
  }
  return out;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size >= 1e7 || size < 1e-4) return fmt::format("{:.3g}", value);
  const int digits = std::max(0, 3 - static_cast<int>(std::floor(std::log10(size))));
  return fmt::format("{:.{}f}", value, digits);
}

}  // namespace kizzasi::cli
