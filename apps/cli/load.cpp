#include "apps/cli/load.h"

#include "apps/cli/constraint_source.h"
#include "apps/cli/options.h"
#include "apps/cli/print.h"
#include "kizzasi/io/recording.h"

namespace kizzasi::cli {

void LoadOptions::declare(Options& options) {
  options.fields(csv, "The file");
  options.fields(prepare, "Its channels and times");
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
  options.option("--limit TEXT", texts, "A constraint, such as 'vehicles >= 0', beside those of a model; may be repeated.");
  options.option("--limits FILE", file, "A file of constraints (TOML, YAML or JSON), which apply beside those of a model.");
  options.option("--set NAME=VALUE", sets, kSetHelp);
}

Result<std::vector<ConstraintText>> load_limits(const LimitOptions& options) {
  return read_constraint_source(options.file, options.texts, options.sets);
}

}  // namespace kizzasi::cli
