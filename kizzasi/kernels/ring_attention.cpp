#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/ring_attention.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/ring_attention.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[e] = scale * sum_r factor[r] m[r][e] for V vectors of columns from e on.
template <class D, std::size_t V>
HWY_INLINE void columns(D d, std::size_t e, const float* factor, std::size_t rows, const float* m, std::size_t stride, float scale,
                        float* out) {
  const std::size_t width = hn::Lanes(d);
  hn::Vec<D> sum[V];
  for (std::size_t v = 0; v < V; ++v) sum[v] = hn::Zero(d);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto f = hn::Set(d, factor[r]);
    const float* row = m + r * stride + e;
    for (std::size_t v = 0; v < V; ++v) sum[v] = hn::MulAdd(f, hn::LoadU(d, row + v * width), sum[v]);
  }
  for (std::size_t v = 0; v < V; ++v) hn::StoreU(hn::Mul(sum[v], hn::Set(d, scale)), d, out + e + v * width);
}

// factor (rows) times m (rows, cols), in sequence over the rows.
void row_times(const float* factor, std::size_t rows, const float* m, std::size_t cols, std::size_t stride, float scale, float* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t width = hn::Lanes(d);
  std::size_t e = 0;
  for (; e + 8 * width <= cols; e += 8 * width) columns<decltype(d), 8>(d, e, factor, rows, m, stride, scale, out);
  for (; e + width <= cols; e += width) columns<decltype(d), 1>(d, e, factor, rows, m, stride, scale, out);
  for (; e < cols; ++e) columns<decltype(one), 1>(one, e, factor, rows, m, stride, scale, out);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void ring_store(const RingAttention& s, std::span<const float> key, std::span<const float> value, std::size_t at, std::span<float> keys,
                std::span<float> values) noexcept {
  for (std::size_t c = 0; c < s.kv_heads * s.head_dim; ++c) {
    const std::size_t head = c / s.head_dim, i = c % s.head_dim;
    keys[c * s.window + at] = key[c];
    values[(head * s.window + at) * s.head_dim + i] = value[c];
  }
}

HWY_EXPORT(row_times);

void ring_attention(const RingAttention& s, std::span<const float> q, std::span<const float> keys, std::span<const float> values,
                    std::size_t count, std::span<float> scores, std::span<float> out) noexcept {
  if (Backend* const other = backend_for(Kernel::kRingAttention)) return other->ring_attention(s, q, keys, values, count, scores, out);
  const auto product = HWY_DYNAMIC_DISPATCH(row_times);
  const std::size_t group = s.heads / s.kv_heads, cache = s.head_dim * s.window;
  for (std::size_t h = 0; h < s.heads; ++h) {
    const std::size_t at = h / group * cache;
    product(q.data() + h * s.head_dim, s.head_dim, keys.data() + at, count, s.window, s.scale, scores.data());
    softmax(scores.first(count), scores.first(count));
    product(scores.data(), count, values.data() + at, s.head_dim, s.head_dim, 1.0f, out.data() + h * s.head_dim);
  }
}

void ring_attention_plain(const RingAttention& s, std::span<const float> q, std::span<const float> keys, std::span<const float> values,
                          std::size_t count, std::span<float> scores, std::span<float> out) noexcept {
  const std::size_t group = s.heads / s.kv_heads, cache = s.head_dim * s.window;
  for (std::size_t h = 0; h < s.heads; ++h) {
    const float *query = q.data() + h * s.head_dim, *key = keys.data() + h / group * cache, *value = values.data() + h / group * cache;
    float most = -INFINITY, sum = 0;
    for (std::size_t j = 0; j < count; ++j) {
      float dot = 0;
      for (std::size_t i = 0; i < s.head_dim; ++i) dot = std::fma(query[i], key[i * s.window + j], dot);
      scores[j] = dot * s.scale;
      most = std::max(most, scores[j]);
    }
    for (std::size_t j = 0; j < count; ++j) sum += scores[j] = std::exp(scores[j] - most);
    for (std::size_t i = 0; i < s.head_dim; ++i) {
      float y = 0;
      for (std::size_t j = 0; j < count; ++j) y = std::fma(scores[j] / sum, value[j * s.head_dim + i], y);
      out[h * s.head_dim + i] = y;
    }
  }
}

}  // namespace kizzasi::kernels
#endif
