// The published operators under tests/golden/backbones: outputs, states at the end and in between, and gradients, by the kernels alone and
// through the tape in both precisions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/base/json.h"
#include "kizzasi/kernels/delta_rule.h"
#include "kizzasi/kernels/gated_scan.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/tensor/files.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {
namespace {

using autograd::Dims;
using autograd::Var;
using kernels::MatrixSpan;
using kernels::MatrixView;

// The tensors of a case with times before heads, (batch, time, head, dim), whichever way they were stored.
class Case {
 public:
  Case(const std::string& name, bool heads_first) : heads_first_(heads_first) {
    const std::string stem = KIZZASI_SOURCE_DIR "/tests/golden/backbones/" + name;
    const auto io = read_safetensors(stem + ".io.safetensors");
    const auto text = read_file(stem + ".json");
    EXPECT_TRUE(io && text) << stem;
    tensors_ = io->tensors;
    const auto json = Json::parse(*text, stem);
    const Json* fair = json->find("tolerance")->find("fair");
    output_ = fair->find("output")->number();
    gradient_ = fair->find("grad")->number();
  }

  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  const Tensor& at(const std::string& name) const { return tensors_.at(name); }
  // An input, an output or a gradient of one; states stay as they are.
  Tensor rows(const std::string& name) const {
    const Tensor& from = at(name);
    if (!heads_first_ || from.shape.size() < 3) return from;
    const std::size_t heads = from.shape[1], time = from.shape[2], width = from.shape.size() == 4 ? from.shape[3] : 1;
    Shape shape = from.shape;
    std::swap(shape[1], shape[2]);
    Tensor to(shape);
    for (std::size_t i = 0; i < from.values.size(); ++i) {
      const std::size_t n = i % width, t = i / width % time, h = i / width / time % heads, b = i / width / time / heads;
      to.values[((b * time + t) * heads + h) * width + n] = from.values[i];
    }
    return to;
  }
  Dims dims(const std::string& name) const {
    const Tensor tensor = rows(name);
    return {tensor.shape.begin(), tensor.shape.end()};
  }

  template <typename T>
  void expect(std::span<const T> ours, const Tensor& truth, bool gradient, const std::string& what) const {
    ASSERT_EQ(ours.size(), truth.values.size()) << what;
    double largest = 0;
    for (const float v : truth.values) largest = std::max(largest, std::abs(static_cast<double>(v)));
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(ours[i]), static_cast<double>(truth.values[i]), (gradient ? gradient_ : output_) * largest)
          << what << " " << i;
    }
  }

 private:
  bool heads_first_;
  double output_ = 0, gradient_ = 0;
  NamedTensors tensors_;
};

// ---- Through the tape. op(inputs by name) -> output; `readers` more rows behind read the state, key by key: so its gradient is one of
// rows, too.

template <typename T>
using Inputs = std::function<Var<T>(const std::string&)>;

// x (batch, time, ...) followed by `count` rows of these values each.
template <typename T>
Var<T> followed(Var<T> x, std::size_t count, const std::function<T(std::size_t row, std::size_t column)>& value) {
  Dims dims = x.dims();
  const std::size_t width = elements(dims) / dims[0] / dims[1];
  dims[1] = count;
  std::vector<T> rows;
  for (std::size_t i = 0; i < dims[0] * count * width; ++i) rows.push_back(value(i / width % count, i % width));
  const Var<T> both[] = {x, x.tape->constant(dims, std::span<const T>(rows))};
  return autograd::concat(std::span<const Var<T>>(both), 1);
}
template <typename T>
Var<T> followed(Var<T> x, std::size_t count, T value) {
  return followed<T>(x, count, [value](std::size_t, std::size_t) { return value; });
}

template <typename T>
void expect_on_tape(const Case& c, const std::vector<std::string>& names, const std::function<Var<T>(const Inputs<T>&)>& op) {
  autograd::Tape<T> tape;
  std::map<std::string, Var<T>> vars;
  for (const std::string& name : names) {
    const Tensor tensor = c.rows("in." + name);
    const std::vector<T> values(tensor.values.begin(), tensor.values.end());
    vars[name] = tape.leaf(c.dims("in." + name), std::span<const T>(values));
  }
  const Var<T> y = op([&](const std::string& name) { return vars.at(name); });
  const Tensor output = c.rows("output"), cotangent = c.rows("cotangent");
  const std::size_t batch = y.dims()[0], time = output.shape[1], rows = y.dims()[1] - time,
                    width = y.value().size() / batch / (time + rows);
  // Output rows, then (rows, heads, V) of the state, which is stored (heads, rows, V).
  std::vector<T> seed(y.value().size()), ours, state;
  const bool with_state = c.has("cotangent_state");
  const std::size_t heads = y.dims().size() == 4 ? y.dims()[2] : 1, values = width / heads;
  const auto state_at = [&](std::size_t b, std::size_t n, std::size_t e) {
    return ((b * heads + e / values) * rows + n) * values + e % values;
  };
  state.resize(batch * rows * width);
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t t = 0; t < time + rows; ++t) {
      for (std::size_t e = 0; e < width; ++e) {
        const std::size_t at = (b * (time + rows) + t) * width + e;
        if (t < time) {
          ours.push_back(y.value()[at]);
          seed[at] = static_cast<T>(cotangent.values[(b * time + t) * width + e]);
        } else {
          state[state_at(b, t - time, e)] = y.value()[at];
          if (with_state) seed[at] = static_cast<T>(c.at("cotangent_state").values[state_at(b, t - time, e)]);
        }
      }
    }
  }
  c.expect(std::span<const T>(ours), output, false, "output");
  c.expect(std::span<const T>(state), c.at(with_state ? "state" : "state_step_form"), false, "state");
  tape.backward(y, std::span<const T>(seed));
  for (const std::string& name : names) {
    c.expect(std::span<const T>(tape.grad(vars.at(name))), c.rows("grad." + name), true, "grad." + name);
  }
}

