// The scan of a state space with one number a state, h[t] = a[t] h[t - 1] + x[t], along time in parallel: for long sequences of few
// channels, where there are threads to spare (Blelloch 1990). On one thread gated_scan does half the work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kizzasi/kernels/associative_scan.h"
#include "kizzasi/kernels/gated_scan.h"

namespace kizzasi::kernels {

// Rows [first, end) by gated_scan, from h; where begins[t] != 0 a sequence begins, from zero. begins: one a row of all rows, or empty.
inline void ssm_scan_rows(MatrixView a, MatrixView x, std::span<const std::uint8_t> begins, std::size_t first, std::size_t end,
                          std::span<float> h, MatrixSpan y) noexcept {
  for (std::size_t t = first; t < end;) {
    if (!begins.empty() && begins[t] != 0) std::fill(h.begin(), h.end(), 0.0f);
    std::size_t stop = begins.empty() ? end : t + 1;
    while (stop < end && begins[stop] == 0) ++stop;
    gated_scan(a.slice(t, stop - t), x.slice(t, stop - t), h, y.slice(t, stop - t));
    t = stop;
  }
}

// y[t] = a[t] y[t - 1] + x[t] from y[-1] = h, or from zero at every row with begins[t] != 0 (sequences packed one after another; empty: one
// sequence). a, x, y: (rows, E); y may be x, not a; h: (E), read and left as the last row. scratch: (pieces, 2 E) floats.
// run: as in associative_scan.h. In one piece the bits are those of gated_scan, sequence by sequence; else they depend on the number of
// pieces, never on the threads. Allocates nothing itself. Thread: any, one caller a y.
template <typename Run>
void ssm_scan(MatrixView a, MatrixView x, std::span<const std::uint8_t> begins, std::span<float> h, MatrixSpan y, std::size_t pieces,
              std::span<float> scratch, Run&& run) {
  const std::size_t rows = x.rows, channels = x.cols;
  if (rows == 0) return;
  const std::size_t length = (rows + std::max<std::size_t>(1, pieces) - 1) / std::max<std::size_t>(1, pieces);
  const std::size_t count = (rows + length - 1) / length;
  const auto end = [&](std::size_t piece) { return std::min(rows, (piece + 1) * length); };
  const auto begins_at = [&](std::size_t t) { return !begins.empty() && begins[t] != 0; };
  const auto any_begins = [&](std::size_t piece) {
    return !begins.empty() && std::any_of(begins.begin() + static_cast<std::ptrdiff_t>(piece * length),
                                          begins.begin() + static_cast<std::ptrdiff_t>(end(piece)), [](std::uint8_t b) { return b != 0; });
  };
  // Of each piece: its state, then what its rows multiply a state from before them by.
  const auto state = [&](std::size_t piece) { return scratch.subspan(2 * piece * channels, channels); };
  const auto factor = [&](std::size_t piece) { return scratch.subspan((2 * piece + 1) * channels, channels); };
  run(count, [&](std::size_t piece) {
    const std::span<float> now = state(piece), product = factor(piece);
    for (std::size_t e = 0; e < channels; ++e) now[e] = piece == 0 ? h[e] : 0.0f;
    ssm_scan_rows(a, x, begins, piece * length, end(piece), now, y);
    if (piece == 0) return;
    std::fill(product.begin(), product.end(), 1.0f);
    for (std::size_t t = piece * length; t < end(piece); ++t) {
      for (std::size_t e = 0; e < channels; ++e) product[e] *= a.row(t)[e];
    }
  });
  for (std::size_t piece = 1; piece < count; ++piece) {
    if (any_begins(piece)) continue;
    for (std::size_t e = 0; e < channels; ++e) state(piece)[e] += factor(piece)[e] * state(piece - 1)[e];
  }
  std::copy_n(state(count - 1).begin(), channels, h.begin());
  if (count < 2) return;
  run(count - 1, [&](std::size_t before) {
    const std::size_t piece = before + 1;
    const std::span<float> carry = factor(piece);  // not needed any more
    std::copy_n(state(before).begin(), channels, carry.begin());
    for (std::size_t t = piece * length; t < end(piece) && !begins_at(t); ++t) {
      for (std::size_t e = 0; e < channels; ++e) {
        carry[e] *= a.row(t)[e];
        y.row(t)[e] += carry[e];
      }
    }
  });
}

// Sequences of `length` rows one after another, each from zero, side by side: the bits of gated_scan of each. states: (sequences, E), left
// as the last rows.
template <typename Run>
void ssm_scan_batch(MatrixView a, MatrixView x, std::size_t length, std::span<float> states, MatrixSpan y, Run&& run) {
  if (length == 0) return;
  run(x.rows / length, [&](std::size_t i) {
    const std::span<float> h = states.subspan(i * x.cols, x.cols);
    std::fill(h.begin(), h.end(), 0.0f);
    gated_scan(a.slice(i * length, length), x.slice(i * length, length), h, y.slice(i * length, length));
  });
}

}  // namespace kizzasi::kernels
