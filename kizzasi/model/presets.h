// Starting points for kinds of signals: a configuration and how many channels go in and come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kizzasi/model/config.h"

namespace kizzasi {

struct Preset {
  ModelConfig config;
  std::size_t inputs = 1, outputs = 1;
};

namespace presets {

// One channel of sound. The context is 8192 frames at 44.1 kHz, in proportion at other rates, rounded up to a power of two; a rate that is
// not above 0 or beyond 10 MHz is an error.
Result<Preset> audio(double sample_rate = 44100);
// As many targets as joints, or a state in and an action out.
Preset robotics(std::size_t axes);
Preset robotics(std::size_t state_dim, std::size_t action_dim);
Preset sensor(std::size_t channels);
Preset lightweight(std::size_t inputs, std::size_t outputs);
Preset video(std::size_t features);
Preset control(std::size_t state_dim, std::size_t action_dim);
Preset custom();                        // a middle size to change at will
Preset forecast(std::size_t channels);  // many steps ahead at once from a window: plants, traffic, demand; a season is set by the data

}  // namespace presets

// What `--preset NAME` takes: audio, robotics, sensor, lightweight, video, control, custom, forecast. Channels come from the data.
std::span<const std::string_view> preset_names();
Result<ModelConfig> preset(std::string_view name, double sample_rate = 44100);

}  // namespace kizzasi
