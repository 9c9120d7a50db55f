#include "kizzasi/model/state_space/published_s4.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <numbers>

#include "kizzasi/autograd/in_double.h"
#include "kizzasi/autograd/planes.h"
#include "kizzasi/model/state_space/dplr.h"
#include "kizzasi/model/state_space/s4.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

struct Sizes {
  std::size_t d = 0, states = 0, length = 0;  // length: L of the stored C; 0: C itself is stored
};

// C from C~ = C (I - A_bar^L). With w_k the L-th roots of one, (I - A_bar^L)^-1 = 1/L sum over k of (I - w_k A_bar)^-1, and each of these
// is a resolvent of A, which the low-rank form inverts:
//   (I - w_k A_bar)^-1 = (I + 2 w w_k / (1 + w_k) (g - A)^-1) / (1 + w_k),   g = w (1 - w_k) / (1 + w_k),   w = 2 / step
// where w_k = -1 leaves (w - A) / (2 w).
autograd::Var<double> unfolded_c(const std::vector<autograd::Var<double>>& in, std::size_t length) {
  using namespace autograd;
  using Numbers = Planes<double>;
  const auto turned = [](Var<double> x) { return permute(x, {1, 0}); };  // (E, N) -> (N, E), over which a row of E repeats
  const auto numbers = [&](Var<double> stored) {
    const Numbers x = planes_of(stored);
    return Numbers{turned(x.re), turned(x.im)};
  };
  const auto sum_states = [&](Numbers x) { return Numbers{sum_last(turned(x.re)), sum_last(turned(x.im))}; };
  // (N, E) times one number a channel.
  const auto by_channel = [](Numbers x, Numbers row) {
    return Numbers{sub(mul(x.re, row.re), mul(x.im, row.im)), add(mul(x.re, row.im), mul(x.im, row.re))};
  };
  const auto times = [](Numbers x, Complex factor) {
    return Numbers{sub(scale(x.re, factor.real()), scale(x.im, factor.imag())),
                   add(scale(x.re, factor.imag()), scale(x.im, factor.real()))};
  };
  const Numbers lambda{scale(exp(turned(in[1])), -1.0), scale(turned(in[2]), -1.0)}, p = numbers(in[3]), c = numbers(in[4]);
  const Var<double> w = scale(exp(scale(in[0], -1.0)), 2.0), p_size = add(square(p.re), square(p.im));
  Numbers sum{scale(c.re, 0.0), scale(c.im, 0.0)};
  for (std::size_t k = 0; k < length; ++k) {
    if (2 * k == length) {
      const Var<double> shared = scale(sum_states(c * p).re, 2.0), half = scale(exp(in[0]), 0.25);  // half: 1 / (2 w)
      const Numbers through = conj(p) * shared, straight = c * Numbers{add(scale(lambda.re, -1.0), w), scale(lambda.im, -1.0)};
      sum = sum + (straight + through) * half;
      continue;
    }
    const Complex root = std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length));
    const Complex ratio = (1.0 - root) / (1.0 + root);
    // D of both halves: 1 / (g - lambda), 1 / (g - conj(lambda)).
    const Var<double> g_re = scale(w, ratio.real()), g_im = scale(w, ratio.imag()), minus_re = scale(lambda.re, -1.0);
    const Numbers d = inverse(Numbers{add(minus_re, g_re), add(scale(lambda.im, -1.0), g_im)});
    const Numbers other = inverse(Numbers{add(minus_re, g_re), add(lambda.im, g_im)});
    const Numbers size = add_scalar(sum_states((d + other) * p_size), 1.0);
    const Numbers shared = sum_states(c * d * p + conj(c) * other * conj(p)) * inverse(size);
    const Numbers resolved = c * d - by_channel(conj(p) * d, shared);
    sum = sum + times(c + times(resolved * w, 2.0 * root / (1.0 + root)), 1.0 / (1.0 + root));
  }
  const std::size_t channels = in[1].dims()[0], states = in[1].dims()[1];
  const double share = 1 / static_cast<double>(length);
  const std::array<Var<double>, 2> parts{reshape(scale(turned(sum.re), share), {channels, states, 1}),
                                         reshape(scale(turned(sum.im), share), {channels, states, 1})};
  return concat(std::span<const Var<double>>(parts), 2);
}

template <typename T>
WeightVars<T> ours(const Sizes& s, const WeightVars<T>& published) {
  using namespace autograd;
  WeightVars<T> all;
  const auto kernel = [&](const char* name) { return published.at(std::string("layer.kernel.") + name); };
  const auto pairs = [&](const char* name) { return reshape(kernel(name), {s.d, s.states, 2}); };
  const std::vector<Var<T>> inputs{reshape(kernel("inv_dt"), {s.d}), kernel("A_real"), kernel("A_imag"), pairs("P"), pairs("C")};
  const auto unfold = [length = s.length](const std::vector<Var<double>>& in) { return unfolded_c(in, length); };
  all.add("0.kernel.inv_dt", inputs[0]);
  all.add("0.kernel.A_real", inputs[1]);
  all.add("0.kernel.A_imag", inputs[2]);
  all.add("0.kernel.P", inputs[3]);
  all.add("0.kernel.B", pairs("B"));
  all.add("0.kernel.C", s.length > 0 ? in_double(inputs, unfold) : inputs[4]);
  all.add("0.D", reshape(published.at("layer.D"), {s.d}));
  for (const char* name : {"output_linear.0.weight", "output_linear.0.bias"}) all.add(std::string("0.") + name, published.at(name));
  return all;
}

