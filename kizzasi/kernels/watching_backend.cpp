#include "kizzasi/kernels/watching_backend.h"

namespace kizzasi::kernels {

void WatchingBackend::linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept {
  see({Kernel::kLinear, x.rows, x.rows * w.outputs() * w.inputs()});
  Backend::linear(w, x, bias, y);
}

void WatchingBackend::gemm(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate) {
  see({Kernel::kGemm, c.rows, c.rows * c.cols * (ta == Transpose::kYes ? a.rows : a.cols)});
  Backend::gemm(ta, a, tb, b, c, accumulate);
}

void WatchingBackend::conv1d_step(std::span<const float> w, std::span<const float> bias, std::size_t taps, std::span<float> window,
                                  MatrixView x, MatrixSpan y) noexcept {
  see({Kernel::kConv1dStep, x.rows, 0});
  Backend::conv1d_step(w, bias, taps, window, x, y);
}

void WatchingBackend::dilated_conv1d(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history,
                                     MatrixView x, MatrixSpan y) noexcept {
  see({Kernel::kDilatedConv1d, x.rows, 0});
  Backend::dilated_conv1d(w, bias, taps, history, x, y);
}

void WatchingBackend::selective_scan(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                                     MatrixSpan y) noexcept {
  see({Kernel::kSelectiveScan, x.rows, 0});
  Backend::selective_scan(s, x, delta, b, c, h, y);
}

void WatchingBackend::ssd_step(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state,
                               MatrixSpan y) noexcept {
  see({Kernel::kSsdStep, x.rows, 0});
  Backend::ssd_step(s, x, delta, b, c, state, y);
}

void WatchingBackend::diagonal_scan(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  see({Kernel::kDiagonalScan, x.rows, 0});
  Backend::diagonal_scan(s, x, h, y);
}

void WatchingBackend::dplr_scan(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  see({Kernel::kDplrScan, x.rows, 0});
  Backend::dplr_scan(s, x, h, y);
}

void WatchingBackend::complex_scan(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h,
                                   MatrixSpan y) noexcept {
  see({Kernel::kComplexScan, x.rows, 0});
  Backend::complex_scan(a, b, x, h, y);
}

void WatchingBackend::gated_scan(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  see({Kernel::kGatedScan, x.rows, 0});
  Backend::gated_scan(a, x, h, y);
}

void WatchingBackend::linear_attention(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay,
                                       std::span<float> state, MatrixSpan y) noexcept {
  see({Kernel::kLinearAttention, v.rows, 0});
  Backend::linear_attention(s, q, k, v, decay, state, y);
}

void WatchingBackend::delta_rule(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> state, MatrixSpan y) noexcept {
  see({Kernel::kDeltaRule, rows.v.rows, 0});
  Backend::delta_rule(s, rows, state, y);
}

void WatchingBackend::wkv4(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept {
  see({Kernel::kWkv4, k.rows, 0});
  Backend::wkv4(weights, k, v, state, y);
}

void WatchingBackend::ring_attention(const RingAttention& s, std::span<const float> q, std::span<const float> keys,
                                     std::span<const float> values, std::size_t count, std::span<float> scores,
                                     std::span<float> out) noexcept {
  see({Kernel::kRingAttention, 1, 0});
  Backend::ring_attention(s, q, keys, values, count, scores, out);
}

}  // namespace kizzasi::kernels