template <typename Op>
void expect_on_both_tapes(const Case& c, const std::vector<std::string>& names, Op op) {
  expect_on_tape<float>(c, names, op);
  expect_on_tape<double>(c, names, op);
}

// ---- By the kernels: run(sequence, first row, rows, state, y).

template <typename Run>
void expect_by_kernel(const Case& c, Run run) {
  const Tensor output = c.rows("output"), &state = c.at(c.has("state") ? "state" : "state_step_form");
  const std::size_t batch = output.shape[0], time = output.shape[1], width = output.values.size() / batch / time;
  std::vector<float> y(output.values.size()), states(state.values.size()), third;
  const std::size_t size = states.size() / batch;
  for (std::size_t b = 0; b < batch; ++b) {
    const std::span<float> own = std::span(states).subspan(b * size, size);
    const MatrixSpan out(y.data() + b * time * width, time, width);
    run(b, 0, time / 3, own, out.slice(0, time / 3));
    third.insert(third.end(), own.begin(), own.end());
    run(b, time / 3, time - time / 3, own, out.slice(time / 3, time - time / 3));
  }
  c.expect(std::span<const float>(y), output, false, "output");
  c.expect(std::span<const float>(states), state, false, "state");
  if (c.has("state_after_third")) c.expect(std::span<const float>(third), c.at("state_after_third"), false, "state_after_third");
}

// Rows first .. first + count of sequence b.
MatrixView rows_of(const Tensor& x, std::size_t b, std::size_t first, std::size_t count) {
  const std::size_t time = x.shape[1], width = x.values.size() / x.shape[0] / time;
  return MatrixView(x.values.data() + b * time * width, time, width).slice(first, count);
}

template <typename F>
Tensor mapped(Tensor x, F f) {
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = f(x.values[i], i);
  return x;
}
Tensor scaled_queries(const Case& c) {
  const Tensor q = c.rows("in.q");
  const float scale = 1 / std::sqrt(static_cast<float>(q.shape.back()));
  return mapped(q, [=](float v, std::size_t) { return v * scale; });
}
Tensor decays(const Tensor& logs) {
  return mapped(logs, [](float v, std::size_t) { return std::exp(v); });
}

void expect_attention_by_kernel(const Case& c, const Tensor& k, const Tensor& decay) {
  const Tensor q = scaled_queries(c), v = c.rows("in.v");
  const kernels::LinearAttention scan{q.shape[2], q.shape[3], v.shape[3], {}};
  expect_by_kernel(c, [&](std::size_t b, std::size_t first, std::size_t count, std::span<float> state, MatrixSpan y) {
    const MatrixView a = decay.shape.size() == 1 ? MatrixView(decay.values.data(), 1, decay.shape[0]) : rows_of(decay, b, first, count);
    kernels::linear_attention(scan, rows_of(q, b, first, count), rows_of(k, b, first, count), rows_of(v, b, first, count), a, state, y);
  });
}

template <typename T>
Var<T> queries(Var<T> q) {
  return autograd::scale(q, static_cast<T>(1 / std::sqrt(static_cast<double>(q.dims()[3]))));
}
// Rows of unit vectors, one for each key.
template <typename T>
Var<T> reading(Var<T> q) {
  const std::size_t keys = q.dims()[3];
  return followed<T>(q, keys, [keys](std::size_t row, std::size_t column) { return column % keys == row ? T{1} : T{0}; });
}
template <typename T>
Var<T> idle(Var<T> x, std::size_t rows) {
  return followed(x, rows, T{0});
}

TEST(PublishedOperators, Retention) {
  const Case c("retnet/retention_op", true);
  Tensor decay(Shape{c.at("in.q").shape[1]});
  for (std::size_t h = 0; h < decay.values.size(); ++h) decay.values[h] = 1 - std::exp2(-5.0f - static_cast<float>(h));
  expect_attention_by_kernel(c, c.rows("in.k"), decay);
  expect_on_both_tapes(c, {"q", "k", "v"}, [&](const auto& in) {
    const auto q = queries(in("q"));
    using Scalar = std::remove_cvref_t<decltype(q.value()[0])>;
    // One decay for every step, but for the rows that read: so they are written out.
    const std::size_t keys = q.dims()[3], heads = q.dims()[2];
    Dims dims{q.dims()[0], q.dims()[1], heads};
    std::vector<Scalar> all(elements(dims));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Scalar>(decay.values[i % heads]);
    const auto decays = q.tape->constant(dims, std::span<const Scalar>(all));
    return linear_attention(reading(q), idle(in("k"), keys), idle(in("v"), keys), followed(decays, keys, Scalar{1}));
  });
}

