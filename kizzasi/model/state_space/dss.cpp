#include "kizzasi/model/state_space/dss.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/s4d.h"
#include "kizzasi/model/state_space/hippo.h"

namespace kizzasi {
namespace {

struct Sizes {
  explicit Sizes(const BackboneConfig& c) : d(static_cast<std::size_t>(c.d_model)), states(static_cast<std::size_t>(c.d_state / 2)) {}
  std::size_t d, states;
};

// The S4D layer that computes this: zoh whatever the configuration says.
BackboneConfig as_s4d(BackboneConfig c) {
  c.discretization = "zoh";
  c.s4d_init = "lin";  // DSS has its own start
  return c;
}

Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (c.d_state > kLargestHippo) {
    return fail({Fault::kBadUse, "d_state is too large for dss", std::string(where), "at most 256", "s4d has no such limit."});
  }
  return kS4dLayer.check(as_s4d(c), where);
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  return {{"D", {s.d}},
          {"kernel.log_dt", {s.d}},
          {"kernel.Lambda_log_re", {s.states}},
          {"kernel.Lambda_im", {s.states}},
          {"kernel.W", {s.d, s.states, 2}},
          {"output_linear.0.weight", {2 * s.d, s.d, 1}},
          {"output_linear.0.bias", {2 * s.d}}};
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  const std::span<float> out = tensor.values;
  if (name == "D" || name == "kernel.W") {
    for (float& value : out) value = static_cast<float>(rng.normal());
  }
  if (name == "kernel.log_dt") draw_uniform(out, std::log(c.dt_min), std::log(c.dt_max), rng);
  if (name == "output_linear.0.weight" || name == "output_linear.0.bias") draw_linear(out, s.d, rng);
  // Of the normal part of HiPPO-LegS of twice the size, the eigenvalues with imaginary part above 0.
  if (name == "kernel.Lambda_log_re") std::fill(out.begin(), out.end(), static_cast<float>(std::log(0.5)));
  if (name == "kernel.Lambda_im") {
    const NormalLegS legs = normal_legs(2 * s.states);
    for (std::size_t n = 0; n < s.states; ++n) out[n] = static_cast<float>(-legs.lambda[s.states - 1 - n].imag());
  }
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  const Sizes s(c);
  NamedTensors same;
  for (const char* kept : {"D", "kernel.log_dt", "output_linear.0.weight", "output_linear.0.bias"}) same.emplace(kept, w.at(kept));
  for (const auto& [theirs, ours] : {std::pair{"kernel.log_A_real", "kernel.Lambda_log_re"}, {"kernel.A_imag", "kernel.Lambda_im"}}) {
    Tensor& repeated = same.emplace(theirs, Tensor(Shape{s.d, s.states})).first->second;
    for (std::size_t i = 0; i < repeated.values.size(); ++i) repeated.values[i] = w.at(ours).values[i % s.states];
  }
  Tensor& half = same.emplace("kernel.C", w.at("kernel.W")).first->second;  // s4d counts the conjugates in
  for (float& value : half.values) value *= 0.5f;
  return kS4dLayer.make(as_s4d(c), w.standing_for(same), name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const std::vector<T> zeros(s.d * s.states);
  const Var<T> plane = u.tape->constant({s.d, s.states}, std::span<const T>(zeros));
  WeightVars<T> same;
  for (const char* kept : {"D", "kernel.log_dt", "output_linear.0.weight", "output_linear.0.bias"}) same.add(kept, w.at(prefix + kept));
  same.add("kernel.log_A_real", add(plane, w.at(prefix + "kernel.Lambda_log_re")));
  same.add("kernel.A_imag", add(plane, w.at(prefix + "kernel.Lambda_im")));
  same.add("kernel.C", scale(w.at(prefix + "kernel.W"), T{0.5}));
  if constexpr (sizeof(T) == sizeof(double)) {
    return kS4dLayer.forward64(as_s4d(config), same, "", u);
  } else {
    return kS4dLayer.forward(as_s4d(config), same, "", u);
  }
}

}  // namespace

const LayerKind kDssLayer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
