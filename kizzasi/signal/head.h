// What a model says about the next values: which family of distribution, and by how many numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kizzasi/base/fields.h"

namespace kizzasi {

enum class HeadKind { kPoint, kGaussian, kStudentT, kMixture, kQuantiles };

const char* to_string(HeadKind kind);  // "point", "gaussian", "student_t", "mixture", "quantiles"

// Parameters of one predicted value, in this order, all in the model's normalised units ("raw" = before the map to the legal range):
//   point      value
//   gaussian   mean, raw scale                      scale = softplus(raw) + 1e-4
//   student_t  location, raw scale, raw freedom     freedom = 2 + softplus(raw)
//   mixture    K weights (logits), K means, K raw scales: a mixture of K Gaussians
//   quantiles  one for each level: the median first, then the raw steps outward: upper levels rising, then lower levels falling;
//              q[next] = q[previous] +- softplus(raw), so that quantiles never cross
struct HeadConfig {
  std::string kind = "quantiles";
  std::vector<double> levels{0.005, 0.025, 0.05, 0.1, 0.2,  0.3,   0.4,  0.5,
                             0.6,   0.7,   0.8,  0.9, 0.95, 0.975, 0.995};  // rising, 0.5 among them
  std::int64_t components = 3;                                              // of a mixture

  void fields(FieldVisitor& visit);
  HeadKind which() const;
  std::size_t parameters() const;  // numbers a predicted value
  Result<void> check() const;
  friend bool operator==(const HeadConfig&, const HeadConfig&) = default;
};

}  // namespace kizzasi
