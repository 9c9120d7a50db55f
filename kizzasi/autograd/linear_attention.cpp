#include "kizzasi/kernels/linear_attention.h"

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/matrix_state_sizes.h"

namespace kizzasi::autograd {
namespace {

template <typename T>
using Matrix = kernels::BasicMatrix<T>;

struct Sequence {
  Matrix<const double> q, k, v, decay;
  const double* bonus;
};
struct Gradients {
  Matrix<double> q, k, v, decay, bonus;
};

std::span<const double> decays(const Sequence& in, std::size_t t) { return in.decay.row(in.decay.rows == 1 ? 0 : t); }

// Of one head: every state (time + 1, K, V), the zero before the first row included.
std::vector<double> states(const MatrixStateSizes& s, const Sequence& in, std::size_t head) {
  const std::size_t size = s.keys * s.values;
  std::vector<double> state((s.time + 1) * size);
  for (std::size_t t = 0; t < s.time; ++t) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t n = i / s.values, key = head * s.keys + n;
      state[(t + 1) * size + i] =
          decays(in, t)[s.decay_at(head, n)] * state[t * size + i] + in.k.row(t)[key] * in.v.row(t)[head * s.values + i % s.values];
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
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t n = i / s.values, p = i % s.values, key = head * s.keys + n;
        double read = state[(t + 1) * size + i];
        if (in.bonus != nullptr) read = state[t * size + i] + in.bonus[key] * in.k.row(t)[key] * in.v.row(t)[head * s.values + p];
        out[p] += in.q.row(t)[key] * read;
      }
    }
  }
}

void backward(const MatrixStateSizes& s, const Sequence& in, Matrix<const double> gy, const Gradients& out) {
  const std::size_t size = s.keys * s.values;
  for (std::size_t head = 0; head < s.heads; ++head) {
    const std::vector<double> state = states(s, in, head);
    std::vector<double> carry(size);
    for (std::size_t t = s.time; t-- > 0;) {
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t n = i / s.values, key = head * s.keys + n, value = head * s.values + i % s.values, at = s.decay_at(head, n);
        const double q = in.q.row(t)[key], k = in.k.row(t)[key], v = in.v.row(t)[value], g = gy.row(t)[value];
        const double before = state[t * size + i], decay = decays(in, t)[at];
        double of_state = carry[i], of_added = carry[i];  // the gradients of the state after the row and of k v
        if (in.bonus == nullptr) {
          of_state = of_added += q * g;
          out.q.row(t)[key] += g * state[(t + 1) * size + i];
          carry[i] = decay * of_state;
        } else {
          const double u = in.bonus[key];
          of_added += q * u * g;
          out.q.row(t)[key] += g * (before + u * k * v);
          out.bonus.row(t)[key] += g * q * k * v;
          carry[i] = decay * of_state + q * g;
        }
        out.k.row(t)[key] += of_added * v;
        out.v.row(t)[value] += of_added * k;
        out.decay.row(t)[at] += of_state * before;
      }
    }
  }
}

}  // namespace

