// Attention of one frame over a cache of the last frames (Vaswani et al. 2017; grouped queries: Ainslie et al. 2023).
#pragma once

#include <cstddef>
#include <span>

namespace kizzasi::kernels {

// keys: (kv_heads, D, window), so that scores of neighbouring frames lie side by side; values: (kv_heads, window, D). Query head h reads
// the cache of kv head h / (heads / kv_heads). A frame's place in the ring says nothing about its age: order does not matter to attention.
struct RingAttention {
  std::size_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float scale = 1;  // of the scores, before the softmax

  std::size_t cache_size() const noexcept { return kv_heads * head_dim * window; }  // of the keys, and of the values
};

// Writes one frame's key and value, (kv_heads * D) each, to place `at` of the ring.
void ring_store(const RingAttention& s, std::span<const float> key, std::span<const float> value, std::size_t at, std::span<float> keys,
                std::span<float> values) noexcept;

// out[h] = sum_j softmax_j(scale q[h] . key_j) value_j over the first `count` places, count >= 1. q, out: (heads * D), out may be q;
// scores: scratch of `window`. Each sum runs in one order, so the bits do not depend on the vector width. Real-time: yes. Thread: any.
void ring_attention(const RingAttention& s, std::span<const float> q, std::span<const float> keys, std::span<const float> values,
                    std::size_t count, std::span<float> scores, std::span<float> out) noexcept;
void ring_attention_plain(const RingAttention& s, std::span<const float> q, std::span<const float> keys, std::span<const float> values,
                          std::size_t count, std::span<float> scores, std::span<float> out) noexcept;

}  // namespace kizzasi::kernels
