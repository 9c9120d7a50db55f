#include "kizzasi/train/head_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/rowwise.h"
#include "kizzasi/train/gamma_function.h"

namespace kizzasi {
namespace {

constexpr double kScaleFloor = 1e-4;  // as in signal/head.h
const double kHalfLogTwoPi = 0.5 * std::log(2 * std::numbers::pi);

// softplus(x), and its derivative from the same exponential.
double softplus(double x, double& slope) {
  const double e = std::exp(-std::abs(x));
  slope = (x >= 0 ? 1 : e) / (1 + e);
  return std::max(x, 0.0) + std::log1p(e);
}

// One predicted value: the loss of raw parameters `p` against the target `t`, and its derivatives into `d`.
// Thread: one at a time (it keeps scratch).
class RowLoss {
 public:
  RowLoss(const HeadConfig& head, PointLoss point) : kind_(head.which()), point_(point), levels_(head.levels) {
    if (kind_ == HeadKind::kMixture) {
      components_ = static_cast<std::size_t>(head.components);
      prior_.resize(components_);
      posterior_.resize(components_);
      scales_.resize(components_);
      slopes_.resize(components_);
    }
    // Places of the levels in the order of the parameters: the median, upwards, then downwards.
    if (kind_ == HeadKind::kQuantiles) {
      middle_ = static_cast<std::size_t>(std::find(levels_.begin(), levels_.end(), 0.5) - levels_.begin());
      quantiles_.resize(levels_.size());
      pulls_.resize(levels_.size());
      slopes_.resize(levels_.size());
    }
  }

  double operator()(std::span<const double> p, double t, std::span<double> d) {
    switch (kind_) {
      case HeadKind::kPoint:
        return point(p[0] - t, d[0]);
      case HeadKind::kGaussian:
        return gaussian(p, t, d);
      case HeadKind::kStudentT:
        return student_t(p, t, d);
      case HeadKind::kMixture:
        return mixture(p, t, d);
      case HeadKind::kQuantiles:
        return quantiles(p, t, d);
    }
    return 0;
  }

 private:
  double point(double e, double& d) const {
    switch (point_) {
      case PointLoss::kAbsolute:
        d = (e > 0) - (e < 0);
        return std::abs(e);
      case PointLoss::kHuber:
        d = std::clamp(e, -1.0, 1.0);
        return std::abs(e) <= 1 ? 0.5 * e * e : std::abs(e) - 0.5;
      case PointLoss::kSquared:
        d = 2 * e;
        return e * e;
    }
    return 0;
  }

  static double gaussian(std::span<const double> p, double t, std::span<double> d) {
    double slope = 0;
    const double s = softplus(p[1], slope) + kScaleFloor, z = (t - p[0]) / s;
    d[0] = -z / s;
    d[1] = (1 - z * z) / s * slope;
    return 0.5 * z * z + std::log(s) + kHalfLogTwoPi;
  }

  static double student_t(std::span<const double> p, double t, std::span<double> d) {
    double scale_slope = 0, freedom_slope = 0;
    const double s = softplus(p[1], scale_slope) + kScaleFloor, v = 2 + softplus(p[2], freedom_slope), z = (t - p[0]) / s;
    const double slope = (v + 1) * z / (v + z * z), log_term = std::log1p(z * z / v);
    d[0] = -slope / s;
    d[1] = (1 - slope * z) / s * scale_slope;
    d[2] = (0.5 / v - 0.5 * digamma_half_step(0.5 * v) + 0.5 * log_term - 0.5 * slope * z / v) * freedom_slope;
    return std::log(s) + 0.5 * std::log(v * std::numbers::pi) - log_gamma_half_step(0.5 * v) + 0.5 * (v + 1) * log_term;
  }

  double mixture(std::span<const double> p, double t, std::span<double> d) {
    const std::size_t count = components_;
    const auto logits = p.first(count), means = p.subspan(count, count), raw = p.subspan(2 * count, count);
    const double normalizer = softmax(logits, prior_);
    for (std::size_t k = 0; k < count; ++k) {
      const double s = scales_[k] = softplus(raw[k], slopes_[k]) + kScaleFloor, z = (t - means[k]) / s;
      posterior_[k] = logits[k] - normalizer - 0.5 * z * z - std::log(s) - kHalfLogTwoPi;
    }
    const double log_density = softmax(posterior_, posterior_);
    for (std::size_t k = 0; k < count; ++k) {
      const double s = scales_[k], z = (t - means[k]) / s;
      d[k] = prior_[k] - posterior_[k];
      d[count + k] = -posterior_[k] * z / s;
      d[2 * count + k] = posterior_[k] * (1 - z * z) / s * slopes_[k];
    }
    return -log_density;
  }

