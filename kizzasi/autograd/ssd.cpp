#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/ssd_chunked.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, heads, head_dim, groups, states;
  bool wide_skip;  // d is (heads, P)
};

template <typename T>
struct Sequence {
  const T *x, *delta, *a, *b, *c, *d;
};
template <typename T>
struct Gradients {
  T *x, *delta, *a, *b, *c, *d;
};

// Where row t of one head stands.
struct Place {
  std::size_t x, delta, bc;
};
Place place(const Sizes& s, std::size_t t, std::size_t h) {
  return {(t * s.heads + h) * s.head_dim, t * s.heads + h, (t * s.groups + h * s.groups / s.heads) * s.states};
}
std::size_t skip(const Sizes& s, std::size_t h, std::size_t p) { return s.wide_skip ? h * s.head_dim + p : h; }

// Of one head: every state (time + 1, P, N), the zero before the first row included; y may be null.
template <typename T>
void states(const Sizes& s, const Sequence<T>& in, std::size_t head, std::vector<T>& state, T* y) {
  const std::size_t size = s.head_dim * s.states;
  state.assign((s.time + 1) * size, T{0});
  for (std::size_t t = 0; t < s.time; ++t) {
    const Place at = place(s, t, head);
    const T delta = in.delta[at.delta], decay = std::exp(delta * in.a[head]);
    for (std::size_t p = 0; p < s.head_dim; ++p) {
      const T x = in.x[at.x + p];
      const T* before = &state[t * size + p * s.states];
      T* after = &state[(t + 1) * size + p * s.states];
      T sum = in.d[skip(s, head, p)] * x;
      for (std::size_t n = 0; n < s.states; ++n) {
        after[n] = decay * before[n] + delta * x * in.b[at.bc + n];
        sum += after[n] * in.c[at.bc + n];
      }
      if (y != nullptr) y[at.x + p] = sum;
    }
  }
}

template <typename T>
void backward(const Sizes& s, const Sequence<T>& in, std::size_t head, const T* gy, const Gradients<T>& out, std::vector<T>& state,
              std::vector<T>& carry) {
  const std::size_t size = s.head_dim * s.states;
  states<T>(s, in, head, state, nullptr);
  carry.assign(size, T{0});
  for (std::size_t t = s.time; t-- > 0;) {
    const Place at = place(s, t, head);
    const T delta = in.delta[at.delta], decay = std::exp(delta * in.a[head]);
    T gdelta = 0, gdecay = 0;
    for (std::size_t p = 0; p < s.head_dim; ++p) {
      const T x = in.x[at.x + p], g_out = gy[at.x + p];
      const T* before = &state[t * size + p * s.states];
      const T* after = &state[(t + 1) * size + p * s.states];
      T ginput = 0;  // of delta x
      for (std::size_t n = 0; n < s.states; ++n) {
        const T g = in.c[at.bc + n] * g_out + carry[p * s.states + n];
        out.c[at.bc + n] += g_out * after[n];
        out.b[at.bc + n] += g * delta * x;
        ginput += g * in.b[at.bc + n];
        gdecay += g * before[n];
        carry[p * s.states + n] = decay * g;
      }
      out.x[at.x + p] += delta * ginput + in.d[skip(s, head, p)] * g_out;
      out.d[skip(s, head, p)] += g_out * x;
      gdelta += ginput * x;
    }
    out.delta[at.delta] += gdelta + gdecay * decay * in.a[head];
    out.a[head] += gdecay * decay * delta;
  }
}

}  // namespace

