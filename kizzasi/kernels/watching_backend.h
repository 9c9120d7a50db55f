// A backend that runs on the CPU and tells what passes by: for counting, for profiles, and for finding what a model needs.
#pragma once

#include "kizzasi/kernels/backend.h"

namespace kizzasi::kernels {

struct KernelCall {
  Kernel kernel = Kernel::kLinear;
  std::size_t rows = 0;           // that go in
  std::size_t multiply_adds = 0;  // of matrix products; 0 of the others
};

// The same bits as without it. Real-time: as `see` is.
class WatchingBackend : public Backend {
 public:
  std::string_view name() const noexcept override { return "watched CPU"; }
  bool offers(Kernel) const noexcept override { return true; }

  void linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept final;
  void gemm(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate) final;
  void conv1d_step(std::span<const float> w, std::span<const float> bias, std::size_t taps, std::span<float> window, MatrixView x,
                   MatrixSpan y) noexcept final;
  void dilated_conv1d(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                      MatrixSpan y) noexcept final;
  void selective_scan(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                      MatrixSpan y) noexcept final;
  void ssd_step(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state,
                MatrixSpan y) noexcept final;
  void diagonal_scan(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept final;
  void dplr_scan(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept final;
  void complex_scan(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h, MatrixSpan y) noexcept final;
  void gated_scan(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept final;
  void linear_attention(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> state,
                        MatrixSpan y) noexcept final;
  void delta_rule(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> state, MatrixSpan y) noexcept final;
  void wkv4(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept final;
  void ring_attention(const RingAttention& s, std::span<const float> q, std::span<const float> keys, std::span<const float> values,
                      std::size_t count, std::span<float> scores, std::span<float> out) noexcept final;

 protected:
  virtual void see(const KernelCall& call) noexcept = 0;
};

}  // namespace kizzasi::kernels
