#include "apps/cli/load.h"

#include <fmt/format.h>

#include "apps/cli/options.h"
#include "apps/cli/print.h"
#include "kizzasi/io/config_file.h"
#include "kizzasi/io/recording.h"
#include "kizzasi/logic/constraint_file.h"

namespace kizzasi::cli {

void LoadOptions::declare(Options& options) {
  options.fields(csv);
  options.fields(prepare);
}

Result<std::vector<Series>> load_series(const std::string& file, const LoadOptions& options, const Context& context) {
  auto table = io::read_recording(file, options.csv);
  if (!table) return fail(table.error());
  data::PrepareReport report;
  auto series = data::prepare(*table, options.prepare, report);
  if (!series) return series;
  for (const std::string& sentence : report.remarks) remark(context, sentence);
  return series;
}

void LimitOptions::declare(Options& options) {
  options.option("--limit TEXT", texts, "A constraint, such as 'vehicles >= 0'; may be repeated.");
  options.option("--limits FILE", file, "A file of constraints (TOML, YAML or JSON).");
}

Result<std::vector<ConstraintText>> load_limits(const LimitOptions& options) {
  std::vector<ConstraintText> all;
  if (!options.file.empty()) {
    const auto config = io::read_config_file(options.file);
    if (!config) return fail(config.error());
    const auto place = [&](std::string_view pointer) {
      const auto found = config->places.find(pointer);
      return found == config->places.end() ? TextPlace{} : TextPlace{found->second.first, found->second.second};
    };
    auto listed = read_constraints(config->values, options.file, place);
    if (!listed) return fail(listed.error());
    all = std::move(*listed);
  }
  for (const std::string& text : options.texts) all.push_back(constraint_from_option(text, "--limit"));
  return all;
}

}  // namespace kizzasi::cli
