#include "kizzasi/kernels/delta_rule.h"

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/matrix_state_sizes.h"

namespace kizzasi::autograd {
namespace {

template <typename T>
using Matrix = kernels::BasicMatrix<T>;

struct Sequence {
  Matrix<const double> q, k, v, a, b, decay;  // decay without data: ones
};
struct Gradients {
  Matrix<double> q, k, v, a, b, decay;
};

double decay_of(const MatrixStateSizes& s, const Sequence& in, std::size_t t, std::size_t head, std::size_t n) {
  return in.decay.data == nullptr ? 1.0 : in.decay.row(in.decay.rows == 1 ? 0 : t)[s.decay_at(head, n)];
}

// What row t of one head takes back from the state before it: z (V).
void take_back(const MatrixStateSizes& s, const Sequence& in, std::size_t t, std::size_t head, const double* before,
               std::vector<double>& z) {
  z.assign(s.values, 0.0);
  for (std::size_t i = 0; i < s.keys * s.values; ++i) z[i % s.values] += in.a.row(t)[head * s.keys + i / s.values] * before[i];
}

// Of one head: every state (time + 1, K, V), the zero before the first row included.
std::vector<double> states(const MatrixStateSizes& s, const Sequence& in, std::size_t head) {
  const std::size_t size = s.keys * s.values;
  std::vector<double> state((s.time + 1) * size), z;
  for (std::size_t t = 0; t < s.time; ++t) {
    take_back(s, in, t, head, &state[t * size], z);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t n = i / s.values, p = i % s.values, key = head * s.keys + n;
      state[(t + 1) * size + i] =
          decay_of(s, in, t, head, n) * state[t * size + i] + in.b.row(t)[key] * z[p] + in.k.row(t)[key] * in.v.row(t)[head * s.values + p];
    }
  }
  return state;
}

void forward(const MatrixStateSizes& s, const Sequence& in, Matrix<double> y) {
  const std::size_t size = s.keys * s.values;
  for (std::size_t head = 0; head < s.heads; ++head) {
    const std::vector<double> state = states(s, in, head);
    for (std::size_t t = 0; t < s.time; ++t) {
      double* out = y.row(t).data() + head * s.values;
      std::fill_n(out, s.values, 0.0);
      for (std::size_t i = 0; i < size; ++i) out[i % s.values] += in.q.row(t)[head * s.keys + i / s.values] * state[(t + 1) * size + i];
    }
  }
}

void backward(const MatrixStateSizes& s, const Sequence& in, Matrix<const double> gy, const Gradients& out) {
  const std::size_t size = s.keys * s.values;
  std::vector<double> z, gz;
  for (std::size_t head = 0; head < s.heads; ++head) {
    const std::vector<double> state = states(s, in, head);
    std::vector<double> carry(size);
    for (std::size_t t = s.time; t-- > 0;) {
      const double *before = &state[t * size], *after = before + size;
      take_back(s, in, t, head, before, z);
      gz.assign(s.values, 0.0);
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t n = i / s.values, p = i % s.values, key = head * s.keys + n, value = head * s.values + p;
        const double g = carry[i] + in.q.row(t)[key] * gy.row(t)[value];
        out.q.row(t)[key] += gy.row(t)[value] * after[i];
        out.k.row(t)[key] += g * in.v.row(t)[value];
        out.v.row(t)[value] += g * in.k.row(t)[key];
        out.b.row(t)[key] += g * z[p];
        gz[p] += g * in.b.row(t)[key];
        if (in.decay.data != nullptr) out.decay.row(t)[s.decay_at(head, n)] += g * before[i];
        carry[i] = decay_of(s, in, t, head, n) * g;
      }
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t key = head * s.keys + i / s.values;
        out.a.row(t)[key] += gz[i % s.values] * before[i];
        carry[i] += in.a.row(t)[key] * gz[i % s.values];
      }
    }
  }
}

}  // namespace

