#include "kizzasi/autograd/matrix_state.h"

#include <gtest/gtest.h>

#include <array>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scan_laws_test.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, heads, keys, values;
};
constexpr std::array<Sizes, 4> kSmall{{{1, 1, 1, 1, 1}, {2, 5, 2, 3, 2}, {2, 21, 3, 2, 4}, {1, 40, 2, 5, 3}}};

// The four forms of decays.
std::vector<Dims> decay_dims(const Sizes& s) {
  return {{s.batch, s.time, s.heads, s.keys}, {s.batch, s.time, s.heads}, {s.heads, s.keys}, {s.heads}};
}

std::vector<CheckedInput> attention_inputs(const Sizes& s, const Dims& decay, bool bonus, Rng& rng) {
  std::vector<CheckedInput> inputs{
      normal_input("q", {s.batch, s.time, s.heads, s.keys}, rng), normal_input("k", {s.batch, s.time, s.heads, s.keys}, rng),
      normal_input("v", {s.batch, s.time, s.heads, s.values}, rng), uniform_input("decay", decay, rng, 0.2, 1)};
  if (bonus) inputs.push_back(normal_input("bonus", {s.heads, s.keys}, rng));
  return inputs;
}
const auto attention_op = [](const auto& v) {
  return linear_attention(v[0], v[1], v[2], v[3], v.size() > 4 ? v[4] : std::remove_cvref_t<decltype(v[0])>{});
};

std::vector<CheckedInput> delta_inputs(const Sizes& s, const Dims& decay, Rng& rng) {
  const Dims keys{s.batch, s.time, s.heads, s.keys};
  const double unit = 1 / std::sqrt(static_cast<double>(s.keys));
  std::vector<CheckedInput> inputs{normal_input("q", keys, rng), normal_input("k", keys, rng),
                                   normal_input("v", {s.batch, s.time, s.heads, s.values}, rng), uniform_input("a", keys, rng, -unit, unit),
                                   uniform_input("b", keys, rng, -unit, unit)};
  if (decay.size() != 0) inputs.push_back(uniform_input("decay", decay, rng, 0.2, 1));
  return inputs;
}

// A decay at one place, whatever its form.
double decay_at(const CheckedInput& decay, const Sizes& s, std::size_t row, std::size_t head, std::size_t n) {
  const std::size_t rank = decay.dims.size(), at = rank % 2 == 0 ? head * s.keys + n : head;
  const std::size_t width = rank % 2 == 0 ? s.heads * s.keys : s.heads;
  return decay.values[rank <= 2 ? at : row * width + at];
}

// Without a state: y[t] = sum over s <= t of (q[t] . (decays after s) k[s]) v[s], with the bonus instead of s = t and of the last decay.
Values attention_truth(const Sizes& s, const std::vector<CheckedInput>& in) {
  Values y(in[2].values.size());
  const bool bonus = in.size() > 4;
  for (std::size_t row = 0; row < s.batch * s.time; ++row) {
    const std::size_t first = row / s.time * s.time;
    for (std::size_t h = 0; h < s.heads; ++h) {
      for (std::size_t n = 0; n < s.keys; ++n) {
        double decay = in[0].values[(row * s.heads + h) * s.keys + n];
        for (std::size_t from = row + 1; from-- > first;) {
          double weight = decay * in[1].values[(from * s.heads + h) * s.keys + n];
          if (bonus && from == row) weight *= in[4].values[h * s.keys + n];
          for (std::size_t p = 0; p < s.values; ++p) {
            y[(row * s.heads + h) * s.values + p] += weight * in[2].values[(from * s.heads + h) * s.values + p];
          }
          if (!bonus || from != row) decay *= decay_at(in[3], s, from, h, n);
        }
      }
    }
  }
  return y;
}

TEST(LinearAttentionOp, IsTheDecayedAttentionAndItsGradientsAreThoseOfDifferences) {
  Rng rng(1);
  for (const Sizes& s : kSmall) {
    for (const Dims& decay : decay_dims(s)) {
      for (const bool bonus : {false, true}) {
        const auto inputs = attention_inputs(s, decay, bonus, rng);
        Tape<double> tape;
        expect_values(attention_op(leaves(tape, inputs)), attention_truth(s, inputs), 1e-12);
        expect_gradients(inputs, attention_op);
      }
    }
  }
}

constexpr std::array<Sizes, 6> kWide{
    {{2, 1, 1, 1, 1}, {1, 17, 2, 8, 16}, {2, 64, 3, 7, 5}, {1, 33, 2, 12, 70}, {1, 100, 1, 64, 64}, {1, 20, 1, 3, 130}}};

