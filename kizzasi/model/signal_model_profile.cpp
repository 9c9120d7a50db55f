#include <algorithm>

#include "kizzasi/base/aligned.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/model/signal_parts.h"

namespace kizzasi {

std::vector<LayerCost> SignalModel::profile(const Clock& clock, std::size_t rounds) const {
  const FloatEnv env;
  const Parts& p = *parts_;
  const SignalShape& s = p.shape;
  std::vector<LayerCost> costs;
  if (p.backbone) costs = p.backbone->profile(clock, rounds);

  AlignedVector<std::byte> state(p.layout.bytes());
  reset(state);
  std::vector<float> frame(p.counts.inputs(), 0.5f), known(s.horizon * s.known), params(p.counts.targets * s.parameters),
      anchor(p.counts.targets), spread(p.counts.targets), scratch(scratch_floats());
  std::vector<double> times;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (float& x : frame) x = -x;
    const double before = clock.seconds();
    push(state, frame, 1.0f, scratch);
    predict(state, known, 0, 1, params, anchor, spread, scratch);
    times.push_back(clock.seconds() - before);
  }
  std::sort(times.begin(), times.end());
  LayerCost around{"around it", p.weight_bytes, p.layout.bytes(), 0, times[rounds / 2], times[rounds * 99 / 100]};
  for (const LayerCost& layer : costs) {
    around.weight_bytes -= std::min(around.weight_bytes, layer.weight_bytes);
    around.state_bytes -= std::min(around.state_bytes, layer.state_bytes * s.lanes);
    around.seconds -= layer.seconds * static_cast<double>(s.lanes);
  }
  around.seconds = std::max(around.seconds, 0.0);
  costs.push_back(around);
  return costs;
}

}  // namespace kizzasi
