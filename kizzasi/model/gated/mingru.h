// minGRU and minLSTM (Feng et al. 2024, "Were RNNs all we needed?"): gates that see the input alone, one number of state a channel.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// minGRU:   h = (1 - z) h + z g(v),   z = sigmoid(gate),   (v, gate) = to_hidden_and_gate x
// minLSTM:  h = f h + i g(v),   f = F / (F + I), i = I / (F + I), F = sigmoid(forget gate), I = sigmoid(input gate)
// with g(v) = v + 1/2 for v >= 0, sigmoid(v) below; out = to_out h, or h where inner() is d_model (there is no to_out then).
// Uses d_model and expand or d_inner; ignores every other field. No step size: a lane's dt changes nothing.
// State: h (inner).
extern const LayerKind kMinGruLayer, kMinLstmLayer;

}  // namespace kizzasi