  double quantiles(std::span<const double> p, double t, std::span<double> d) {
    const std::size_t count = levels_.size();
    quantiles_[middle_] = p[0];
    std::size_t next = 1;
    for (std::size_t i = middle_ + 1; i < count; ++i) {
      quantiles_[i] = quantiles_[i - 1] + softplus(p[next], slopes_[next]);
      ++next;
    }
    for (std::size_t i = middle_; i-- > 0;) {
      quantiles_[i] = quantiles_[i + 1] - softplus(p[next], slopes_[next]);
      ++next;
    }
    const double share = 1 / static_cast<double>(count);
    double loss = 0, whole = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double e = quantiles_[i] - t;
      pulls_[i] = share * (e < 0 ? -levels_[i] : e > 0 ? 1 - levels_[i] : 0.5 - levels_[i]);
      loss += share * std::max(-levels_[i] * e, (1 - levels_[i]) * e);
      whole += pulls_[i];
    }
    // A step moves its own quantile and all further out.
    d[0] = whole;
    double beyond = 0;
    for (std::size_t i = count; i-- > middle_ + 1;) d[i - middle_] = (beyond += pulls_[i]) * slopes_[i - middle_];
    beyond = 0;
    for (std::size_t i = 0; i < middle_; ++i) d[count - 1 - i] = -(beyond += pulls_[i]) * slopes_[count - 1 - i];
    return loss;
  }

  // Returns log(sum(exp(logits))); out may be logits.
  static double softmax(std::span<const double> logits, std::span<double> out) {
    const double highest = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (std::size_t k = 0; k < logits.size(); ++k) total += out[k] = std::exp(logits[k] - highest);
    for (double& v : out) v /= total;
    return highest + std::log(total);
  }

  HeadKind kind_;
  PointLoss point_;
  std::vector<double> levels_, quantiles_, pulls_, prior_, posterior_, scales_;
  std::vector<double> slopes_;  // of the softplus of each raw parameter
  std::size_t middle_ = 0, components_ = 0;
};

}  // namespace

Result<PointLoss> point_loss(std::string_view name) {
  if (name == "l1") return PointLoss::kAbsolute;
  if (name == "huber") return PointLoss::kHuber;
  if (name == "l2") return PointLoss::kSquared;
  return fail({Fault::kBadUse, fmt::format("unknown loss '{}'", name), "field 'loss'", "one of l1, huber, l2", ""});
}

template <typename T>
autograd::Var<T> head_loss(const HeadConfig& head, autograd::Var<T> params, autograd::Var<T> target, autograd::Var<T> weight,
                           PointLoss point) {
  const std::size_t width = head.parameters();
  assert(params.dims().back() == width && params.value().size() == target.value().size() * width);
  assert(weight.value().size() == target.value().size());
  double total = 0;
  for (const T w : weight.value()) total += static_cast<double>(w);
  const double share = total > 0 ? 1 / total : 0;
  RowLoss loss(head, point);
  std::vector<double> raw(width), slopes(width);
  const auto rows = rowwise<T, 3>(target.dims(), {params, target, weight}, [&](const auto& in, const auto& out) {
    *out[1] = *out[2] = T{0};
    const double w = static_cast<double>(*in[2]) * share;
    if (w == 0) {
      std::fill_n(out[0], width, T{0});
      return 0.0;
    }
    std::copy_n(in[0], width, raw.begin());
    const double value = loss(raw, static_cast<double>(*in[1]), slopes);
    for (std::size_t k = 0; k < width; ++k) out[0][k] = static_cast<T>(std::clamp(w * slopes[k], -1e30, 1e30));
    return w * value;
  });
  return autograd::sum(rows);
}

template autograd::Var<float> head_loss(const HeadConfig&, autograd::Var<float>, autograd::Var<float>, autograd::Var<float>, PointLoss);
template autograd::Var<double> head_loss(const HeadConfig&, autograd::Var<double>, autograd::Var<double>, autograd::Var<double>, PointLoss);

}  // namespace kizzasi
