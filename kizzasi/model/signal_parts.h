// The insides of a SignalModel, shared by its inference and training halves. Included by signal_model*.cpp only.
#pragma once

#include <memory>
#include <vector>

#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/signal_features.h"
#include "kizzasi/model/signal_model.h"

namespace kizzasi {

struct SignalModel::Parts {
  ModelConfig config;
  ChannelCounts counts;
  SignalShape shape;
  Sampling sampling;
  SignalShape filling;  // the shape with the season in frames of the stream
  WindowNorm norm = WindowNorm::kNone;

  std::unique_ptr<Backbone> backbone;     // absent where parts = "shortcut"
  kernels::PackedWeight embed;            // (d_model, vector)
  std::vector<float> embed_bias;          // (d_model)
  kernels::PackedWeight decoder_context;  // (decoder, d_model)
  std::vector<float> decoder_bias;        // (decoder)
  kernels::PackedWeight decoder_slots;    // (decoder, slots + known)
  std::vector<float> decoder_step;        // (horizon, decoder)
  kernels::PackedWeight decoder_mix;      // (decoder, decoder)
  std::vector<float> decoder_mix_bias;    // (decoder)
  kernels::PackedWeight decoder_out;      // (outputs, decoder)

  kernels::PackedWeight recent_first;  // (targets, recent * past): step 1 alone
  kernels::PackedWeight recent_all;    // (horizon * targets, recent * past)
  std::vector<float> shortcut_slots;   // (horizon, targets, seasons)
  std::vector<float> shortcut_known;   // (horizon, targets, known)
  std::vector<float> shortcut_bias;    // (horizon, targets)
  std::vector<float> head_bias;        // (horizon, outputs)
  std::vector<float> head_scale;       // (horizon, targets)

  PackedNames packed;

  StateLayout layout;
  std::size_t hidden_at = 0, values_at = 0, missing_at = 0, frames_at = 0;  // offsets of the state's fields
  std::size_t lane_stride = 0;  // bytes from one lane's backbone state to the next; the first stands at 0
  std::size_t ring = 1;         // frames
  std::size_t scratch = 0, weights = 0, weight_bytes = 0;

  // location (count, targets of the lane) of the steps from `first`: recent (recent * past), slots (count, slots + known).
  void shortcut(std::span<const float> recent, std::span<const float> slots, std::size_t first, std::size_t count, std::span<float> all,
                std::span<float> location) const noexcept;
};

inline constexpr std::size_t kRunRows = 64;  // rows that push_rows takes through the backbone at once

}  // namespace kizzasi
