// Published names of DSS-softmax (S4Block of state-spaces/s4 with disc = dss): for whole sequences alone.
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

// The names of S4Block in diagonal mode; which it is, the configuration says ("disc"): published_s4d sends it here. The weights of the
// kernel depend on its length,
//   K[l] = Re(sum B C (a - 1) r a^l),   a = exp(step A), r = x* / (|x|^2 + 1e-7), x = (a^L - 1) A
// so only forward computes it.
Result<PublishedLayer> published_dss(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
