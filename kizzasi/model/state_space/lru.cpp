#include "kizzasi/model/state_space/lru.h"

#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "kizzasi/autograd/in_double.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/model/state_space/complex_unit.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

struct Sizes {
  explicit Sizes(const BackboneConfig& c) : d(static_cast<std::size_t>(c.d_model)), states(complex_unit::states_of(c)) {}
  std::size_t d, states;
};

class Sampler final : public complex_unit::Sampler {
 public:
  explicit Sampler(const LayerWeights& w)
      : nu_log_(w.at("seq.nu_log").values), theta_log_(w.at("seq.theta_log").values), gamma_log_(w.at("seq.gamma_log").values) {}

  void sample(double dt, std::span<float> a, std::span<float> b) const noexcept override {
    const std::size_t states = nu_log_.size();
    for (std::size_t n = 0; n < states; ++n) {
      const double decay = std::exp(static_cast<double>(nu_log_[n])), angle = std::exp(static_cast<double>(theta_log_[n]));
      Complex pole = std::exp(Complex(-decay, angle)), gain = std::exp(static_cast<double>(gamma_log_[n]));
      if (dt != 1) {
        // Of all turns that give this pole the slowest: what a continuous system does between its samples.
        const Complex other = std::exp(dt * Complex(-decay, std::remainder(angle, 2 * std::numbers::pi)));
        if (std::abs(1.0 - pole) > 1e-12)
          gain *= (1.0 - other) / (1.0 - pole);  // else both are 1: gain dt
        else
          gain *= dt;
        pole = other;
      }
      a[n] = static_cast<float>(pole.real());
      a[states + n] = static_cast<float>(pole.imag());
      b[n] = static_cast<float>(gain.real());
      b[states + n] = static_cast<float>(gain.imag());
    }
  }

 private:
  std::vector<float> nu_log_, theta_log_, gamma_log_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{
      {"seq.nu_log", {s.states}},    {"seq.theta_log", {s.states}}, {"seq.gamma_log", {s.states}}, {"seq.B_re", {s.states, s.d}},
      {"seq.B_im", {s.states, s.d}}, {"seq.C_re", {s.d, s.states}}, {"seq.C_im", {s.d, s.states}}, {"seq.D", {s.d}}};
  complex_unit::add_shapes(c, all);
  return all;
}

// The n-th eigenvalue of the start: radius^2 and angle spread evenly over the disk by a sequence without gaps or heaps (the multiples of
// the powers of the plastic number), where the paper draws them. So gamma, a tensor of its own, can know them.
struct Start {
  double decay, angle;
};
Start start(std::size_t n) {
  constexpr double kFirst = 0.75487766624669276, kSecond = 0.56984029099805327;
  const auto fraction = [n](double step) { return std::fmod(0.5 + static_cast<double>(n) * step, 1.0); };
  return {-0.5 * std::log(std::clamp(fraction(kFirst), 1e-6, 1 - 1e-6)), 6.28 * std::max(fraction(kSecond), 1e-6)};
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  if (complex_unit::draw(name, tensor, rng)) return;
  const Sizes s(c);
  const auto normal = [&](double variance) {
    for (float& value : tensor.values) value = static_cast<float>(std::sqrt(variance) * rng.normal());
  };
  if (name == "seq.B_re" || name == "seq.B_im") normal(0.5 / static_cast<double>(s.d));
  if (name == "seq.C_re" || name == "seq.C_im") normal(1 / static_cast<double>(s.states));
  if (name == "seq.D") normal(1);
  for (std::size_t n = 0; n < tensor.values.size(); ++n) {
    const Start at = start(n);
    if (name == "seq.nu_log") tensor.values[n] = static_cast<float>(std::log(at.decay));
    if (name == "seq.theta_log") tensor.values[n] = static_cast<float>(std::log(at.angle));
    // sqrt(1 - |lambda|^2): white noise in keeps its size in the state.
    if (name == "seq.gamma_log") tensor.values[n] = static_cast<float>(0.5 * std::log(-std::expm1(-2 * at.decay)));
  }
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  const Sizes s(c);
  const std::vector<float>&c_re = w.at("seq.C_re").values, &c_im = w.at("seq.C_im").values;
  std::vector<float> out;
  for (std::size_t e = 0; e < s.d; ++e) {
    for (std::size_t n = 0; n < s.states; ++n) out.push_back(c_re[e * s.states + n]);
    for (std::size_t n = 0; n < s.states; ++n) out.push_back(-c_im[e * s.states + n]);
  }
  complex_unit::Maps maps{w.pack_together({"seq.B_re", "seq.B_im"}), w.pack_made(out, s.d, {"seq.C_re", "seq.C_im"}), w.at("seq.D").values};
  return complex_unit::make(c, w, std::make_unique<Sampler>(w), std::move(maps), name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const char* name) { return w.at(prefix + "seq." + name); };
  // (2, 2, N): lambda, then gamma, which is real.
  const Var<T> coefficients = in_double(std::vector<Var<T>>{weight("nu_log"), weight("theta_log"), weight("gamma_log")}, [](const auto& v) {
    const Var<double> radius = exp(scale(exp(v[0]), -1.0)), angle = exp(v[1]), gamma = exp(v[2]);
    const std::array<Var<double>, 4> rows{mul(radius, cos(angle)), mul(radius, sin(angle)), gamma, scale(gamma, 0.0)};
    return reshape(concat(std::span<const Var<double>>(rows), 0), {2, 2, gamma.dims()[0]});
  });
  const auto plane = [&](std::size_t i) { return reshape(slice(coefficients, 0, i, i + 1), {2, s.states}); };
  const std::array<Var<T>, 2> in{weight("B_re"), weight("B_im")}, out{weight("C_re"), scale(weight("C_im"), T{-1})};
  const Var<T> h = complex_scan(linear(u, concat(std::span<const Var<T>>(in), 0)), plane(0), plane(1));
  const Var<T> y = add(linear(h, concat(std::span<const Var<T>>(out), 1)), mul(u, weight("D")));
  return complex_unit::activation(config, w, prefix, y);
}

}  // namespace

const LayerKind kLruLayer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
