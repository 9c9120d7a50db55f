// Physical values to the model's normalised ones and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/signal/series.h"

namespace kizzasi {

enum class Scaling {
  kNone,      // offset 0, scale 1
  kStandard,  // mean and standard deviation
  kRobust,    // median and interquartile range / 1.349; where that range is 0, the standard deviation
  kMinMax,    // minimum and range
};

const char* to_string(Scaling scaling);
Result<Scaling> scaling_from(std::string_view name, std::string_view where);

// One offset and scale a channel, fitted once on the training rows; then the very same numbers offline and online.
// normalised = (value - offset) / scale in double, rounded to float once. A constant channel gets scale 1. NaN stays NaN.
// Thread: any after fitting. Real-time: yes, after fitting.
class Normalizer {
 public:
  Normalizer() = default;
  // Missing values are left out; a channel with none that is present is an error naming it.
  static Result<Normalizer> fit(const Series& series, Scaling scaling);
  Normalizer(std::vector<double> offset, std::vector<double> scale) : offset_(std::move(offset)), scale_(std::move(scale)) {}

  std::size_t channels() const noexcept { return offset_.size(); }
  double offset(std::size_t channel) const noexcept { return offset_[channel]; }
  double scale(std::size_t channel) const noexcept { return scale_[channel]; }
  float normalise(double value, std::size_t channel) const noexcept {
    return static_cast<float>((value - offset_[channel]) / scale_[channel]);
  }
  double physical(double normalised, std::size_t channel) const noexcept { return normalised * scale_[channel] + offset_[channel]; }

  Json to_json() const;
  static Result<Normalizer> from_json(const Json& json, std::string_view where);

 private:
  std::vector<double> offset_, scale_;  // (channels)
};

}  // namespace kizzasi
