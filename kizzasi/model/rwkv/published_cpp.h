// Models of rwkv.cpp as checkpoints of BlinkDL's names: its conversions undone.
#pragma once

#include <string_view>

#include "kizzasi/base/json.h"
#include "kizzasi/model/published.h"
#include "kizzasi/tensor/rwkv_cpp.h"

namespace kizzasi {

struct RwkvCppCheckpoint {
  NamedTensors tensors;  // as published_rwkv reads them
  Json config;           // what rwkv.cpp computes otherwise: "head_norm_epsilon" 1e-5 of versions 5
};

// Decays exp(-exp(w)) that the file holds as 1 or 0, rounded, come back as a finite w that gives them again. What cannot be undone (a decay
// outside of [0, 1]) and a header that contradicts the tensors are errors that name the place.
Result<RwkvCppCheckpoint> published_of(const RwkvCppFile& file, std::string_view where);

}  // namespace kizzasi
