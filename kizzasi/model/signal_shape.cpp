#include "kizzasi/model/signal_shape.h"

#include <algorithm>

namespace kizzasi {

SignalShape::SignalShape(const ModelConfig& config, ChannelCounts counts) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const bool independent = config.channel_mode == "independent";
  lanes = independent ? counts.targets : 1;
  targets = independent ? 1 : counts.targets;
  observed = counts.observed;
  known = counts.known;
  horizon = size(config.horizon);
  has_shortcut = config.parts != "backbone";
  has_backbone = config.parts != "shortcut";
  recent = has_shortcut ? size(config.recent) : 0;
  season = size(config.season);
  seasons = season == 0 ? 0 : size(config.seasons);
  context = size(config.context);
  patch = size(config.patch);
  parameters = config.head.parameters();
  decoder = size(config.d_decoder);
  d_model = size(config.backbone.d_model);
  windowed = config.windowed;
  intercept = config.intercept;
}

std::size_t SignalShape::lookback() const noexcept {
  const std::size_t slots = seasons == 0 ? 0 : season * ((horizon - 1) / season + seasons);
  return std::max({context, recent, slots, std::size_t{1}});
}

}  // namespace kizzasi
