// Whether another device can run a model.
#pragma once

#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/kernels/backend.h"
#include "kizzasi/model/backbone.h"

namespace kizzasi {

// The kernels that step and run of this backbone call, found by running both. Training calls these and Kernel::kGemm (no ring attention).
std::vector<kernels::Kernel> needed_kernels(const Backbone& backbone);

// An error that names the kernels which the backbone needs and `backend` does not offer. `training`: for forward, too. At load time.
Result<void> check_backend(const kernels::Backend& backend, const Backbone& backbone, bool training = false);

}  // namespace kizzasi
