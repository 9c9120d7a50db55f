// The seam for other devices: every matrix product and every scan of step, run and forward passes through it. Nobody chooses a backend:
// they run here, on the CPU, at the price of one look at a pointer of the thread.
//
//   MyDevice device;                                       // overrides what it does itself, and says what that is in offers()
//   if (auto fits = check_backend(device, *backbone); !fits) return complain(fits.error().text());    // model/backend_check.h
//   const kernels::BackendScope scope(device);             // this thread, until the end of the block
//   backbone->run(...);
//
// Not through it: adjoints of scans (their matrix products are), norms and activations, double precision, and the Fourier transforms by
// which S4, S4D and DSS train on long windows.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kizzasi/kernels/complex_scan.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/delta_rule.h"
#include "kizzasi/kernels/diagonal_scan.h"
#include "kizzasi/kernels/dilated_conv.h"
#include "kizzasi/kernels/dplr_scan.h"
#include "kizzasi/kernels/gated_scan.h"
#include "kizzasi/kernels/gemm.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/kernels/ring_attention.h"
#include "kizzasi/kernels/selective_scan.h"
#include "kizzasi/kernels/ssd.h"
#include "kizzasi/kernels/wkv4.h"

namespace kizzasi::kernels {

// The functions of those names in this folder.
enum class Kernel : std::uint8_t {
  kLinear,
  kGemm,
  kConv1dStep,
  kDilatedConv1d,
  kSelectiveScan,
  kSsdStep,
  kDiagonalScan,
  kDplrScan,
  kComplexScan,
  kGatedScan,
  kLinearAttention,
  kDeltaRule,
  kWkv4,
  kRingAttention,
};
inline constexpr std::array kKernels = {Kernel::kLinear,        Kernel::kGemm,         Kernel::kConv1dStep,      Kernel::kDilatedConv1d,
                                        Kernel::kSelectiveScan, Kernel::kSsdStep,      Kernel::kDiagonalScan,    Kernel::kDplrScan,
                                        Kernel::kComplexScan,   Kernel::kGatedScan,    Kernel::kLinearAttention, Kernel::kDeltaRule,
                                        Kernel::kWkv4,          Kernel::kRingAttention};
std::string_view kernel_name(Kernel kernel) noexcept;

// Each function keeps the contract of the one of its name, the law of splits among them: a backend whose sums run in another order gives
// other bits than the CPU, but must give its own for any split. What a class does not override runs on the CPU; whether that is allowed is
// for the scope to say. Thread: as many as have a scope of it. Real-time: as the overrides are.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const noexcept = 0;
  virtual bool offers(Kernel kernel) const noexcept = 0;

  virtual void linear(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept;
  virtual void gemm(Transpose ta, MatrixView a, Transpose tb, MatrixView b, MatrixSpan c, bool accumulate);
  virtual void conv1d_step(std::span<const float> w, std::span<const float> bias, std::size_t taps, std::span<float> window, MatrixView x,
                           MatrixSpan y) noexcept;
  virtual void dilated_conv1d(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                              MatrixSpan y) noexcept;
  virtual void selective_scan(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                              MatrixSpan y) noexcept;
  virtual void ssd_step(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state,
                        MatrixSpan y) noexcept;
  virtual void diagonal_scan(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
  virtual void dplr_scan(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
  virtual void complex_scan(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
  virtual void gated_scan(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
  virtual void linear_attention(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay,
                                std::span<float> state, MatrixSpan y) noexcept;
  virtual void delta_rule(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> state, MatrixSpan y) noexcept;
  virtual void wkv4(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept;
  virtual void ring_attention(const RingAttention& s, std::span<const float> q, std::span<const float> keys, std::span<const float> values,
                              std::size_t count, std::span<float> scores, std::span<float> out) noexcept;
};

// What becomes of a kernel that the backend does not offer: the program ends (ask check_backend before), or it runs on the CPU because
// the caller says so here.
enum class NotOffered : bool { kEnds, kOnCpu };

struct ChosenBackend {
  Backend* backend = nullptr;  // none: the CPU
  NotOffered otherwise = NotOffered::kEnds;
};
extern constinit thread_local ChosenBackend chosen_backend;

// All kernels that this thread calls go to `backend` until the scope ends; scopes nest. Threads that it starts have none.
// Real-time: yes.
class BackendScope {
 public:
  explicit BackendScope(Backend& backend, NotOffered otherwise = NotOffered::kEnds) noexcept : BackendScope({&backend, otherwise}) {}
  ~BackendScope() { chosen_backend = before_; }
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;
  static BackendScope cpu() noexcept { return BackendScope(ChosenBackend{}); }

 private:
  explicit BackendScope(ChosenBackend chosen) noexcept : before_(chosen_backend) { chosen_backend = chosen; }
  ChosenBackend before_;
};

// For the kernels: who is to do this, nobody for the CPU.
Backend* backend_that_offers(Kernel kernel) noexcept;
inline Backend* backend_for(Kernel kernel) noexcept { return chosen_backend.backend == nullptr ? nullptr : backend_that_offers(kernel); }

}  // namespace kizzasi::kernels
