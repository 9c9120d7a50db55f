#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {

namespace {

// In double, eight interleaved sums: accurate for any length, one order whatever the machine.
template <typename T>
double total_of(std::span<const T> x) {
  double partial[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= x.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) partial[lane] += static_cast<double>(x[i + lane]);
  }
  for (std::size_t lane = 0; i < x.size(); ++i, ++lane) partial[lane] += static_cast<double>(x[i]);
  return ((partial[0] + partial[4]) + (partial[2] + partial[6])) + ((partial[1] + partial[5]) + (partial[3] + partial[7]));
}

template <typename T>
Var<T> scaled_sum(Var<T> x, double factor) {
  const Var<T> y = x.tape->record({}, {x}, [x = x.id, factor](Tape<T>& tape, std::size_t id) {
    tape.add_to_grad(x, [g = static_cast<T>(static_cast<double>(tape.grad(id)[0]) * factor)](std::size_t) { return g; });
  });
  x.tape->mutable_value(y.id)[0] = static_cast<T>(total_of(x.value()) * factor);
  return y;
}

}  // namespace

template <typename T>
Var<T> sum(Var<T> x) {
  return scaled_sum(x, 1.0);
}

template <typename T>
Var<T> mean(Var<T> x) {
  return scaled_sum(x, 1.0 / static_cast<double>(x.value().size()));
}

template <typename T>
Var<T> sum_last(Var<T> x) {
  const std::size_t width = x.dims().back();
  const Var<T> y = x.tape->record(leading(x.dims()), {x}, [x = x.id, width](Tape<T>& tape, std::size_t id) {
    const auto to = tape.flow(x);
    const T* g = tape.grad(id).data();
    for (std::size_t row = 0, i = 0; i < to.grad.size(); ++row) {
      for (std::size_t end = i + width; i < end; ++i) to.grad[i] = (to.first ? T{0} : to.grad[i]) + g[row];
    }
  });
  const std::span<T> out = x.tape->mutable_value(y.id);
  for (std::size_t row = 0; row < out.size(); ++row) out[row] = static_cast<T>(total_of(x.value().subspan(row * width, width)));
  return y;
}

template Var<float> sum(Var<float>);
template Var<double> sum(Var<double>);
template Var<float> mean(Var<float>);
template Var<double> mean(Var<double>);
template Var<float> sum_last(Var<float>);
template Var<double> sum_last(Var<double>);

}  // namespace kizzasi::autograd