TEST(LinearAttentionOp, FollowsItsDoubleFormInF32) {
  Rng rng(2);
  for (const Sizes& s : kWide) {
    for (const Dims& decay : decay_dims(s)) {
      for (const bool bonus : {false, true}) {
        SCOPED_TRACE(testing::Message() << "time " << s.time << " keys " << s.keys << " values " << s.values << " bonus " << bonus);
        expect_f32_follows_f64(attention_op, attention_inputs(s, decay, bonus, rng), 1e-5);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Step by step from primitives, without what the op knows of its adjoint.
template <typename T>
Var<T> composed_delta(const Sizes& s, const std::vector<Var<T>>& v) {
  const std::size_t many = s.batch * s.heads;
  const auto at = [&](Var<T> x, std::size_t t, std::size_t width) {  // (batch * heads, width)
    return reshape(slice(x, 1, t, t + 1), {many, width});
  };
  // (many, K) and (many, V) -> (many, K, V), each repeated along the other.
  const auto outer = [&](Var<T> key, Var<T> value) {
    std::vector<Var<T>> keys(s.values, reshape(key, {many, s.keys, 1})), values(s.keys, reshape(value, {many, 1, s.values}));
    return mul(concat(std::span<const Var<T>>(keys), 2), concat(std::span<const Var<T>>(values), 1));
  };
  const auto read = [&](Var<T> key, Var<T> state) {  // sum over keys
    std::vector<Var<T>> keys(s.values, reshape(key, {many, s.keys, 1}));
    return sum_last(permute(mul(concat(std::span<const Var<T>>(keys), 2), state), {0, 2, 1}));
  };
  std::vector<Var<T>> all;
  const std::vector<T> zeros(many * s.keys * s.values), ones(many * s.values, T{1});
  Var<T> state = v[0].tape->constant({many, s.keys, s.values}, zeros);
  const Var<T> one = v[0].tape->constant({many, s.values}, ones);
  for (std::size_t t = 0; t < s.time; ++t) {
    const Var<T> z = read(at(v[3], t, s.keys), state);
    Var<T> kept = state;
    if (v.size() > 5) kept = mul(outer(at(v[5], t, s.keys), one), state);
    state = add(kept, add(outer(at(v[4], t, s.keys), z), outer(at(v[1], t, s.keys), at(v[2], t, s.values))));
    all.push_back(reshape(read(at(v[0], t, s.keys), state), {s.batch, 1, s.heads, s.values}));
  }
  return concat(std::span<const Var<T>>(all), 1);
}

const auto delta_op = [](const auto& v) {
  return delta_rule(v[0], v[1], v[2], v[3], v[4], v.size() > 5 ? v[5] : std::remove_cvref_t<decltype(v[0])>{});
};

TEST(DeltaRuleOp, IsItsDefinitionAndItsGradientsAreThoseOfDifferences) {
  Rng rng(3);
  for (const Sizes& s : kSmall) {
    for (const bool with_decay : {false, true}) {
      const auto inputs = delta_inputs(s, with_decay ? decay_dims(s)[0] : Dims{}, rng);
      Tape<double> tape;
      const auto v = leaves(tape, inputs);
      const Var<double> truth = composed_delta(s, v);
      expect_values(delta_op(v), Values(truth.value().begin(), truth.value().end()), 1e-12);
    }
    std::vector<Dims> decays = decay_dims(s);
    decays.push_back(Dims{});
    for (const Dims& decay : decays) expect_gradients(delta_inputs(s, decay, rng), delta_op);
  }
}

TEST(DeltaRuleOp, FollowsItsDoubleFormInF32) {
  Rng rng(4);
  for (const Sizes& s : kWide) {
    std::vector<Dims> decays = decay_dims(s);
    decays.push_back(Dims{});
    for (const Dims& decay : decays) {
      SCOPED_TRACE(testing::Message() << "time " << s.time << " keys " << s.keys << " values " << s.values << " decay " << decay.size());
      expect_f32_follows_f64(delta_op, delta_inputs(s, decay, rng), 2e-5);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// A decay of one number is the same decay written out for every key and step: values, and the sums of gradients.
TEST(MatrixStateOps, TakeEveryFormOfTheSameDecay) {
  Rng rng(5);
  const Sizes s{2, 19, 3, 4, 5};
  auto inputs = delta_inputs(s, {s.heads}, rng);
  Tape<double> tape;
  const auto narrow = leaves(tape, inputs);
  const CheckedInput few = inputs[5];
  inputs[5] = {"decay", decay_dims(s)[0], {}};
  for (std::size_t i = 0; i < s.batch * s.time * s.heads * s.keys; ++i) inputs[5].values.push_back(few.values[i / s.keys % s.heads]);
  const auto wide = leaves(tape, inputs);
  for (const bool delta : {false, true}) {
    const auto op = [&](const std::vector<Var<double>>& v) {
      return delta ? delta_rule(v[0], v[1], v[2], v[3], v[4], v[5]) : linear_attention(v[0], v[1], v[2], v[5]);
    };
    tape.zero_grads();
    const Var<double> a = op(narrow), b = op(wide);
    expect_values(a, Values(b.value().begin(), b.value().end()), 1e-14);
    tape.backward(sum(add(a, b)));
    Values sums(s.heads);
    for (std::size_t i = 0; i < tape.grad(wide[5]).size(); ++i) sums[i / s.keys % s.heads] += tape.grad(wide[5])[i];
    for (std::size_t h = 0; h < s.heads; ++h) EXPECT_NEAR(tape.grad(narrow[5])[h], sums[h], 1e-10 * std::abs(sums[h]));
  }
}

}  // namespace
}  // namespace kizzasi::autograd
