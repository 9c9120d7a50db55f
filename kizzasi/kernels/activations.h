// Elementwise functions on vectors, with the accuracy of a few units in the last place, and the same bits wherever an element stands.
#pragma once

#include <span>

namespace kizzasi::kernels {

// out[i] = f(x[i]); out may be x. NaN stays NaN. Real-time: yes. Thread: any.
void silu(std::span<const float> x, std::span<float> out) noexcept;  // x / (1 + e^-x)
void sigmoid(std::span<const float> x, std::span<float> out) noexcept;
void tanh(std::span<const float> x, std::span<float> out) noexcept;
void softplus(std::span<const float> x, std::span<float> out) noexcept;  // log(1 + e^x); x itself above 20
void exp(std::span<const float> x, std::span<float> out) noexcept;
void gelu(std::span<const float> x, std::span<float> out) noexcept;       // exact: x Phi(x)
void gelu_tanh(std::span<const float> x, std::span<float> out) noexcept;  // the tanh form
void relu(std::span<const float> x, std::span<float> out) noexcept;

// out[i] = a[i] * silu(b[i]): the gate of both Mambas.
void mul_silu(std::span<const float> a, std::span<const float> b, std::span<float> out) noexcept;
// x[i] = softmax over the whole span, shifted by its maximum.
void softmax(std::span<const float> x, std::span<float> out) noexcept;
// Sum of a[i] b[i] in one fixed order that depends on the length alone.
float dot(std::span<const float> a, std::span<const float> b) noexcept;

}  // namespace kizzasi::kernels
