// Published names of S4 (S4Block of state-spaces/s4 in dplr mode).
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

// layer.kernel.{inv_dt, A_real, A_imag, P, B, C}, layer.D, output_linear.0.*. Where layer.kernel.l_kernel is L > 0, C holds
// C (I - A_bar^L), which is undone here, gradients included.
bool is_published_s4(const NamedTensors& tensors);
Result<PublishedLayer> published_s4(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
