#include "kizzasi/model/state_space/published_dss.h"

#include <array>
#include <cmath>
#include <complex>

#include "kizzasi/autograd/in_double.h"
#include "kizzasi/autograd/planes.h"
#include "kizzasi/autograd/scans.h"

namespace kizzasi {
namespace {

constexpr double kReciprocalEpsilon = 1e-7;  // the reference's

struct Sizes {
  std::size_t d = 0, states = 0;
};

// (2, 2, E, N): a, then the weights of its powers, for sequences of that many frames. in: log_dt (E), A_real, A_imag (E, N), B, C (E, N,
// 2).
autograd::Var<double> coefficients(const std::vector<autograd::Var<double>>& in, std::size_t frames) {
  using namespace autograd;
  using Numbers = Planes<double>;
  const auto turned = [](Var<double> x) { return permute(x, {1, 0}); };  // (E, N) -> (N, E), over which a row of E repeats
  const Numbers lambda{scale(exp(turned(in[1])), -1.0), scale(turned(in[2]), -1.0)};
  const Numbers z = lambda * exp(in[0]), a = exp(z);
  const Numbers x = add_scalar(exp(scale(z, static_cast<double>(frames))), -1.0) * lambda;
  const Var<double> size = add_scalar(add(square(x.re), square(x.im)), kReciprocalEpsilon);
  const Numbers b = planes_of(in[3]), c = planes_of(in[4]), product = b * c;
  const Numbers weight =
      Numbers{turned(product.re), turned(product.im)} * add_scalar(a, -1.0) * Numbers{div(x.re, size), scale(div(x.im, size), -1.0)};
  const std::array<Var<double>, 4> parts{a.re, a.im, weight.re, weight.im};
  return concat(std::span<const Var<double>>(parts), 0);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s{static_cast<std::size_t>(config.d_model), static_cast<std::size_t>(config.d_state / 2)};
  const auto weight = [&](const char* name) { return w.at(prefix + name); };
  const std::size_t frames = u.dims()[1];
  const Var<T> all = reshape(in_double(std::vector<Var<T>>{weight("log_dt"), weight("A_real"), weight("A_imag"), weight("B"), weight("C")},
                                       [frames](const std::vector<Var<double>>& in) { return coefficients(in, frames); }),
                             {2, 2, s.states, s.d});
  const auto planes = [&](std::size_t i) { return reshape(slice(all, 0, i, i + 1), {2, s.states, s.d}); };
  const Var<T> y = gelu(diagonal_scan(u, planes(0), planes(1), weight("D")));
  const Var<T> mapped = linear(y, weight("output.weight"), weight("output.bias"));
  return mul(slice(mapped, 2, 0, s.d), sigmoid(slice(mapped, 2, s.d, 2 * s.d)));
}

// Of whole sequences: forward alone is there.
const LayerKind kWholeDss{nullptr, nullptr, nullptr, nullptr, forward<float>, forward<double>};

}  // namespace

Result<PublishedLayer> published_dss(const NamedTensors& tensors, const Json&, std::string_view where) {
  const auto eigenvalues = tensors.find("layer.kernel.A_real");
  if (eigenvalues == tensors.end() || eigenvalues->second.shape.size() != 2) {
    return fail({Fault::kBadInput, "there are no eigenvalues", std::string(where), "A_real (d_model, d_state / 2)", ""});
  }
  const Sizes s{eigenvalues->second.shape[0], eigenvalues->second.shape[1]};
  const Shape plane{s.d, s.states}, pairs{1, s.d, s.states, 2};
  if (auto good = check_published(tensors,
                                  {{"layer.D", {1, s.d}},
                                   {"layer.kernel.A_imag", plane},
                                   {"layer.kernel.A_real", plane},
                                   {"layer.kernel.B", pairs},
                                   {"layer.kernel.C", pairs},
                                   {"layer.kernel.inv_dt", {s.d, 1}},
                                   {"output_linear.0.bias", {2 * s.d}},
                                   {"output_linear.0.weight", {2 * s.d, s.d}}},
                                  "DSS", where);
      !good) {
    return fail(good.error());
  }
  PublishedLayer layer;
  layer.kind = &kWholeDss;
  layer.streams = false;
  layer.config.architecture = "dss";
  layer.config.d_model = static_cast<std::int64_t>(s.d);
  layer.config.d_state = static_cast<std::int64_t>(2 * s.states);
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  set_ours(layer, [s]<typename T>(const WeightVars<T>& theirs) {
    using namespace autograd;
    WeightVars<T> all;
    all.add("0.log_dt", reshape(theirs.at("layer.kernel.inv_dt"), {s.d}));
    for (const char* name : {"A_real", "A_imag"}) all.add(std::string("0.") + name, theirs.at(std::string("layer.kernel.") + name));
    for (const char* name : {"B", "C"}) {
      all.add(std::string("0.") + name, reshape(theirs.at(std::string("layer.kernel.") + name), {s.d, s.states, 2}));
    }
    all.add("0.D", reshape(theirs.at("layer.D"), {s.d}));
    all.add("0.output.weight", theirs.at("output_linear.0.weight"));
    all.add("0.output.bias", theirs.at("output_linear.0.bias"));
    return all;
  });
  layer.state = [](const std::string&, const StateBatch&) -> std::optional<std::vector<float>> { return std::nullopt; };
  // (1, d, frames)
  layer.derived = [s, tensors](const std::string& name, std::size_t frames) -> std::optional<std::vector<float>> {
    if (name != "kernel") return std::nullopt;
    autograd::Tape<double> tape;
    std::vector<autograd::Var<double>> in;
    for (const char* each : {"inv_dt", "A_real", "A_imag", "B", "C"}) {
      const Tensor& tensor = tensors.at(std::string("layer.kernel.") + each);
      const std::vector<double> values(tensor.values.begin(), tensor.values.end());
      const autograd::Dims dims = in.empty()      ? autograd::Dims{s.d}
                                  : in.size() < 3 ? autograd::Dims{s.d, s.states}
                                                  : autograd::Dims{s.d, s.states, 2};
      in.push_back(tape.constant(dims, std::span<const double>(values)));
    }
    const std::span<const double> k = coefficients(in, frames).value();
    const std::size_t size = s.d * s.states;
    std::vector<float> out;
    for (std::size_t e = 0; e < s.d; ++e) {
      for (std::size_t t = 0; t < frames; ++t) {
        double sum = 0;
        for (std::size_t i = e; i < size; i += s.d) {
          const std::complex<double> a(k[i], k[size + i]), c(k[2 * size + i], k[3 * size + i]);
          sum += (c * std::pow(a, static_cast<double>(t))).real();
        }
        out.push_back(static_cast<float>(sum));
      }
    }
    return out;
  };
  return layer;
}

}  // namespace kizzasi
