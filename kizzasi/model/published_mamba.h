// Checkpoints of the Mamba family: names and keys of Hugging Face (mamba, falcon_mamba, mamba2) and of mamba_ssm ("original").
#pragma once

#include "kizzasi/model/published.h"

namespace kizzasi {

bool is_published_mamba(const NamedTensors& tensors);
// Another activation, layer norm in place of RMS norm and attention layers are refused.
Result<PublishedModel> published_mamba(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
