// usage: small_model FILE: writes a small untrained model with fixed weights, for tests of the verbs.
// Channels flow [m3/h] and level [m] (targets), valve (observed), hour (known ahead); a frame every 15 minutes; 4 steps at once; flow >= 0.
#include <cstdio>

#include "kizzasi/model/model_file.h"

int main(int count, char** words) {
  using namespace kizzasi;
  if (count != 2) return 2;
  ModelFile m;
  m.config.backbone.d_model = 16;
  m.config.backbone.head_dim = 4;
  m.config.backbone.n_layers = 1;
  m.config.context = 8;
  m.config.recent = 4;
  m.config.horizon = 4;
  m.config.head.levels = {0.1, 0.5, 0.9};
  m.schema = {
      {{"flow", "m3/h", Role::kTarget}, {"level", "m", Role::kTarget}, {"valve", "", Role::kObserved}, {"hour", "", Role::kKnownFuture}},
      900'000'000'000,
      "UTC"};
  m.normalizer = Normalizer({5, 2, 50, 12}, {4, 1, 20, 7});
  m.weights = SignalModel::initial_weights(m.config, channel_counts(m.schema), Rng(1));
  Rng rng(2);
  for (auto& [name, tensor] : m.weights) {
    if (!name.starts_with("decoder.") && !name.starts_with("shortcut.")) continue;
    for (float& w : tensor.values) w += static_cast<float>(0.2 * rng.normal());
  }
  m.constraints = {{"floor", "flow >= 0"}};
  m.training = Json::Object{{"steps", 0}, {"note", "made for tests"}};
  if (auto written = write_model_file(words[1], m); !written) {
    std::fprintf(stderr, "%s\n", written.error().text().c_str());
    return 1;
  }
  return 0;
}
