// kizzasi solve: problems as JSON lines in, answers as JSON lines out, as they come.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "apps/cli/print.h"
#include "apps/cli/solve_line.h"
#include "apps/cli/verbs.h"

namespace kizzasi::cli {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 26;

// One line without its newline; false at the end. What goes beyond the longest is dropped.
bool read_line(std::FILE* in, std::string& line, bool& too_long) {
  line.clear();
  too_long = false;
  for (int c = 0; (c = std::getc(in)) != EOF;) {
    if (c == '\n') return true;
    if (line.size() < kLongestLine) {
      line += static_cast<char>(c);
    } else {
      too_long = true;
    }
  }
  return !line.empty();
}

Result<Json> answered(const std::string& line, bool too_long, const std::string& where, bool timed, Json& id) {
  if (too_long) return fail({Fault::kBadInput, "the line is too long", "", fmt::format("at most {} bytes", kLongestLine), ""});
  const auto problem = Json::parse(line, where);
  if (!problem) return fail(problem.error());
  if (const Json* field = problem->find("id")) id = *field;
  return solve_line(*problem, timed);
}

}  // namespace

Result<int> solve(Options& options, const Context&) {
  std::string file;
  bool timed = false;
  options.positional("FILE", file, "Problems, one JSON object a line; default: standard input.", false);
  options.flag("--time", timed, "How long quadratic programs take, beside their answers.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(nullptr, &std::fclose);
  if (!file.empty() && file != "-") {
    opened.reset(std::fopen(file.c_str(), "rb"));
    if (opened == nullptr) return fail({Fault::kUnavailable, "the file cannot be read", file, "a file of JSON lines", ""});
  }
  std::FILE* in = opened != nullptr ? opened.get() : stdin;
  const std::string source = opened != nullptr ? file : "standard input";
  std::string line;
  bool too_long = false, all_well = true;
  for (std::size_t number = 1; read_line(in, line, too_long); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{} line {}", source, number);
    Json id;
    const auto answer = answered(line, too_long, where, timed, id);
    Json out = Json::object();
    if (answer) {
      out = *answer;
    } else {
      all_well = false;
      if (!id.is_null()) out["id"] = id;
      out["error"] = answer.error().text();
      std::fputs(fmt::format("{}: {}\n", where, answer.error().text()).c_str(), stderr);
    }
    if (!print(out.dump() + "\n") || !flush()) return 1;
  }
  if (std::ferror(in) != 0)
    return fail({Fault::kUnavailable, "reading stopped with an error", source, "a file that can be read to its end", ""});
  return all_well ? 0 : 1;
}

}  // namespace kizzasi::cli
