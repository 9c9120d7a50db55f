#include "kizzasi/autograd/attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/product.h"

namespace kizzasi::autograd {
namespace {

using kernels::BasicMatrix;
using kernels::Transpose;

constexpr std::size_t kTile = 64;  // queries at once

struct Sizes {
  std::size_t batch, time, heads, kv_heads, width, window;
  std::vector<std::size_t> begins;  // of each frame: the first of its sequence; empty: 0

  // Rows of one head of one sequence among (batch, time, heads, width).
  template <typename T>
  BasicMatrix<T> rows(T* values, std::size_t b, std::size_t head, std::size_t of) const {
    return {values + (b * time * of + head) * width, time, width, of * width};
  }
  // The first key that a query at `t` sees.
  std::size_t first_key(std::size_t t) const { return std::max(begins.empty() ? 0 : begins[t], t + 1 > window ? t + 1 - window : 0); }
};

// Of each frame, the first one of its sequence; nothing where nothing is packed.
std::vector<std::size_t> begins_of(const Lengths& packed) {
  std::vector<std::size_t> all;
  for (const std::size_t length : packed) all.insert(all.end(), length, all.size());
  return all;
}

// The queries [begin, end) of one head, and the keys [first, end) that any of them sees.
struct Tile {
  std::size_t begin, end, first;
  std::size_t rows() const { return end - begin; }
  std::size_t keys() const { return end - first; }
};

// weights: (rows, keys) of the tile become the softmax of the scaled products, zero where a query does not see a key.
template <typename T>
void weights_of(const Sizes& s, const Tile& tile, BasicMatrix<const T> q, BasicMatrix<const T> k, BasicMatrix<T> weights) {
  product(Transpose::kNo, q.slice(tile.begin, tile.rows()), Transpose::kYes, k.slice(tile.first, tile.keys()), weights, false);
  const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(s.width)));
  for (std::size_t r = 0; r < tile.rows(); ++r) {
    const std::size_t t = tile.begin + r, from = s.first_key(t) - tile.first, to = t + 1 - tile.first;
    const std::span<T> row = weights.row(r);
    T most = row[from];
    for (std::size_t j = from; j < to; ++j) most = std::max(most, row[j]);
    double sum = 0;
    for (std::size_t j = from; j < to; ++j) sum += static_cast<double>(row[j] = std::exp(scale * (row[j] - most)));
    const T share = static_cast<T>(1 / sum);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j >= from && j < to ? row[j] * share : T{0};
  }
}

template <typename Use>
void for_each_tile(const Sizes& s, Use use) {
  for (std::size_t b = 0; b < s.batch; ++b) {
    for (std::size_t head = 0; head < s.heads; ++head) {
      for (std::size_t begin = 0; begin < s.time; begin += kTile) {
        use(b, head, Tile{begin, std::min(begin + kTile, s.time), s.first_key(begin)});
      }
    }
  }
}

}  // namespace

