#include "kizzasi/model/attention/positions.h"

#include <cstring>

#include "kizzasi/autograd/ops.h"

namespace kizzasi {
namespace {

class Positions final : public Layer {
 public:
  Positions(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : d_(static_cast<std::size_t>(c.d_model)),
        last_(static_cast<std::uint64_t>(c.window) - 1),
        table_(w.at("weight").values),
        frames_at_(layout.add(name + ".frames", FieldType::kU64, {1})) {}
  std::size_t scratch_floats(std::size_t) const noexcept override { return 0; }
  void advance(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out, std::span<float>) const noexcept override {
    const std::size_t rows = in.rows / lanes.size();
    for (std::size_t r = 0; r < in.rows; ++r) {
      std::byte* counter = lanes[r / rows].state + frames_at_;
      std::uint64_t frame = 0;
      std::memcpy(&frame, counter, sizeof frame);
      const float *position = table_.data() + frame * d_, *x = in.row(r).data();
      float* y = out.row(r).data();
      for (std::size_t c = 0; c < d_; ++c) y[c] = x[c] + position[c];
      frame = std::min(frame + 1, last_);
      std::memcpy(counter, &frame, sizeof frame);
    }
  }

 private:
  std::size_t d_;
  std::uint64_t last_;
  std::vector<float> table_;
  std::size_t frames_at_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  return {{"weight", {static_cast<std::size_t>(c.window), static_cast<std::size_t>(c.d_model)}}};
}

void draw(const BackboneConfig&, std::int64_t, const std::string&, Tensor& tensor, Rng rng) {
  for (float& value : tensor.values) value = static_cast<float>(0.02 * rng.normal());
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Positions>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& c, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  std::vector<std::size_t> index;
  for (std::size_t t = 0; t < x.dims()[1]; ++t) index.push_back(std::min(t, static_cast<std::size_t>(c.window) - 1));
  return autograd::add(x, autograd::gather(w.at(prefix + "weight"), index));
}

}  // namespace

const LayerKind kLearnedPositions{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
