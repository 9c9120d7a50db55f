// Where the time of a model's step goes, layer by layer.
#pragma once

#include <string>

#include "apps/cli/verb.h"

namespace kizzasi::cli {

// A frame of the model in that file, taken apart: the bench verb with --model.
Result<int> bench_layers(const std::string& path, double seconds, const Context& context);

}  // namespace kizzasi::cli
