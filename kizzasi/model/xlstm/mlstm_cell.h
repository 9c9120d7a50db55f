// The cell of mLSTM (Beck et al. 2024): a matrix a head behind exponential gates. What its layers share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/model/layer.h"

namespace kizzasi {

// m' = max(log sigmoid(f) + m, i) from m = 0;   C = e^(log sigmoid(f) + m - m') C + e^(i - m') k (v, 1)^T
// read r = C^T q, its last number the sum s:   y = norm(r / (max(|s|, e^-m') + epsilon)) gain,   a layer norm over each head without bias
//
// State: C (heads, keys, values + 1), whose last column is the published n; m (heads).
class MlstmCell {
 public:
  struct Sizes {
    std::size_t heads = 0, keys = 0, values = 0;
    float epsilon = 0, norm_epsilon = 0;
  };
  MlstmCell(const Sizes& sizes, std::vector<float> gain, const std::string& name, StateLayout& layout);

  std::size_t scratch_floats(std::size_t rows) const noexcept;
  // q, k: (rows, heads keys), one of them scaled; v, y: (rows, heads values), y may be v; enter, keep: (rows, heads), the raw gates i and
  // f. Overwrites k, enter and keep. Real-time: yes.
  void advance(std::span<const Lane> lanes, kernels::MatrixView q, kernels::MatrixSpan k, kernels::MatrixView v, kernels::MatrixSpan enter,
               kernels::MatrixSpan keep, kernels::MatrixSpan y, std::span<float> scratch) const noexcept;

 private:
  void gates(std::span<float> m, std::span<float> enter, std::span<float> keep, std::span<float> least,
             std::span<float> scratch) const noexcept;
  void spread(std::span<const float> v, std::span<float> wide) const noexcept;
  void read(std::span<const float> wide, std::span<const float> least, std::span<float> y) const noexcept;

  Sizes s_;
  std::vector<float> gain_, zeros_;
  std::size_t cell_at_, m_at_;
};

// The same for training: q, k (batch, time, heads, keys), v (batch, time, heads, values), raw gates (batch, time, heads) -> (batch, time,
// heads values), without the gain.
template <typename T>
autograd::Var<T> mlstm_cell(autograd::Var<T> q, autograd::Var<T> k, autograd::Var<T> v, autograd::Var<T> enter, autograd::Var<T> keep,
                            T epsilon, T norm_epsilon);

}  // namespace kizzasi
