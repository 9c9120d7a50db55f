#include "kizzasi/kernels/backend.h"

#include <exception>

namespace kizzasi::kernels {

constinit thread_local ChosenBackend chosen_backend;

std::string_view kernel_name(Kernel kernel) noexcept {
  switch (kernel) {
    case Kernel::kLinear:
      return "linear";
    case Kernel::kGemm:
      return "gemm";
    case Kernel::kConv1dStep:
      return "conv1d_step";
    case Kernel::kDilatedConv1d:
      return "dilated_conv1d";
    case Kernel::kSelectiveScan:
      return "selective_scan";
    case Kernel::kSsdStep:
      return "ssd_step";
    case Kernel::kDiagonalScan:
      return "diagonal_scan";
    case Kernel::kDplrScan:
      return "dplr_scan";
    case Kernel::kComplexScan:
      return "complex_scan";
    case Kernel::kGatedScan:
      return "gated_scan";
    case Kernel::kLinearAttention:
      return "linear_attention";
    case Kernel::kDeltaRule:
      return "delta_rule";
    case Kernel::kWkv4:
      return "wkv4";
    case Kernel::kRingAttention:
      return "ring_attention";
  }
  return "";
}

Backend* backend_that_offers(Kernel kernel) noexcept {
  const ChosenBackend chosen = chosen_backend;
  if (chosen.backend->offers(kernel)) return chosen.backend;
  if (chosen.otherwise == NotOffered::kOnCpu) return nullptr;
  // An invariant that does not hold: who set the scope was to ask before. No kernel can fail, and to go to the CPU would not be seen.
  std::terminate();
}

void Backend::linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::linear(w, x, bias, y);
}

void Backend::gemm(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate) {
  const BackendScope cpu = BackendScope::cpu();
  kernels::gemm(ta, a, tb, b, c, accumulate);
}

void Backend::conv1d_step(std::span<const float> w, std::span<const float> bias, std::size_t taps, std::span<float> window, MatrixView x,
                          MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::conv1d_step(w, bias, taps, window, x, y);
}

void Backend::dilated_conv1d(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                             MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::dilated_conv1d(w, bias, taps, history, x, y);
}

void Backend::selective_scan(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                             MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::selective_scan(s, x, delta, b, c, h, y);
}

void Backend::ssd_step(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state,
                       MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::ssd_step(s, x, delta, b, c, state, y);
}

void Backend::diagonal_scan(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::diagonal_scan(s, x, h, y);
}

void Backend::dplr_scan(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::dplr_scan(s, x, h, y);
}

void Backend::complex_scan(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::complex_scan(a, b, x, h, y);
}

void Backend::gated_scan(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::gated_scan(a, x, h, y);
}

void Backend::linear_attention(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> state,
                               MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::linear_attention(s, q, k, v, decay, state, y);
}

void Backend::delta_rule(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> state, MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::delta_rule(s, rows, state, y);
}

void Backend::wkv4(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::wkv4(weights, k, v, state, y);
}

void Backend::ring_attention(const RingAttention& s, std::span<const float> q, std::span<const float> keys, std::span<const float> values,
                             std::size_t count, std::span<float> scores, std::span<float> out) noexcept {
  const BackendScope cpu = BackendScope::cpu();
  kernels::ring_attention(s, q, keys, values, count, scores, out);
}

}  // namespace kizzasi::kernels