// What follows from our weights alone: the kernel (1, d, frames), the answer of the recurrence to an impulse without D.
std::optional<std::vector<float>> derived(const Sizes& s, const NamedTensors& w, const std::string& name, std::size_t frames) {
  if (name != "kernel") return std::nullopt;
  const auto number = [&](const char* tensor, std::size_t i) {
    const std::vector<float>& values = w.at(std::string("0.kernel.") + tensor).values;
    return Complex(static_cast<double>(values[2 * i]), static_cast<double>(values[2 * i + 1]));
  };
  std::vector<float> out;
  for (std::size_t e = 0; e < s.d; ++e) {
    std::vector<Complex> lambda, p, b, c, h(s.states);
    for (std::size_t i = e * s.states; i < (e + 1) * s.states; ++i) {
      lambda.emplace_back(-std::exp(static_cast<double>(w.at("0.kernel.A_real").values[i])),
                          -static_cast<double>(w.at("0.kernel.A_imag").values[i]));
      p.push_back(number("P", i)), b.push_back(number("B", i)), c.push_back(number("C", i));
    }
    std::vector<DplrElement> column(s.states);
    discretize_dplr({lambda, p, b, c}, std::exp(static_cast<double>(w.at("0.kernel.inv_dt").values[e])), column);
    for (std::size_t t = 0; t < frames; ++t) {
      double shared = 0, y = 0;
      for (std::size_t n = 0; n < s.states; ++n) shared += (column[n].shared * h[n]).real();
      for (std::size_t n = 0; n < s.states; ++n) {
        h[n] = column[n].a * h[n] + column[n].r * shared + (t == 0 ? column[n].b : 0.0);
        y += (column[n].c * h[n]).real();
      }
      out.push_back(static_cast<float>(y));
    }
  }
  return out;
}

// (batch, d, states, re/im), where `dense` followed by its conjugates.
std::vector<float> published_states(const Sizes& s, const StateBatch& states, bool dense) {
  std::vector<float> out;
  const std::size_t plane = s.d * s.states;
  for (std::size_t stream = 0; stream < states.blocks.size(); ++stream) {
    const std::span<const float> values = states.floats(stream, "layer0.ssm");
    for (std::size_t e = 0; e < s.d; ++e) {
      for (std::size_t half = 0; half < (dense ? 2u : 1u); ++half) {
        for (std::size_t n = 0; n < s.states; ++n) {
          const float imaginary = values[plane + n * s.d + e];
          out.push_back(values[n * s.d + e]);
          out.push_back(half == 0 ? imaginary : -imaginary);
        }
      }
    }
  }
  return out;
}

}  // namespace

bool is_published_s4(const NamedTensors& tensors) { return tensors.count("layer.kernel.P") != 0; }

Result<PublishedLayer> published_s4(const NamedTensors& tensors, const Json&, std::string_view where) {
  const auto eigenvalues = tensors.find("layer.kernel.A_real");
  if (eigenvalues == tensors.end() || eigenvalues->second.shape.size() != 2) {
    return fail({Fault::kBadInput, "there are no eigenvalues", std::string(where), "A_real (d_model, d_state / 2)", ""});
  }
  Sizes s{eigenvalues->second.shape[0], eigenvalues->second.shape[1], 0};
  std::map<std::string, Shape> wanted{{"layer.D", {1, s.d}},
                                      {"layer.kernel.A_imag", {s.d, s.states}},
                                      {"layer.kernel.A_real", {s.d, s.states}},
                                      {"layer.kernel.inv_dt", {s.d, 1}},
                                      {"output_linear.0.bias", {2 * s.d}},
                                      {"output_linear.0.weight", {2 * s.d, s.d}}};
  for (const char* name : {"P", "B", "C"}) wanted.emplace(std::string("layer.kernel.") + name, Shape{1, s.d, s.states, 2});
  if (const auto length = tensors.find("layer.kernel.l_kernel"); length != tensors.end()) {
    wanted.emplace(length->first, Shape{});
    if (length->second.values.size() == 1) {
      const double frames = static_cast<double>(length->second.values[0]);
      if (!(frames >= 0 && frames <= 65536 && frames == std::floor(frames))) {
        return fail({Fault::kBadInput, fmt::format("l_kernel is {}", frames), std::string(where), "a whole number up to 65536", ""});
      }
      s.length = static_cast<std::size_t>(frames);
    }
  }
  if (auto good = check_published(tensors, wanted, "S4", where); !good) return fail(good.error());

  PublishedLayer layer;
  layer.kind = &kS4Layer;
  layer.config.architecture = "s4";
  layer.config.d_model = static_cast<std::int64_t>(s.d);
  layer.config.d_state = static_cast<std::int64_t>(2 * s.states);
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  set_ours(layer, [s](const auto& theirs) { return ours(s, theirs); });
  layer.state = [s](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name != "state" && name != "state_step") return std::nullopt;
    return published_states(s, states, name == "state");
  };
  const auto weights = std::make_shared<const NamedTensors>(taken_over(tensors, layer.ours64));
  layer.derived = [s, weights](const std::string& name, std::size_t frames) { return derived(s, *weights, name, frames); };
  return layer;
}

}  // namespace kizzasi
