#include "kizzasi/model/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kizzasi/base/suggest.h"

namespace kizzasi {
namespace {

ModelConfig config_of(std::string_view architecture, std::int64_t d_model, std::int64_t d_state, std::int64_t n_layers,
                      std::int64_t context) {
  ModelConfig config;
  config.backbone.architecture = std::string(architecture);
  config.backbone.d_model = d_model;
  config.backbone.d_state = d_state;
  config.backbone.n_layers = n_layers;
  config.backbone.head_dim = std::min<std::int64_t>(64, d_model / 4);
  config.context = context;
  return config;
}

struct Named {
  std::string_view name;
  std::string_view architecture;
  std::int64_t d_model, d_state, n_layers, context;
};
// The rows of the manual's table of presets.
constexpr std::array kPresets = std::to_array<Named>({{"audio", "mamba2", 256, 16, 4, 8192},
                                                      {"robotics", "mamba2", 128, 8, 3, 1024},
                                                      {"sensor", "mamba2", 64, 8, 2, 2048},
                                                      {"lightweight", "mamba", 32, 4, 1, 512},
                                                      {"video", "mamba2", 512, 32, 6, 16384},
                                                      {"control", "mamba2", 64, 8, 2, 256},
                                                      {"custom", "mamba2", 128, 16, 3, 4096},
                                                      {"forecast", "mamba2", 32, 16, 2, 192}});
constexpr auto kNames = [] {
  std::array<std::string_view, kPresets.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kPresets[i].name;
  return names;
}();

ModelConfig row(std::string_view name) {
  const Named& each = *std::find_if(kPresets.begin(), kPresets.end(), [&](const Named& p) { return p.name == name; });
  return config_of(each.architecture, each.d_model, each.d_state, each.n_layers, each.context);
}

}  // namespace

namespace presets {

Result<Preset> audio(double sample_rate) {
  if (!(sample_rate > 0 && sample_rate <= 1e7)) {
    return fail({Fault::kBadUse, fmt::format("{} Hz is no sample rate of sound", sample_rate), "", "above 0, at most 10 MHz", ""});
  }
  ModelConfig config = row("audio");
  const double frames = static_cast<double>(config.context) * sample_rate / 44100;
  config.context = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::ceil(frames))));
  return Preset{config, 1, 1};
}
Preset robotics(std::size_t axes) { return {row("robotics"), axes, axes}; }
Preset robotics(std::size_t state_dim, std::size_t action_dim) { return {row("robotics"), state_dim, action_dim}; }
Preset sensor(std::size_t channels) { return {row("sensor"), channels, channels}; }
Preset lightweight(std::size_t inputs, std::size_t outputs) { return {row("lightweight"), inputs, outputs}; }
Preset video(std::size_t features) { return {row("video"), features, features}; }
Preset control(std::size_t state_dim, std::size_t action_dim) { return {row("control"), state_dim, action_dim}; }
Preset custom() { return {row("custom"), 1, 1}; }
Preset forecast(std::size_t channels) {
  ModelConfig config = row("forecast");
  config.windowed = true;
  config.patch = 8;
  config.horizon = 24;
  return {config, channels, channels};
}

}  // namespace presets

std::span<const std::string_view> preset_names() { return kNames; }

Result<ModelConfig> preset(std::string_view name, double sample_rate) {
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
    const std::vector<std::string> names(kNames.begin(), kNames.end());
    return fail({Fault::kBadUse, fmt::format("there is no preset '{}'", name), "", fmt::format("one of {}", fmt::join(names, ", ")),
                 did_you_mean(name, names)});
  }
  if (name == "forecast") return presets::forecast(1).config;
  if (name != "audio") return row(name);
  const auto audio = presets::audio(sample_rate);
  if (!audio) return fail(audio.error());
  return audio->config;
}

}  // namespace kizzasi
