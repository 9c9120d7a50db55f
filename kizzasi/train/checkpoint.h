// Where a training stands: enough to go on to the very same end.
#pragma once

#include <string>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// One safetensors file; tensors of the parts below under "weights.", "average.", "best." and "optimizer.".
struct Checkpoint {
  std::int64_t step = 0;
  double best_validation = 0;  // of `best`
  std::int64_t best_step = 0;
  std::int64_t stale = 0;      // validations since
  std::int64_t validated = 0;  // step of the last validation
  Json settings;               // what must be equal for a resumed run to be the same run: configurations, data hash
  Json progress;               // the history so far
  NamedTensors weights, average, best, optimizer;
};

// Replaced at once: a reader finds the old file or the new one.
Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
Result<Checkpoint> read_checkpoint(const std::string& path);

}  // namespace kizzasi