template <typename T>
Var<T> attention(Var<T> q, Var<T> k, Var<T> v, std::size_t window, const Lengths& packed) {
  assert(packed.empty() || total(packed) == q.dims()[1]);
  Tape<T>& tape = *q.tape;
  const Dims dims = q.dims();
  const Sizes s{dims[0], dims[1], dims[2], k.dims()[2], dims[3], window, begins_of(packed)};
  const std::size_t group = s.heads / s.kv_heads;
  const auto adjoint = [=](Tape<T>& on, std::size_t id) {
    std::vector<T> no_q, no_k, no_v, p, gp;
    T *gq = gradient_sink(on, q, no_q).data(), *gk = gradient_sink(on, k, no_k).data(), *gv = gradient_sink(on, v, no_v).data();
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(s.width)));
    for_each_tile(s, [&](std::size_t b, std::size_t head, const Tile& tile) {
      const std::size_t kv = head / group;
      const auto queries = s.rows(on.value(q.id).data(), b, head, s.heads), keys = s.rows(on.value(k.id).data(), b, kv, s.kv_heads);
      const auto values = s.rows(on.value(v.id).data(), b, kv, s.kv_heads).slice(tile.first, tile.keys());
      const T* gy = on.grad(id).data();
      const auto gout = s.rows(gy, b, head, s.heads).slice(tile.begin, tile.rows());
      p.resize(tile.rows() * tile.keys());
      gp.resize(p.size());
      const BasicMatrix<T> weights(p.data(), tile.rows(), tile.keys()), gweights(gp.data(), tile.rows(), tile.keys());
      weights_of<T>(s, tile, queries, keys, weights);
      product(Transpose::kYes, BasicMatrix<const T>(weights), Transpose::kNo, BasicMatrix<const T>(gout),
              s.rows(gv, b, kv, s.kv_heads).slice(tile.first, tile.keys()), true);
      product(Transpose::kNo, BasicMatrix<const T>(gout), Transpose::kYes, BasicMatrix<const T>(values), gweights, false);
      // Through the softmax: the scores' gradients, in place of those of the weights.
      for (std::size_t r = 0; r < tile.rows(); ++r) {
        double along = 0;
        for (std::size_t j = 0; j < tile.keys(); ++j)
          along += static_cast<double>(weights.row(r)[j]) * static_cast<double>(gweights.row(r)[j]);
        for (std::size_t j = 0; j < tile.keys(); ++j) {
          gweights.row(r)[j] = scale * weights.row(r)[j] * static_cast<T>(static_cast<double>(gweights.row(r)[j]) - along);
        }
      }
      product(Transpose::kNo, BasicMatrix<const T>(gweights), Transpose::kNo, BasicMatrix<const T>(keys.slice(tile.first, tile.keys())),
              s.rows(gq, b, head, s.heads).slice(tile.begin, tile.rows()), true);
      product(Transpose::kYes, BasicMatrix<const T>(gweights), Transpose::kNo, BasicMatrix<const T>(queries.slice(tile.begin, tile.rows())),
              s.rows(gk, b, kv, s.kv_heads).slice(tile.first, tile.keys()), true);
    });
  };
  const Var<T> y = tape.record(dims, {q, k, v}, adjoint);
  T* out = tape.mutable_value(y.id).data();
  std::vector<T> p;
  for_each_tile(s, [&](std::size_t b, std::size_t head, const Tile& tile) {
    const std::size_t kv = head / group;
    p.resize(tile.rows() * tile.keys());
    const BasicMatrix<T> weights(p.data(), tile.rows(), tile.keys());
    weights_of<T>(s, tile, s.rows(q.value().data(), b, head, s.heads), s.rows(k.value().data(), b, kv, s.kv_heads), weights);
    product(Transpose::kNo, BasicMatrix<const T>(weights), Transpose::kNo,
            BasicMatrix<const T>(s.rows(v.value().data(), b, kv, s.kv_heads).slice(tile.first, tile.keys())),
            s.rows(out, b, head, s.heads).slice(tile.begin, tile.rows()), false);
  });
  return y;
}

std::vector<double> rotary_frequencies(double theta, std::size_t rotated) {
  std::vector<double> all;
  for (std::size_t i = 0; i < rotated; i += 2) {
    const float share = static_cast<float>(i) / static_cast<float>(rotated);
    all.push_back(static_cast<double>(1.0f / std::pow(static_cast<float>(theta), share)));
  }
  return all;
}

template <typename T>
Var<T> rotary(Var<T> x, double theta, std::size_t rotated, const Lengths& packed) {
  assert(packed.empty() || total(packed) == x.dims()[1]);
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const std::size_t time = dims[1], heads = dims[2], width = dims[3], half = rotated / 2, rows = dims[0] * time * heads;
  std::vector<T> cosines, sines;
  const std::vector<double> frequencies = rotary_frequencies(theta, rotated);
  const std::vector<std::size_t> begins = begins_of(packed);
  for (std::size_t t = 0; t < time; ++t) {
    const auto position = static_cast<double>(begins.empty() ? t : t - begins[t]);
    for (const double f : frequencies) {
      cosines.push_back(static_cast<T>(std::cos(position * f)));
      sines.push_back(static_cast<T>(std::sin(position * f)));
    }
  }
  // to += or = from, turned by `way` times the angle: its adjoint is the turn back.
  const auto turn = [=](const T* from, T* to, T way, bool add) {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t at = row * width, t = row / heads % time;
      for (std::size_t i = 0; i < width; ++i) {
        T value = from[at + i];
        if (i < rotated) {
          const std::size_t pair = i < half ? i : i - half;
          const T c = cosines[t * half + pair], s = way * sines[t * half + pair];
          value = i < half ? value * c - from[at + i + half] * s : value * c + from[at + i - half] * s;
        }
        to[at + i] = add ? to[at + i] + value : value;
      }
    }
  };
  const Var<T> y = tape.record(dims, {x}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted;
    const std::span<T> gx = gradient_sink(on, x, unwanted);
    turn(on.grad(id).data(), gx.data(), T{-1}, true);
  });
  turn(x.value().data(), tape.mutable_value(y.id).data(), T{1}, false);
  return y;
}

template Var<float> attention(Var<float>, Var<float>, Var<float>, std::size_t, const Lengths&);
template Var<double> attention(Var<double>, Var<double>, Var<double>, std::size_t, const Lengths&);
template Var<float> rotary(Var<float>, double, std::size_t, const Lengths&);
template Var<double> rotary(Var<double>, double, std::size_t, const Lengths&);

}  // namespace kizzasi::autograd
