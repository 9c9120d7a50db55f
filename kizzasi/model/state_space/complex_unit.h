// What LRU and S5 share: a diagonal complex system that takes all channels in and gives all channels out, and the gate behind it.
#pragma once

#include <string_view>

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   h = a h + b (B u),   y = Re(C h) + D u,   out = activation(y)
// with N complex numbers h for the whole layer. Activations, as published, with g = gelu_tanh(y) and Dense kernels (inputs, outputs):
//   full_glu   (out1 g) * sigmoid(out2 g)       half_glu1  g * sigmoid(out2 g)       half_glu2  y * sigmoid(out2 g)
//   gelu       g                                none       y
namespace complex_unit {

// d_inner floats of state, in complex numbers, rounded up.
inline std::size_t states_of(const BackboneConfig& c) { return static_cast<std::size_t>((c.inner() + 1) / 2); }

// (a, b) of the recurrence, (2, N) each, for steps of `dt` training periods.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual void sample(double dt, std::span<float> a, std::span<float> b) const noexcept = 0;
};

// The maps in and out, as the kernels multiply by them.
struct Maps {
  kernels::PackedWeight in;   // (2 N, d): rows of Re B, then of Im B
  kernels::PackedWeight out;  // (d, 2 N): Re C, then -Im C, the conjugate half counted in
  std::vector<float> skip;    // (d)
};

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, std::unique_ptr<Sampler> sampler, Maps maps,
                            const std::string& name, StateLayout& layout);

// The tensors of the activation: out1.kernel, out1.bias, out2.kernel, out2.bias, or fewer.
void add_shapes(const BackboneConfig& c, std::map<std::string, Shape>& shapes);
// Draws them (LeCun normal, biases zero); false where `name` is none of them.
bool draw(const std::string& name, Tensor& tensor, Rng& rng);

// y -> activation(y).
template <typename T>
autograd::Var<T> activation(const BackboneConfig& c, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> y);

}  // namespace complex_unit
}  // namespace kizzasi