// In f32, through the kernels.
template <>
Var<float> linear_attention(Var<float> q, Var<float> k, Var<float> v, Var<float> decay, Var<float> bonus) {
  Tape<float>& tape = *v.tape;
  const MatrixStateSizes s = matrix_state_sizes(q, v, decay);
  const bool with_bonus = bonus.tape != nullptr;
  const auto scan = [=](const Tape<float>& on) {
    return kernels::LinearAttention{s.heads, s.keys, s.values, with_bonus ? on.value(bonus.id) : std::span<const float>()};
  };
  const std::size_t kept_size = (kernels::matrix_state_chunks(s.time) + 1) * scan(tape).state_size();
  const std::size_t kept = tape.keep(s.batch * kept_size), scratch = tape.keep(kernels::linear_attention_backward_scratch(scan(tape)));
  const Var<float> inputs[] = {q, k, v, decay, bonus};
  const Var<float> y = tape.record(v.dims(), inputs, [=](Tape<float>& on, std::size_t id) {
    std::vector<float> no_q, no_k, no_v;
    float *gq = gradient_sink(on, q, no_q).data(), *gk = gradient_sink(on, k, no_k).data(), *gv = gradient_sink(on, v, no_v).data();
    RowGradient<float> gdecay(on, decay, s.batch * s.time, s.decays, s.steady);
    RowGradient<float> gbonus(on, bonus, s.batch * s.time, s.key_width(), true);
    const float* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      const kernels::LinearAttentionGradients out{s.rows(gq, i, s.key_width()), s.rows(gk, i, s.key_width()),
                                                  s.rows(gv, i, s.value_width()), s.rows(gdecay.data(), i, s.decays),
                                                  s.rows(gbonus.data(), i, s.key_width())};
      kernels::linear_attention_backward(scan(on), s.rows(on.value(q.id).data(), i, s.key_width()),
                                         s.rows(on.value(k.id).data(), i, s.key_width()), s.rows(on.value(v.id).data(), i, s.value_width()),
                                         s.decay_rows(on.value(decay.id).data(), i), on.value(kept).subspan(i * kept_size, kept_size),
                                         s.rows(gy, i, s.value_width()), out, on.mutable_value(scratch));
    }
    gdecay.finish();
    gbonus.finish();
  });
  for (std::size_t i = 0; i < s.batch; ++i) {
    kernels::linear_attention_keeping(scan(tape), s.rows(q.value().data(), i, s.key_width()), s.rows(k.value().data(), i, s.key_width()),
                                      s.rows(v.value().data(), i, s.value_width()), s.decay_rows(decay.value().data(), i),
                                      tape.mutable_value(kept).subspan(i * kept_size, kept_size),
                                      s.rows(tape.mutable_value(y.id).data(), i, s.value_width()));
  }
  return y;
}

template <>
Var<double> linear_attention(Var<double> q, Var<double> k, Var<double> v, Var<double> decay, Var<double> bonus) {
  Tape<double>& tape = *v.tape;
  const MatrixStateSizes s = matrix_state_sizes(q, v, decay);
  const bool with_bonus = bonus.tape != nullptr;
  const auto sequence = [=](const Tape<double>& on, std::size_t i) {
    return Sequence{s.rows(on.value(q.id).data(), i, s.key_width()), s.rows(on.value(k.id).data(), i, s.key_width()),
                    s.rows(on.value(v.id).data(), i, s.value_width()), s.decay_rows(on.value(decay.id).data(), i),
                    with_bonus ? on.value(bonus.id).data() : nullptr};
  };
  const Var<double> inputs[] = {q, k, v, decay, bonus};
  const Var<double> y = tape.record(v.dims(), inputs, [=](Tape<double>& on, std::size_t id) {
    std::vector<double> no_q, no_k, no_v;
    double *gq = gradient_sink(on, q, no_q).data(), *gk = gradient_sink(on, k, no_k).data(), *gv = gradient_sink(on, v, no_v).data();
    RowGradient<double> gdecay(on, decay, s.batch * s.time, s.decays, s.steady);
    RowGradient<double> gbonus(on, bonus, s.batch * s.time, s.key_width(), true);
    const double* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      backward(s, sequence(on, i), s.rows(gy, i, s.value_width()),
               {s.rows(gq, i, s.key_width()), s.rows(gk, i, s.key_width()), s.rows(gv, i, s.value_width()),
                s.rows(gdecay.data(), i, s.decays), s.rows(gbonus.data(), i, s.key_width())});
    }
    gdecay.finish();
    gbonus.finish();
  });
  double* out = tape.mutable_value(y.id).data();
  for (std::size_t i = 0; i < s.batch; ++i) forward(s, sequence(tape, i), s.rows(out, i, s.value_width()));
  return y;
}

}  // namespace kizzasi::autograd
