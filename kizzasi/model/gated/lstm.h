// LSTM and GRU: gates that see the input and the last output through full matrices.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// As torch.nn.LSTM and torch.nn.GRU (Hochreiter and Schmidhuber 1997; Cho et al. 2014), one layer each, of d_model inputs and units:
//   LSTM:  i, f, o = sigmoid, g = tanh of W x + b + U h + c;   s = f s + i g;   h = o tanh(s)
//   GRU:   r, z = sigmoid of W x + b + U h + c;   n = tanh(W_n x + b_n + r (U_n h + c_n));   h = (1 - z) n + z h
// Weights weight_ih_l0, weight_hh_l0, and with proj_bias bias_ih_l0, bias_hh_l0. Uses d_model and proj_bias; ignores every other field.
// State: h (d_model); LSTM also c (d_model).
extern const LayerKind kLstmLayer, kGruLayer;

}  // namespace kizzasi