TEST(PublishedOperators, GatedLinearAttention) {
  const Case c("gla/gla_op", false);
  expect_attention_by_kernel(c, c.rows("in.k"), decays(c.rows("in.gk")));
  expect_on_both_tapes(c, {"q", "k", "v", "gk"}, [](const auto& in) {
    const auto q = queries(in("q"));
    const std::size_t keys = q.dims()[3];
    return linear_attention(reading(q), idle(in("k"), keys), idle(in("v"), keys), exp(idle(in("gk"), keys)));
  });
}

TEST(PublishedOperators, Hgrn2) {
  const Case c("hgrn2/hgrn2_op", false);
  const Tensor decay = decays(c.rows("in.f"));
  expect_attention_by_kernel(c, mapped(c.rows("in.f"), [](float v, std::size_t) { return -std::expm1(v); }), decay);
  expect_on_both_tapes(c, {"q", "f", "v"}, [](const auto& in) {
    const auto q = queries(in("q"));
    using Scalar = std::remove_cvref_t<decltype(q.value()[0])>;
    const std::size_t keys = q.dims()[3];
    const auto kept = exp(idle(in("f"), keys));  // 1 in the rows that read, whose keys are 0 then
    return linear_attention(reading(q), add_scalar(scale(kept, Scalar{-1}), Scalar{1}), idle(in("v"), keys), kept);
  });
}

TEST(PublishedOperators, Hgrn) {
  const Case c("hgrn2/hgrn_op", false);
  const Tensor x = c.rows("in.x"), decay = decays(c.rows("in.g"));
  expect_by_kernel(c, [&](std::size_t b, std::size_t first, std::size_t count, std::span<float> state, MatrixSpan y) {
    kernels::gated_scan(rows_of(decay, b, first, count), rows_of(x, b, first, count), state, y);
  });
  expect_on_both_tapes(c, {"x", "g"}, [](const auto& in) { return gated_scan(exp(idle(in("g"), 1)), idle(in("x"), 1)); });
}

// decay: of Gated DeltaNet, one a head; without values: ones.
void expect_delta_by_kernel(const Case& c, const Tensor& decay) {
  const Tensor q = scaled_queries(c), k = c.rows("in.k"), v = c.rows("in.v"), beta = c.rows("in.beta");
  const std::size_t keys = q.shape[3];
  const Tensor weighted = mapped(k, [&](float key, std::size_t i) { return key * beta.values[i / keys]; });
  const Tensor back = mapped(k, [&](float key, std::size_t i) { return decay.values.empty() ? -key : -key * decay.values[i / keys]; });
  const kernels::DeltaRule scan{q.shape[2], keys, v.shape[3]};
  expect_by_kernel(c, [&](std::size_t b, std::size_t first, std::size_t count, std::span<float> state, MatrixSpan y) {
    const auto rows = [&](const Tensor& x) { return rows_of(x, b, first, count); };
    kernels::delta_rule(
        scan, {rows(q), rows(weighted), rows(v), rows(back), rows(weighted), decay.values.empty() ? MatrixView() : rows(decay)}, state, y);
  });
}

TEST(PublishedOperators, DeltaRule) {
  const Case c("deltanet/delta_rule_op", true);
  expect_delta_by_kernel(c, Tensor());
  expect_on_both_tapes(c, {"q", "k", "v", "beta"}, [](const auto& in) {
    const auto q = queries(in("q")), k = in("k");
    using Scalar = std::remove_cvref_t<decltype(q.value()[0])>;
    const std::size_t keys = q.dims()[3];
    const auto weighted = idle(scale_rows(k, in("beta")), keys);
    return delta_rule(reading(q), weighted, idle(in("v"), keys), idle(scale(k, Scalar{-1}), keys), weighted);
  });
}

TEST(PublishedOperators, GatedDeltaRule) {
  const Case c("gated_deltanet/gated_delta_rule_op", false);
  expect_delta_by_kernel(c, decays(c.rows("in.g")));
  expect_on_both_tapes(c, {"q", "k", "v", "beta", "g"}, [](const auto& in) {
    const auto q = queries(in("q")), k = in("k");
    using Scalar = std::remove_cvref_t<decltype(q.value()[0])>;
    const std::size_t keys = q.dims()[3];
    const auto weighted = idle(scale_rows(k, in("beta")), keys), decay = exp(idle(in("g"), keys));
    const auto back = scale(scale_rows(idle(k, keys), decay), Scalar{-1});
    return delta_rule(reading(q), weighted, idle(in("v"), keys), back, weighted, decay);
  });
}

}  // namespace
}  // namespace kizzasi
