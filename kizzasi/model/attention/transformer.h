// Transformers in the forms of Llama (Touvron et al. 2023; with a window: Mistral, Jiang et al. 2023), GPT-2 (Radford et al. 2019) and
// Mixtral.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

extern const StackForm kLlama, kGpt2, kMixtral;

}  // namespace kizzasi
