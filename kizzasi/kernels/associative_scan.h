// Running totals under any associative operation, in parallel, for batches and in segments (Blelloch 1990).
//
// x[i] <- x[0] o x[1] o ... o x[i]; `o` must be associative and need not commute. Nothing is allocated. The pieces, not the threads that
// work on them, decide how totals are grouped: equal pieces give equal bits.
// `run(count, work)` must call work(0), ..., work(count - 1), each once, in any order and on any threads, and return when all are done:
// ThreadPool::run, or kInOrder below. Thread: any, one caller a span.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kizzasi::kernels {

inline constexpr auto kInOrder = [](std::size_t count, auto&& work) {
  for (std::size_t i = 0; i < count; ++i) work(i);
};

// h[t] = scale h[t - 1] + shift as an element of a scan: composing two steps gives one step. What every diagonal state space is made of.
template <typename T>
struct AffineStep {
  T scale, shift;
};
inline constexpr auto kThenStep = []<typename T>(const AffineStep<T>& first, const AffineStep<T>& second) {
  return AffineStep<T>{second.scale * first.scale, second.scale * first.shift + second.shift};
};

template <typename T, typename Op>
void associative_scan(std::span<T> x, Op op) {
  for (std::size_t i = 1; i < x.size(); ++i) x[i] = op(x[i - 1], x[i]);
}

// Where the segments of a segmented scan begin: x[i] <- x[s] o ... o x[i], s the last place up to i with begins[s] != 0 (or 0).
template <typename T, typename Op>
void segmented_scan(std::span<T> x, std::span<const std::uint8_t> begins, Op op) {
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (begins[i] == 0) x[i] = op(x[i - 1], x[i]);
  }
}

// The same in up to `pieces` pieces side by side: each piece by itself, the totals of the pieces in order, then each piece again with what
// came before it. About twice the work of one thread.
template <typename T, typename Op, typename Run>
void segmented_scan(std::span<T> x, std::span<const std::uint8_t> begins, Op op, std::size_t pieces, Run&& run) {
  const std::size_t length = std::max<std::size_t>(1, (x.size() + pieces - 1) / std::max<std::size_t>(1, pieces));
  const std::size_t count = (x.size() + length - 1) / length;
  const auto end = [&](std::size_t piece) { return std::min(x.size(), (piece + 1) * length); };
  // The first place in the piece that what came before does not reach.
  const auto reach = [&](std::size_t piece) {
    if (begins.empty()) return end(piece);
    const auto from = begins.begin() + static_cast<std::ptrdiff_t>(piece * length),
               to = begins.begin() + static_cast<std::ptrdiff_t>(end(piece));
    return static_cast<std::size_t>(std::find_if(from, to, [](std::uint8_t begin) { return begin != 0; }) - begins.begin());
  };
  run(count, [&](std::size_t piece) {
    const std::size_t first = piece * length, size = end(piece) - first;
    if (begins.empty()) {
      associative_scan(x.subspan(first, size), op);
    } else {
      segmented_scan(x.subspan(first, size), begins.subspan(first, size), op);
    }
  });
  for (std::size_t piece = 1; piece < count; ++piece) {
    if (reach(piece) == end(piece)) x[end(piece) - 1] = op(x[piece * length - 1], x[end(piece) - 1]);
  }
  if (count < 2) return;
  run(count - 1, [&](std::size_t before) {
    const std::size_t piece = before + 1, stop = std::min(reach(piece), end(piece) - 1);
    for (std::size_t i = piece * length; i < stop; ++i) x[i] = op(x[piece * length - 1], x[i]);
  });
}

template <typename T, typename Op, typename Run>
void associative_scan(std::span<T> x, Op op, std::size_t pieces, Run&& run) {
  segmented_scan(x, std::span<const std::uint8_t>(), op, pieces, run);
}

// Sequences of `length` elements one after another, each scanned by itself, side by side.
template <typename T, typename Op, typename Run>
void associative_scan_batch(std::span<T> x, std::size_t length, Op op, Run&& run) {
  if (length == 0) return;
  run(x.size() / length, [&](std::size_t i) { associative_scan(x.subspan(i * length, length), op); });
}

}  // namespace kizzasi::kernels
