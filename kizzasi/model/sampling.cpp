#include "kizzasi/model/sampling.h"

#include <fmt/format.h>

#include <cmath>

namespace kizzasi {

Result<Sampling> sampling_of(double frames, std::string_view where) {
  constexpr double kClose = 1e-6;  // of a ratio that came from a rate or a period of a few digits
  const auto whole = [](double value) {
    const double nearest = std::round(value);
    return nearest >= 1 && nearest <= static_cast<double>(kMostSampling) && std::abs(value - nearest) <= kClose * nearest;
  };
  if (whole(frames)) return Sampling{static_cast<std::size_t>(std::round(frames)), 1};
  if (frames > 0 && whole(1 / frames)) return Sampling{1, static_cast<std::size_t>(std::round(1 / frames))};
  return fail({Fault::kBadUse, fmt::format("{} frames in a period of the training data", frames), std::string(where),
               fmt::format("a whole multiple of its rate or a whole part of it, up to {}", kMostSampling),
               "Resample the recording to such a rate."});
}

}  // namespace kizzasi