// In f32, through the kernels.
template <>
Var<float> ssd(Var<float> x, Var<float> delta, Var<float> a, Var<float> b, Var<float> c, Var<float> d, std::size_t chunk) {
  Tape<float>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], dims[3], b.dims()[2], b.dims()[3], d.dims().size() == 2};
  // Longer chunks cost more within than they save between: the products within grow with the chunk, those between with the states.
  const std::size_t rows_a_chunk = std::min({chunk, s.time, s.states < 64 ? std::size_t{32} : std::size_t{64}});
  const auto scan = [=](const Tape<float>& on) {
    return kernels::ChunkedSsd{s.heads, s.head_dim, s.states, s.groups, on.value(a.id), on.value(d.id), s.wide_skip, rows_a_chunk};
  };
  const std::size_t kept_size = (scan(tape).chunks(s.time) + 1) * scan(tape).state_size();
  const std::size_t kept = tape.keep(s.batch * kept_size), scratch = tape.keep(kernels::ssd_chunked_scratch(scan(tape)));
  const std::size_t wide = s.heads * s.head_dim, narrow = s.groups * s.states;
  const auto rows = [=](auto* values, std::size_t i, std::size_t cols) {
    return kernels::BasicMatrix(values + i * s.time * cols, s.time, cols);
  };
  const Var<float> inputs[] = {x, delta, a, b, c, d};
  const Var<float> y = tape.record(dims, inputs, [=](Tape<float>& on, std::size_t id) {
    std::vector<float> unwanted[6];
    std::span<float> g[6];
    for (std::size_t i = 0; i < 6; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]);
    const float* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      const kernels::SsdGradients out{rows(g[0].data(), i, wide),
                                      rows(g[1].data(), i, s.heads),
                                      rows(g[3].data(), i, narrow),
                                      rows(g[4].data(), i, narrow),
                                      g[2],
                                      g[5]};
      kernels::ssd_chunked_backward(scan(on), rows(on.value(x.id).data(), i, wide), rows(on.value(delta.id).data(), i, s.heads),
                                    rows(on.value(b.id).data(), i, narrow), rows(on.value(c.id).data(), i, narrow),
                                    on.value(kept).subspan(i * kept_size, kept_size), rows(gy, i, wide), out, on.mutable_value(scratch));
    }
  });
  for (std::size_t i = 0; i < s.batch; ++i) {
    kernels::ssd_keeping(scan(tape), rows(x.value().data(), i, wide), rows(delta.value().data(), i, s.heads),
                         rows(b.value().data(), i, narrow), rows(c.value().data(), i, narrow),
                         tape.mutable_value(kept).subspan(i * kept_size, kept_size), rows(tape.mutable_value(y.id).data(), i, wide),
                         tape.mutable_value(scratch));
  }
  return y;
}

template <typename T>
Var<T> ssd(Var<T> x, Var<T> delta, Var<T> a, Var<T> b, Var<T> c, Var<T> d, std::size_t) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], dims[3], b.dims()[2], b.dims()[3], d.dims().size() == 2};
  const std::size_t wide = s.time * s.heads * s.head_dim, thin = s.time * s.heads, narrow = s.time * s.groups * s.states;
  const auto sequence = [=](const Tape<T>& on, std::size_t i) {
    return Sequence<T>{on.value(x.id).data() + i * wide,   on.value(delta.id).data() + i * thin, on.value(a.id).data(),
                       on.value(b.id).data() + i * narrow, on.value(c.id).data() + i * narrow,   on.value(d.id).data()};
  };
  const Var<T> inputs[] = {x, delta, a, b, c, d};
  const Var<T> y = tape.record(dims, inputs, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[6], state, carry;
    T* g[6];
    for (std::size_t i = 0; i < 6; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]).data();
    const T* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      const Gradients<T> out{g[0] + i * wide, g[1] + i * thin, g[2], g[3] + i * narrow, g[4] + i * narrow, g[5]};
      for (std::size_t h = 0; h < s.heads; ++h) backward<T>(s, sequence(on, i), h, gy + i * wide, out, state, carry);
    }
  });
  T* out = tape.mutable_value(y.id).data();
  std::vector<T> state;
  for (std::size_t i = 0; i < s.batch; ++i) {
    for (std::size_t h = 0; h < s.heads; ++h) states<T>(s, sequence(tape, i), h, state, out + i * wide);
  }
  return y;
}

template Var<double> ssd(Var<double>, Var<double>, Var<double>, Var<double>, Var<double>, Var<double>, std::size_t);

}  // namespace kizzasi::autograd
