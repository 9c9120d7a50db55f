// Fourier transforms of a power of two of samples, of many signals side by side: for convolutions, and for spectra.
#pragma once

#include <cstddef>
#include <vector>

namespace kizzasi::kernels {

// The transform X_k = sum_t x_t e^(-2 pi i k t / n) of `lanes` complex signals at once, in place: sample t of signal c stands at t * lanes
// + c of `re` and of `im`. The spectrum lies in bit-reversed order (bin k at row place_of(k)), which products of spectra need not care for.
// T: float (in vectors of signals) or double. The order of the additions depends on n alone. Thread: any, once made. Real-time: yes, but
// for making it.
template <typename T>
class Fft {
 public:
  explicit Fft(std::size_t n);  // a power of two

  std::size_t size() const noexcept { return n_; }
  std::size_t place_of(std::size_t k) const noexcept;
  void forward(T* re, T* im, std::size_t lanes) const noexcept;
  // n times the signal whose spectrum, in bit-reversed order, is given.
  void inverse(T* re, T* im, std::size_t lanes) const noexcept;

 private:
  std::size_t n_;
  std::vector<T> cos_, sin_;  // of -2 pi k / n, k < n
};

// The same by plain loops, for any T: what the tests hold the vectors to.
template <typename T>
void fft_plain(bool inverse, std::size_t n, const T* cos, const T* sin, T* re, T* im, std::size_t lanes) noexcept;

// For spectra of n rows of `lanes`: out = a b, or conj(a) b, or with `add` out += that. out may be a or b.
struct Spectra {
  float *re, *im;
};
void multiply_spectra(std::size_t count, Spectra a, bool conjugate, Spectra b, bool add, Spectra out) noexcept;

// The least power of two that is not below `least`.
std::size_t power_of_two(std::size_t least) noexcept;

}  // namespace kizzasi::kernels
