// What `check` proposes to train, and how.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kizzasi/base/json.h"
#include "kizzasi/data/limits.h"
#include "kizzasi/data/season.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::cli {

struct TrainSuggestion {
  bool enough = false;     // rows to learn from
  std::string preset;      // a name that --preset takes
  std::size_t season = 0;  // frames; 0: none
  std::size_t horizon = 1, context = 1;
  std::vector<std::string> limits, reasons;  // lines of the constraint language and why
  std::string command;                       // one line for a shell
};

// `given`: options about the file that the user gave to `check` and that `train` needs, too, as words of a command line.
TrainSuggestion suggest_training(const std::string& file, const std::vector<Series>& series, const std::vector<data::Season>& seasons,
                                 const std::vector<data::SuggestedLimit>& limits, bool sound, const std::vector<std::string>& given);

Json to_json(const TrainSuggestion& suggestion);

// A word as a POSIX shell takes it: in quotes where it has to be.
std::string shell_word(const std::string& word);

}  // namespace kizzasi::cli
