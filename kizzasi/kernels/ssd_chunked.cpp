#include "kizzasi/kernels/ssd_chunked.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/gemm.h"
#include "kizzasi/kernels/ssd.h"

namespace kizzasi::kernels {
namespace {

constexpr Transpose kNo = Transpose::kNo, kYes = Transpose::kYes;

// One chunk of rows of all inputs.
struct Rows {
  MatrixView x, delta, b, c;
  std::size_t count() const { return x.rows; }
};

// Buffers for one head of one chunk of q rows.
struct Buffers {
  float* scores;          // (q, q): C B^T of the group
  float *l, *m;           // (q, q): the decays from j to i; those times scores and delta[j]; zero above the diagonal
  float* from_start;      // (q): the decay from before the chunk to row i
  float *c_in, *b_out;    // (q, N): C, B as the state before and after the chunk sees them
  float *gm, *gscores;    // (q, q)
  float *gc_in, *gb_out;  // (q, N)
  float *passing, *step;  // (q)
  float* carry;           // (heads, N, P): the gradient of the state after the chunk
};

Buffers buffers(const ChunkedSsd& s, float* free) {
  const std::size_t square = s.chunk * s.chunk, tall = s.chunk * s.states;
  const auto take = [&free](std::size_t count) { return std::exchange(free, free + count); };
  Buffers k;
  k.scores = take(square), k.l = take(square), k.m = take(square), k.gm = take(square), k.gscores = take(square);
  k.c_in = take(tall), k.b_out = take(tall), k.gc_in = take(tall), k.gb_out = take(tall);
  k.from_start = take(s.chunk), k.passing = take(s.chunk), k.step = take(s.chunk);
  k.carry = take(s.state_size());
  return k;
}

MatrixView of_group(const ChunkedSsd& s, MatrixView bc, std::size_t group) { return bc.columns(group * s.states, s.states); }
MatrixSpan of_group(const ChunkedSsd& s, MatrixSpan bc, std::size_t group) { return bc.columns(group * s.states, s.states); }

float sum_of_products(const float* a, const float* b, std::size_t size) { return dot({a, size}, {b, size}); }

// Everything that one head needs before its products.
void weigh(const ChunkedSsd& s, const Rows& r, std::size_t head, const Buffers& k) {
  const std::size_t q = r.count(), group = head * s.groups / s.heads;
  const MatrixView b = of_group(s, r.b, group), c = of_group(s, r.c, group);
  for (std::size_t i = 0; i < q; ++i) k.step[i] = r.delta.row(i)[head] * s.a[head];
  exp({k.step, q}, {k.step, q});
  float decay = 1.0f;
  for (std::size_t i = 0; i < q; ++i) {
    float* row = k.l + i * q;
    if (i > 0) {
      const float* above = row - q;
      for (std::size_t j = 0; j < i; ++j) row[j] = above[j] * k.step[i];
    }
    row[i] = 1.0f;
    std::fill(row + i + 1, row + q, 0.0f);
    decay *= k.step[i];
    k.from_start[i] = decay;
  }
  for (std::size_t j = 0; j < q; ++j) k.step[j] = r.delta.row(j)[head];
  for (std::size_t i = 0; i < q; ++i) {
    for (std::size_t j = 0; j < q; ++j) k.m[i * q + j] = k.l[i * q + j] * k.scores[i * q + j] * k.step[j];
  }
  for (std::size_t i = 0; i < q; ++i) {
    const float to_end = k.l[(q - 1) * q + i] * k.step[i];
    for (std::size_t n = 0; n < s.states; ++n) {
      k.c_in[i * s.states + n] = k.from_start[i] * c.row(i)[n];
      k.b_out[i * s.states + n] = to_end * b.row(i)[n];
    }
  }
}

const float* skip_of(const ChunkedSsd& s, std::size_t head) { return s.d.data() + (s.wide_skip ? head * s.head_dim : head); }

// The gradients of delta and a through the decays. delta[t] a stands in every decay that passes from before row t to t or later. Sums of a
// chunk are taken in double.
void gather_decays(const ChunkedSsd& s, const Rows& r, std::size_t head, const float* before, const float* g_after, const Buffers& k,
                   MatrixSpan gdelta, float& ga) {
  const std::size_t q = r.count(), size = s.states * s.head_dim, group = head * s.groups / s.heads;
  const MatrixView b = of_group(s, r.b, group), c = of_group(s, r.c, group);
  // Into row i: from the state before the chunk, then from rows 0, 1, ... as t passes them.
  float* passing = k.passing;
  for (std::size_t i = 0; i < q; ++i) {
    passing[i] = k.from_start[i] * sum_of_products(k.gc_in + i * s.states, c.row(i).data(), s.states);
  }
  double after_chunk = k.from_start[q - 1] * sum_of_products(before, g_after, size);  // what passes row t on its way beyond the chunk
  double of_a = 0;
  for (std::size_t t = 0; t < q; ++t) {
    double decay = after_chunk, within = 0;
    for (std::size_t i = t; i < q; ++i) {
      const std::size_t at = i * q + t;
      const float pair = k.gm[at] * k.l[at] * k.scores[at];
      decay += double{passing[i]};
      within += double{pair};
      passing[i] += pair * k.step[t];
    }
    const float to_end = k.l[(q - 1) * q + t] * sum_of_products(k.gb_out + t * s.states, b.row(t).data(), s.states);
    after_chunk += double{to_end} * double{k.step[t]};
    gdelta.row(t)[head] += static_cast<float>(to_end + within + decay * double{s.a[head]});
    of_a += decay * double{k.step[t]};
  }
  ga += static_cast<float>(of_a);
}

void chunk_backward(const ChunkedSsd& s, const Rows& r, const float* before, MatrixView gy, const SsdGradients& out, const Buffers& k) {
  const std::size_t q = r.count(), size = s.states * s.head_dim;
  for (std::size_t head = 0; head < s.heads; ++head) {
    const std::size_t group = head * s.groups / s.heads;
    const MatrixView b = of_group(s, r.b, group), c = of_group(s, r.c, group);
    const MatrixSpan gb = of_group(s, out.b, group), gc = of_group(s, out.c, group);
    if (head == 0 || group != (head - 1) * s.groups / s.heads) {
      gemm(kNo, c, kYes, b, {k.scores, q, q}, false);
      std::fill_n(k.gscores, q * q, 0.0f);
    }
    weigh(s, r, head, k);
    const MatrixView x = r.x.columns(head * s.head_dim, s.head_dim), g = gy.columns(head * s.head_dim, s.head_dim);
    const MatrixSpan gx = out.x.columns(head * s.head_dim, s.head_dim);
    const MatrixView state(before + head * size, s.states, s.head_dim);
    const MatrixSpan g_state(k.carry + head * size, s.states, s.head_dim);

    const float* skip = skip_of(s, head);
    float* gskip = out.d.data() + (s.wide_skip ? head * s.head_dim : head);
    double of_skip = 0;
    for (std::size_t i = 0; i < q; ++i) {
      for (std::size_t p = 0; p < s.head_dim; ++p) gx.row(i)[p] += skip[s.wide_skip ? p : 0] * g.row(i)[p];
      if (s.wide_skip) {
        for (std::size_t p = 0; p < s.head_dim; ++p) gskip[p] += g.row(i)[p] * x.row(i)[p];
      } else {
        of_skip += double{dot(g.row(i), x.row(i))};
      }
    }
    if (!s.wide_skip) gskip[0] += static_cast<float>(of_skip);
    gemm(kYes, {k.m, q, q}, kNo, g, gx, true);
    gemm(kNo, {k.b_out, q, s.states}, kNo, g_state, gx, true);
    gemm(kNo, g, kYes, x, {k.gm, q, q}, false);
    gemm(kNo, g, kYes, state, {k.gc_in, q, s.states}, false);
    gemm(kNo, x, kYes, g_state, {k.gb_out, q, s.states}, false);
    gather_decays(s, r, head, before + head * size, g_state.data, k, out.delta, out.a[head]);
    for (std::size_t i = 0; i < q; ++i) {
      const float to_end = k.l[(q - 1) * q + i] * k.step[i];
      for (std::size_t n = 0; n < s.states; ++n) {
        gc.row(i)[n] += k.from_start[i] * k.gc_in[i * s.states + n];
        gb.row(i)[n] += to_end * k.gb_out[i * s.states + n];
      }
      for (std::size_t j = 0; j < q; ++j) k.gscores[i * q + j] += k.gm[i * q + j] * k.l[i * q + j] * k.step[j];
    }
    const float whole = k.from_start[q - 1];
    for (std::size_t i = 0; i < size; ++i) g_state.data[i] *= whole;
    gemm(kYes, {k.c_in, q, s.states}, kNo, g, g_state, true);
    if (head + 1 == s.heads || group != (head + 1) * s.groups / s.heads) {
      gemm(kNo, {k.gscores, q, q}, kNo, b, gc, true);
      gemm(kYes, {k.gscores, q, q}, kNo, c, gb, true);
    }
  }
}

}  // namespace

std::size_t ssd_chunked_scratch(const ChunkedSsd& s) noexcept {
  return 5 * s.chunk * s.chunk + 4 * s.chunk * s.states + 3 * s.chunk + s.state_size();  // more than the heads that ssd_keeping takes
}

void ssd_keeping(const ChunkedSsd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> kept, MatrixSpan y,
                 std::span<float> scratch) noexcept {
  const std::size_t size = s.state_size();
  const std::span<float> none = scratch.first(s.heads);
  std::fill(none.begin(), none.end(), 0.0f);
  const Ssd scan{s.heads, s.head_dim, s.states, s.groups, s.a, s.wide_skip ? std::span<const float>(none) : s.d};
  std::fill_n(kept.data(), size, 0.0f);
  for (std::size_t chunk = 0; chunk < s.chunks(x.rows); ++chunk) {
    const std::size_t t = chunk * s.chunk, rows = std::min(s.chunk, x.rows - t);
    const std::span<float> state = kept.subspan((chunk + 1) * size, size);
    std::copy_n(kept.data() + chunk * size, size, state.data());
    ssd_step(scan, x.slice(t, rows), delta.slice(t, rows), b.slice(t, rows), c.slice(t, rows), state, y.slice(t, rows));
  }
  if (!s.wide_skip) return;
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t e = 0; e < s.d.size(); ++e) y.row(t)[e] += s.d[e] * x.row(t)[e];
  }
}

void ssd_chunked_backward(const ChunkedSsd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<const float> kept,
                          MatrixView gy, const SsdGradients& out, std::span<float> scratch) {
  const Buffers k = buffers(s, scratch.data());
  std::fill_n(k.carry, s.state_size(), 0.0f);
  for (std::size_t chunk = s.chunks(x.rows); chunk-- > 0;) {
    const std::size_t t = chunk * s.chunk, rows = std::min(s.chunk, x.rows - t);
    const Rows r{x.slice(t, rows), delta.slice(t, rows), b.slice(t, rows), c.slice(t, rows)};
    const SsdGradients here{out.x.slice(t, rows), out.delta.slice(t, rows), out.b.slice(t, rows), out.c.slice(t, rows), out.a, out.d};
    chunk_backward(s, r, kept.data() + chunk * s.state_size(), gy.slice(t, rows), here, k);
  }
}

}  // namespace kizzasi::kernels
