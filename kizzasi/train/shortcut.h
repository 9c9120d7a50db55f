// The linear short-cut in closed form: what the backbone starts from and has to beat.
#pragma once

#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/train/dataset.h"

namespace kizzasi {

struct ShortcutFit {
  double lambda = 0;                         // chosen on the validation part, for most outputs
  double least_lambda = 0, most_lambda = 0;  // of those chosen, where an output is much better off with another
  double validation_mse = 0;                 // in window units, mean over the outputs
  std::size_t windows = 0;                   // training origins used
};

// Ridge regression of every step ahead and target on its features (recent past, same slots, known future, and a constant that is not
// penalised), sums of squares in window units; the penalty is lambda times the mean sum of squares of a feature, lambda chosen from a
// geometric grid by the error on the validation origins: one for all outputs, save those whose error another would lower by a fifth. Writes
// the short-cut's tensors, head.scale (the root mean square of the training residuals of each output) and head.bias (such that the head's
// quantiles or scales start as those of the residuals). Without a short-cut (parts = "backbone") the residuals are the answers themselves.
// Origins with a missing answer are left out; none left: an error. Bits do not depend on the pool's threads. Real-time: no.
Result<ShortcutFit> fit_shortcut(const ModelConfig& config, const Dataset& data, const std::vector<RowRange>& train,
                                 const std::vector<RowRange>& validation, NamedTensors& weights, ThreadPool& pool);

}  // namespace kizzasi
