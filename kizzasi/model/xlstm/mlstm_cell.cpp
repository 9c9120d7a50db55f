#include "kizzasi/model/xlstm/mlstm_cell.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/wkv.h"
#include "kizzasi/autograd/xlstm.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/kernels/norms.h"

namespace kizzasi {

using kernels::MatrixSpan;
using kernels::MatrixView;

namespace {
// Of e^-m: whatever is divided by more than that is nothing, and its gradient stays a number.
constexpr float kMostExponent = 80;
}  // namespace

MlstmCell::MlstmCell(const Sizes& sizes, std::vector<float> gain, const std::string& name, StateLayout& layout)
    : s_(sizes),
      gain_(std::move(gain)),
      zeros_(s_.values),
      cell_at_(layout.add(name + ".C", FieldType::kF32, {s_.heads, s_.keys, s_.values + 1}, true)),
      m_at_(layout.add(name + ".m", FieldType::kF32, {s_.heads})) {}

std::size_t MlstmCell::scratch_floats(std::size_t rows) const noexcept { return rows * s_.heads * (s_.values + 2) + s_.heads; }

void MlstmCell::advance(std::span<const Lane> lanes, MatrixView q, MatrixSpan k, MatrixView v, MatrixSpan enter, MatrixSpan keep,
                        MatrixSpan y, std::span<float> scratch) const noexcept {
  Scratch take(scratch);
  const MatrixSpan wide = take.rows(q.rows, s_.heads * (s_.values + 1)), least = take.rows(q.rows, s_.heads);
  const std::span<float> spare = take.floats(s_.heads);
  const std::size_t rows = q.rows / lanes.size();
  for (std::size_t r = 0; r < q.rows; ++r) {
    gates(state_floats(lanes[r / rows].state, m_at_, s_.heads), enter.row(r), keep.row(r), least.row(r), spare);
    spread(v.row(r), wide.row(r));
    for (std::size_t c = 0; c < k.cols; ++c) k.row(r)[c] *= enter.row(r)[c / s_.keys];
  }
  const kernels::LinearAttention attention{s_.heads, s_.keys, s_.values + 1, {}};
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const auto of = [&](MatrixView m) { return lane_rows(m, lanes.size(), i); };
    kernels::linear_attention(attention, of(q), of(k), of(wide), of(keep), state_floats(lanes[i].state, cell_at_, attention.state_size()),
                              lane_rows(wide, lanes.size(), i));
  }
  for (std::size_t r = 0; r < q.rows; ++r) read(wide.row(r), least.row(r), y.row(r));
}

// Raw gates become what enters and what stays, under the running exponent m; least: e^-m, the least that a read is divided by.
void MlstmCell::gates(std::span<float> m, std::span<float> enter, std::span<float> keep, std::span<float> least,
                      std::span<float> scratch) const noexcept {
  for (std::size_t h = 0; h < s_.heads; ++h) scratch[h] = -keep[h];
  kernels::softplus(scratch, scratch);  // -log sigmoid
  for (std::size_t h = 0; h < s_.heads; ++h) {
    const float stays = m[h] - scratch[h], next = std::max(stays, enter[h]);
    keep[h] = stays - next;
    enter[h] -= next;
    least[h] = std::min(-next, kMostExponent);
    m[h] = next;
  }
  kernels::exp(keep, keep);
  kernels::exp(enter, enter);
  kernels::exp(least, least);
}

void MlstmCell::spread(std::span<const float> v, std::span<float> wide) const noexcept {
  for (std::size_t h = 0; h < s_.heads; ++h) {
    std::copy_n(v.data() + h * s_.values, s_.values, wide.data() + h * (s_.values + 1));
    wide[h * (s_.values + 1) + s_.values] = 1;
  }
}

void MlstmCell::read(std::span<const float> wide, std::span<const float> least, std::span<float> y) const noexcept {
  for (std::size_t h = 0; h < s_.heads; ++h) {
    const float* from = wide.data() + h * (s_.values + 1);
    const std::span<float> head = y.subspan(h * s_.values, s_.values);
    const float by = std::max(std::abs(from[s_.values]), least[h]) + s_.epsilon;
    for (std::size_t c = 0; c < s_.values; ++c) head[c] = from[c] / by;
    kernels::layer_norm(head, std::span(gain_).subspan(h * s_.values, s_.values), zeros_, s_.norm_epsilon, head);
  }
}

template <typename T>
autograd::Var<T> mlstm_cell(autograd::Var<T> q, autograd::Var<T> k, autograd::Var<T> v, autograd::Var<T> enter, autograd::Var<T> keep,
                            T epsilon, T norm_epsilon) {
  using namespace autograd;
  const std::size_t batch = v.dims()[0], time = v.dims()[1], heads = v.dims()[2], values = v.dims()[3];
  const Var<T> decay = scale(softplus(scale(keep, T{-1})), T{-1});  // log sigmoid
  const Var<T> m = log_max_scan(decay, enter);
  const Var<T> stays = exp(sub(add(decay, shifted(m)), m)), share = exp(sub(enter, m));
  const std::vector<T> ones(batch * time * heads, T{1});
  const std::array<Var<T>, 2> both{v, v.tape->constant({batch, time, heads, 1}, std::span<const T>(ones))};
  const Var<T> wide = linear_attention(q, scale_rows(k, share), concat(std::span<const Var<T>>(both), 3), stays);
  const Var<T> least = exp(clamp(scale(m, T{-1}), static_cast<T>(-1e30), static_cast<T>(kMostExponent)));
  const Var<T> size = abs(reshape(slice(wide, 3, values, values + 1), {batch, time, heads}));
  const Var<T> by = add_scalar(add(relu(sub(size, least)), least), epsilon);
  const Var<T> inverse = div(v.tape->constant({batch, time, heads}, std::span<const T>(ones)), by);
  const Var<T> h = scale_rows(slice(wide, 3, 0, values), inverse);
  return reshape(layer_norm(h, Var<T>{}, Var<T>{}, norm_epsilon), {batch, time, heads * values});
}

template autograd::Var<float> mlstm_cell(autograd::Var<float>, autograd::Var<float>, autograd::Var<float>, autograd::Var<float>,
                                         autograd::Var<float>, float, float);
template autograd::Var<double> mlstm_cell(autograd::Var<double>, autograd::Var<double>, autograd::Var<double>, autograd::Var<double>,
                                          autograd::Var<double>, double, double);

}  // namespace kizzasi
