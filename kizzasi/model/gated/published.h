// Published names of the gated recurrent layers: lucidrains' minGRU-pytorch, torch.nn.LSTM and torch.nn.GRU.
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

bool is_published_mingru(const NamedTensors& tensors);
bool is_published_minlstm(const NamedTensors& tensors);
Result<PublishedLayer> published_mingru(const NamedTensors& tensors, const Json& config, std::string_view where);
Result<PublishedLayer> published_minlstm(const NamedTensors& tensors, const Json& config, std::string_view where);

// Any number of layers (weight_hh_l0, weight_hh_l1, ...); projections, other directions and dropout are refused. A GRU and an LSTM differ
// by the rows of their weights.
bool is_published_lstm(const NamedTensors& tensors);
bool is_published_gru(const NamedTensors& tensors);
Result<PublishedLayer> published_lstm(const NamedTensors& tensors, const Json& config, std::string_view where);
Result<PublishedLayer> published_gru(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
