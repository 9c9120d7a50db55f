#include "kizzasi/engine/forecast.h"

#include <algorithm>

#include "kizzasi/engine/rollout.h"
#include "kizzasi/engine/session.h"

namespace kizzasi {
namespace {

constexpr std::size_t kFewestPaths = 200;  // behind quantiles

}  // namespace

Result<void> Session::forecast(const ForecastRequest& request, Forecast& out) const {
  Rollout rollout(*predictor_, state_, request);
  if (auto good = rollout.check(); !good) return good;
  if (auto done = rollout.points(out); !done) return done;
  const bool from_paths = rollout.rolled() && !out.block.levels.empty();
  const std::size_t a_path = request.horizon * predictor_->targets();
  if (from_paths) {
    const std::size_t count = std::max(kFewestPaths, request.temperature == 1 ? request.samples : 0);
    std::vector<double> values;
    if (auto done = rollout.paths(count, request.temperature == 1 ? request.samples : 0, 1, out, values); !done) return done;
    rollout.quantiles_from_paths(values, count, out);
    if (request.temperature == 1) {
      values.resize(request.samples * a_path);
      out.samples = std::move(values);
    }
  }
  if (out.samples.size() != request.samples * a_path) {
    if (auto done = rollout.paths(request.samples, request.samples, request.temperature, out, out.samples); !done) return done;
  }
  rollout.reach(out);
  return {};
}

}  // namespace kizzasi
