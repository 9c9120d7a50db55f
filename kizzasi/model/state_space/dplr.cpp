#include "kizzasi/model/state_space/dplr.h"

#include <array>
#include <cmath>

#include "kizzasi/autograd/in_double.h"
#include "kizzasi/autograd/planes.h"

namespace kizzasi {

void discretize_dplr(const DplrSystem& system, double dt, std::span<DplrElement> out) noexcept {
  const double w = 2 / dt;
  double size = 1, through = 0;
  for (std::size_t n = 0; n < system.lambda.size(); ++n) {
    const std::complex<double> inverse = 1.0 / (w - system.lambda[n]);
    size += 2 * std::norm(system.p[n]) * inverse.real();
    through += 2 * (std::conj(system.p[n]) * inverse * system.b[n]).real();
  }
  for (std::size_t n = 0; n < system.lambda.size(); ++n) {
    const std::complex<double> inverse = 1.0 / (w - system.lambda[n]), low_rank = inverse * system.p[n] / size;
    out[n] = {2 * w * inverse - 1.0, 2.0 * (inverse * system.b[n] - through * low_rank), 2.0 * system.c[n],
              2.0 * std::conj(system.p[n]) * inverse, -2 * w * low_rank};
  }
}

template <typename T>
autograd::Var<T> discretize_dplr(autograd::Var<T> log_dt, autograd::Var<T> a_real, autograd::Var<T> a_imag, autograd::Var<T> p,
                                 autograd::Var<T> b, autograd::Var<T> c) {
  using namespace autograd;
  return in_double(std::vector<Var<T>>{log_dt, a_real, a_imag, p, b, c}, [](const std::vector<Var<double>>& in) {
    using Numbers = Planes<double>;
    const std::size_t channels = in[1].dims()[0], states = in[1].dims()[1];
    const auto turned = [](Var<double> x) { return permute(x, {1, 0}); };  // (E, N) -> (N, E), over which a row of E repeats
    const auto numbers = [&](Var<double> stored) {
      const Numbers x = planes_of(stored);
      return Numbers{turned(x.re), turned(x.im)};
    };
    const auto sum_states = [&](Var<double> x) { return sum_last(turned(x)); };  // (N, E) -> (E)
    const Numbers p_of = numbers(in[3]), b_of = numbers(in[4]);
    const Var<double> w = scale(exp(scale(in[0], -1.0)), 2.0);
    const Numbers d = inverse(Numbers{add(exp(turned(in[1])), w), turned(in[2])});
    const Numbers conj_p_d = conj(p_of) * d;
    const Var<double> size = add_scalar(scale(sum_states((conj_p_d * p_of).re), 2.0), 1.0);
    const Var<double> through = div(scale(sum_states((conj_p_d * b_of).re), 2.0), size);
    const Numbers low_rank = d * p_of;
    const std::array<Numbers, 5> all{add_scalar(scale(d * w, 2.0), -1.0), scale(d * b_of - low_rank * through, 2.0),
                                     scale(numbers(in[5]), 2.0), scale(conj_p_d, 2.0), scale(low_rank * div(w, size), -2.0)};
    std::vector<Var<double>> planes;
    for (const Numbers& each : all) planes.insert(planes.end(), {each.re, each.im});
    return reshape(concat(std::span<const Var<double>>(planes), 0), {5, 2, states, channels});
  });
}

template autograd::Var<float> discretize_dplr(autograd::Var<float>, autograd::Var<float>, autograd::Var<float>, autograd::Var<float>,
                                              autograd::Var<float>, autograd::Var<float>);
template autograd::Var<double> discretize_dplr(autograd::Var<double>, autograd::Var<double>, autograd::Var<double>, autograd::Var<double>,
                                               autograd::Var<double>, autograd::Var<double>);

}  // namespace kizzasi
