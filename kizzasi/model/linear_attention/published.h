// Published layers of this wing.
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

// torchscale's MultiScaleRetention: q_proj, k_proj, v_proj, g_proj, out_proj, with the constants pos.angle and pos.decay where they are
// stored; heads follow from pos.decay or from num_heads.
bool is_published_retnet(const NamedTensors& tensors);
Result<PublishedLayer> published_retnet(const NamedTensors& tensors, const Json& config, std::string_view where);

// The layers of flash-linear-attention, by their own names and without options that change what they compute (short convolutions where ours
// have none, other activations, negative eigenvalues), which are refused. Heads follow from the gains of the norms, those of HGRN2 from
// num_heads or expand_ratio. An HGRN layer by itself is the first of its model, whose gates have no lower bounds.
bool is_published_gla(const NamedTensors& tensors);
bool is_published_hgrn(const NamedTensors& tensors);
bool is_published_hgrn2(const NamedTensors& tensors);
bool is_published_deltanet(const NamedTensors& tensors);
bool is_published_gated_deltanet(const NamedTensors& tensors);
Result<PublishedLayer> published_gla(const NamedTensors& tensors, const Json& config, std::string_view where);
Result<PublishedLayer> published_hgrn(const NamedTensors& tensors, const Json& config, std::string_view where);
Result<PublishedLayer> published_hgrn2(const NamedTensors& tensors, const Json& config, std::string_view where);
Result<PublishedLayer> published_deltanet(const NamedTensors& tensors, const Json& config, std::string_view where);
Result<PublishedLayer> published_gated_deltanet(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
