#include "kizzasi/autograd/causal_convolution.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/fft.h"

namespace kizzasi::autograd {
namespace {

constexpr std::size_t kChannelsAtOnce = 16;  // of one transform: whole vectors, and a buffer that stays in the cache

// A group of channels of two sequences: the first as real parts, the second as imaginary parts. A real kernel keeps the two apart, so that
// one transform serves both.
template <typename T>
struct Group {
  std::vector<T> re, im;
  explicit Group(std::size_t size) : re(size), im(size) {}

  // rows of `lanes` channels from `first`, every `stride`-th number; nothing where there is no such sequence. Zeros behind.
  void load(std::vector<T>& plane, const T* from, std::size_t time, std::size_t stride, std::size_t first, std::size_t lanes) const {
    std::fill(plane.begin(), plane.end(), T{0});
    for (std::size_t t = 0; t < time && from != nullptr; ++t)
      std::copy_n(from + t * stride + first, lanes, plane.begin() + static_cast<std::ptrdiff_t>(t * lanes));
  }
  void load(const T* first_sequence, const T* second, std::size_t time, std::size_t stride, std::size_t first, std::size_t lanes) {
    load(re, first_sequence, time, stride, first, lanes);
    load(im, second, time, stride, first, lanes);
  }
};

void multiply(std::size_t count, const Group<float>& a, bool conjugate, const Group<float>& b, bool add, Group<float>& out) {
  const auto spectra = [](const Group<float>& g) {
    return kernels::Spectra{const_cast<float*>(g.re.data()), const_cast<float*>(g.im.data())};
  };
  kernels::multiply_spectra(count, spectra(a), conjugate, spectra(b), add, spectra(out));
}
void multiply(std::size_t count, const Group<double>& a, bool conjugate, const Group<double>& b, bool add, Group<double>& out) {
  for (std::size_t i = 0; i < count; ++i) {
    const double im = conjugate ? -a.im[i] : a.im[i], re = a.re[i] * b.re[i] - im * b.im[i], other = a.re[i] * b.im[i] + im * b.re[i];
    out.re[i] = add ? out.re[i] + re : re;
    out.im[i] = add ? out.im[i] + other : other;
  }
}

struct Sizes {
  std::size_t batch, time, channels;
  std::size_t padded() const { return kernels::power_of_two(2 * time); }
};

// to[t] += of one plane, over n.
template <typename T>
void unload(const std::vector<T>& plane, T over, std::size_t time, std::size_t stride, std::size_t first, std::size_t lanes, bool add,
            T* to) {
  for (std::size_t t = 0; t < time; ++t) {
    const T* from = plane.data() + t * lanes;
    T* row = to + t * stride + first;
    for (std::size_t i = 0; i < lanes; ++i) row[i] = (add ? row[i] : T{0}) + from[i] * over;
  }
}

template <typename T>
void convolve(const Sizes& s, const T* x, const T* k, T* y) {
  const kernels::Fft<T> fft(s.padded());
  const T over = T{1} / static_cast<T>(s.padded());
  const std::size_t block = s.time * s.channels;
  for (std::size_t first = 0; first < s.channels; first += kChannelsAtOnce) {
    const std::size_t lanes = std::min(kChannelsAtOnce, s.channels - first), size = s.padded() * lanes;
    Group<T> kernel(size), pair(size);
    kernel.load(k, nullptr, s.time, s.channels, first, lanes);
    fft.forward(kernel.re.data(), kernel.im.data(), lanes);
    for (std::size_t b = 0; b < s.batch; b += 2) {
      const bool two = b + 1 < s.batch;
      pair.load(x + b * block, two ? x + (b + 1) * block : nullptr, s.time, s.channels, first, lanes);
      fft.forward(pair.re.data(), pair.im.data(), lanes);
      multiply(size, kernel, false, pair, false, pair);
      fft.inverse(pair.re.data(), pair.im.data(), lanes);
      unload(pair.re, over, s.time, s.channels, first, lanes, false, y + b * block);
      if (two) unload(pair.im, over, s.time, s.channels, first, lanes, false, y + (b + 1) * block);
    }
  }
}

// gx = the correlation of gy with k; gk = the sum over the batch of that of gy with x, which is the real part of a pair's. gx, gk may be
// null.
template <typename T>
void correlate(const Sizes& s, const T* x, const T* k, const T* gy, T* gx, bool add_x, T* gk, bool add_k) {
  const kernels::Fft<T> fft(s.padded());
  const T over = T{1} / static_cast<T>(s.padded());
  const std::size_t block = s.time * s.channels;
  for (std::size_t first = 0; first < s.channels; first += kChannelsAtOnce) {
    const std::size_t lanes = std::min(kChannelsAtOnce, s.channels - first), size = s.padded() * lanes;
    Group<T> kernel(size), pair(size), out(size), sum(size);
    if (gx != nullptr) {
      kernel.load(k, nullptr, s.time, s.channels, first, lanes);
      fft.forward(kernel.re.data(), kernel.im.data(), lanes);
    }
    for (std::size_t b = 0; b < s.batch; b += 2) {
      const bool two = b + 1 < s.batch;
      out.load(gy + b * block, two ? gy + (b + 1) * block : nullptr, s.time, s.channels, first, lanes);
      fft.forward(out.re.data(), out.im.data(), lanes);
      if (gk != nullptr) {
        pair.load(x + b * block, two ? x + (b + 1) * block : nullptr, s.time, s.channels, first, lanes);
        fft.forward(pair.re.data(), pair.im.data(), lanes);
        multiply(size, pair, true, out, b > 0, sum);
      }
      if (gx == nullptr) continue;
      multiply(size, kernel, true, out, false, out);
      fft.inverse(out.re.data(), out.im.data(), lanes);
      unload(out.re, over, s.time, s.channels, first, lanes, add_x, gx + b * block);
      if (two) unload(out.im, over, s.time, s.channels, first, lanes, add_x, gx + (b + 1) * block);
    }
    if (gk == nullptr) continue;
    fft.inverse(sum.re.data(), sum.im.data(), lanes);
    unload(sum.re, over, s.time, s.channels, first, lanes, add_k, gk);
  }
}

// (1, time, E): one in the first frame.
template <typename T>
Var<T> impulse(Tape<T>& tape, std::size_t time, std::size_t channels) {
  std::vector<T> values(time * channels);
  std::fill_n(values.begin(), channels, T{1});
  return tape.constant({1, time, channels}, std::span<const T>(values));
}

}  // namespace

template <typename T>
Var<T> causal_convolution(Var<T> x, Var<T> k) {
  const Dims dims = x.dims();
  assert(dims.size() == 3 && k.dims() == (Dims{dims[1], dims[2]}));
  const Sizes s{dims[0], dims[1], dims[2]};
  const Var<T> y = x.tape->record(dims, {x, k}, [x = x.id, k = k.id, s](Tape<T>& tape, std::size_t id) {
    const auto to_x = tape.flow(x), to_k = tape.flow(k);
    correlate<T>(s, tape.value(x).data(), tape.value(k).data(), tape.grad(id).data(), to_x.grad.empty() ? nullptr : to_x.grad.data(),
                 !to_x.first, to_k.grad.empty() ? nullptr : to_k.grad.data(), !to_k.first);
  });
  convolve<T>(s, x.value().data(), k.value().data(), x.tape->mutable_value(y.id).data());
  return y;
}

template <typename T>
Var<T> diagonal_convolution(Var<T> x, Var<T> a, Var<T> c, Var<T> d) {
  const std::size_t time = x.dims()[1], channels = x.dims()[2];
  return causal_convolution(x, reshape(diagonal_scan(impulse(*x.tape, time, channels), a, c, d), {time, channels}));
}

template <typename T>
Var<T> dplr_convolution(Var<T> x, const DplrCoefficients<T>& k) {
  const std::size_t time = x.dims()[1], channels = x.dims()[2];
  return causal_convolution(x, reshape(dplr_scan(impulse(*x.tape, time, channels), k), {time, channels}));
}

// Of one frame and channel, in the time of one complex state of the diagonal scan (forward and backward): the scan's grows with the states,
// that of the transforms with the logarithm of the padded length, and the kernel is one scan for the whole batch. The numbers are fitted to
// bench/convolution.cpp, with a fifth to spare for the scan.
bool convolution_pays(std::size_t batch, std::size_t time, std::size_t states, double cost_of_state) {
  constexpr std::size_t kShortest = 256, kFewest = 4;
  constexpr double kByLog = 1.6, kLess = 3.5;
  if (time < kShortest || batch < kFewest) return false;
  const double padded = static_cast<double>(kernels::power_of_two(2 * time));
  const double sequences = static_cast<double>(batch), pairs = static_cast<double>((batch + 1) / 2);
  const double transforms = (kByLog * std::log2(padded) - kLess) * padded / (2 * static_cast<double>(time)) * (2 * pairs / sequences);
  return cost_of_state * static_cast<double>(states) * (1 - 1 / sequences) > transforms;
}

template <typename T>
Var<T> diagonal_system(Var<T> x, Var<T> a, Var<T> c, Var<T> d) {
  return convolution_pays(x.dims()[0], x.dims()[1], a.dims()[1], kDiagonalState) ? diagonal_convolution(x, a, c, d)
                                                                                 : diagonal_scan(x, a, c, d);
}

template <typename T>
Var<T> dplr_system(Var<T> x, const DplrCoefficients<T>& k) {
  return convolution_pays(x.dims()[0], x.dims()[1], k.a.dims()[1], kDplrState) ? dplr_convolution(x, k) : dplr_scan(x, k);
}

template Var<float> causal_convolution(Var<float>, Var<float>);
template Var<double> causal_convolution(Var<double>, Var<double>);
template Var<float> diagonal_convolution(Var<float>, Var<float>, Var<float>, Var<float>);
template Var<double> diagonal_convolution(Var<double>, Var<double>, Var<double>, Var<double>);
template Var<float> dplr_convolution(Var<float>, const DplrCoefficients<float>&);
template Var<double> dplr_convolution(Var<double>, const DplrCoefficients<double>&);
template Var<float> diagonal_system(Var<float>, Var<float>, Var<float>, Var<float>);
template Var<double> diagonal_system(Var<double>, Var<double>, Var<double>, Var<double>);
template Var<float> dplr_system(Var<float>, const DplrCoefficients<float>&);
template Var<double> dplr_system(Var<double>, const DplrCoefficients<double>&);

}  // namespace kizzasi::autograd
