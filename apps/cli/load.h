// A recording from disk as prepared series, the same way in every verb.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/verb.h"
#include "kizzasi/data/prepare.h"
#include "kizzasi/io/csv_options.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::cli {

class Options;

// The options about a file that verbs share; `declare` adds them all.
struct LoadOptions {
  io::CsvOptions csv;
  data::PrepareOptions prepare;
  void declare(Options& options);
};

// Reads and prepares; what was filled, dropped or set aside is remarked.
Result<std::vector<Series>> load_series(const std::string& file, const LoadOptions& options, const Context& context);

// Constraints of --limit TEXT (repeated) and --limits FILE, with the parameters of --set; where a model is at hand they apply beside those
// in its file.
struct LimitOptions {
  std::vector<std::string> texts, sets;
  std::string file;
  void declare(Options& options);
};
Result<std::vector<ConstraintText>> load_limits(const LimitOptions& options);

}  // namespace kizzasi::cli