// In f32, through the kernels.
template <>
Var<float> delta_rule(Var<float> q, Var<float> k, Var<float> v, Var<float> a, Var<float> b, Var<float> decay) {
  Tape<float>& tape = *v.tape;
  const MatrixStateSizes s = matrix_state_sizes(q, v, decay);
  const kernels::DeltaRule scan{s.heads, s.keys, s.values};
  const bool decays = decay.tape != nullptr;
  const auto sequence = [=](const Tape<float>& on, std::size_t i) {
    const auto keys = [&](Var<float> x) { return s.rows(on.value(x.id).data(), i, s.key_width()); };
    return kernels::DeltaRuleRows{keys(q), keys(k), s.rows(on.value(v.id).data(), i, s.value_width()),
                                  keys(a), keys(b), decays ? s.decay_rows(on.value(decay.id).data(), i) : kernels::MatrixView()};
  };
  const std::size_t kept_size = (kernels::matrix_state_chunks(s.time) + 1) * scan.state_size();
  const std::size_t kept = tape.keep(s.batch * kept_size), scratch = tape.keep(kernels::delta_rule_backward_scratch(scan));
  const Var<float> inputs[] = {q, k, v, a, b, decay};
  const Var<float> y = tape.record(v.dims(), inputs, [=](Tape<float>& on, std::size_t id) {
    std::vector<float> unwanted[5];
    float* g[5];
    for (std::size_t i = 0; i < 5; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]).data();
    RowGradient<float> gdecay(on, decay, s.batch * s.time, s.decays, s.steady);
    const float* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      const auto keys = [&](float* x) { return s.rows(x, i, s.key_width()); };
      const kernels::DeltaRuleGradients out{keys(g[0]), keys(g[1]), s.rows(g[2], i, s.value_width()),
                                            keys(g[3]), keys(g[4]), decays ? s.rows(gdecay.data(), i, s.decays) : kernels::MatrixSpan()};
      kernels::delta_rule_backward(scan, sequence(on, i), on.value(kept).subspan(i * kept_size, kept_size), s.rows(gy, i, s.value_width()),
                                   out, on.mutable_value(scratch));
    }
    gdecay.finish();
  });
  for (std::size_t i = 0; i < s.batch; ++i) {
    kernels::delta_rule_keeping(scan, sequence(tape, i), tape.mutable_value(kept).subspan(i * kept_size, kept_size),
                                s.rows(tape.mutable_value(y.id).data(), i, s.value_width()));
  }
  return y;
}

template <>
Var<double> delta_rule(Var<double> q, Var<double> k, Var<double> v, Var<double> a, Var<double> b, Var<double> decay) {
  Tape<double>& tape = *v.tape;
  const MatrixStateSizes s = matrix_state_sizes(q, v, decay);
  const bool decays = decay.tape != nullptr;
  const auto sequence = [=](const Tape<double>& on, std::size_t i) {
    const auto keys = [&](Var<double> x) { return s.rows(on.value(x.id).data(), i, s.key_width()); };
    return Sequence{keys(q), keys(k), s.rows(on.value(v.id).data(), i, s.value_width()),
                    keys(a), keys(b), decays ? s.decay_rows(on.value(decay.id).data(), i) : Matrix<const double>()};
  };
  const Var<double> inputs[] = {q, k, v, a, b, decay};
  const Var<double> y = tape.record(v.dims(), inputs, [=](Tape<double>& on, std::size_t id) {
    std::vector<double> unwanted[5];
    double* g[5];
    for (std::size_t i = 0; i < 5; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]).data();
    RowGradient<double> gdecay(on, decay, s.batch * s.time, s.decays, s.steady);
    const double* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      const auto keys = [&](double* x) { return s.rows(x, i, s.key_width()); };
      backward(s, sequence(on, i), s.rows(gy, i, s.value_width()),
               {keys(g[0]), keys(g[1]), s.rows(g[2], i, s.value_width()), keys(g[3]), keys(g[4]),
                decays ? s.rows(gdecay.data(), i, s.decays) : Matrix<double>()});
    }
    gdecay.finish();
  });
  double* out = tape.mutable_value(y.id).data();
  for (std::size_t i = 0; i < s.batch; ++i) forward(s, sequence(tape, i), s.rows(out, i, s.value_width()));
  return y;
}

}  // namespace kizzasi::autograd
