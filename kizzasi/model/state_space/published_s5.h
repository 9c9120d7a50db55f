// Published names of S5 (lindermanlab/S5): the SSM alone, and in its layer with a layer norm or a batch norm after training.
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

// Lambda_re, Lambda_im, B, C (C1 and C2 where bidirectional), D, log_step; in a layer below "seq.", with norm.*, out1.*, out2.* and
// batch_stats.norm.*. conj_sym false is halved C. clip_eigs is always on here: a file without it whose Lambda it would move is refused.
bool is_published_s5(const NamedTensors& tensors);
Result<PublishedLayer> published_s5(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
