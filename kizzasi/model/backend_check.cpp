#include "kizzasi/model/backend_check.h"

#include <algorithm>
#include <string>

#include "kizzasi/base/aligned.h"
#include "kizzasi/kernels/watching_backend.h"

namespace kizzasi {
namespace {

struct Witness final : kernels::WatchingBackend {
  std::vector<kernels::Kernel> seen;
  void see(const kernels::KernelCall& call) noexcept override {
    if (std::find(seen.begin(), seen.end(), call.kernel) == seen.end()) seen.push_back(call.kernel);
  }
};

}  // namespace

std::vector<kernels::Kernel> needed_kernels(const Backbone& backbone) {
  constexpr std::size_t kRows = 2;
  const auto d = static_cast<std::size_t>(backbone.config().d_model);
  AlignedVector<std::byte> state(backbone.layout().bytes());
  backbone.reset(state);
  std::vector<float> rows(kRows * d), scratch(backbone.scratch_floats(kRows));
  const kernels::MatrixSpan x(rows.data(), kRows, d);
  const Lane lane{state.data(), 1};
  Witness witness;
  const kernels::BackendScope scope(witness);
  backbone.step({&lane, 1}, x.slice(0, 1), x.slice(0, 1), scratch);
  backbone.run(lane, x, x, scratch);
  return witness.seen;
}

Result<void> check_backend(const kernels::Backend& backend, const Backbone& backbone, bool training) {
  std::vector<kernels::Kernel> needed = needed_kernels(backbone);
  if (training) needed.push_back(kernels::Kernel::kGemm);
  std::string missing;
  for (const kernels::Kernel kernel : needed) {
    if (backend.offers(kernel)) continue;
    missing.append(missing.empty() ? "" : ", ").append(kernels::kernel_name(kernel));
  }
  if (missing.empty()) return {};
  return fail({Fault::kBadUse, "it does not offer " + missing, "backend '" + std::string(backend.name()) + "'",
               "all kernels of architecture '" + backbone.config().architecture + "'",
               "Take another backend, or say that the CPU may do the rest: BackendScope(backend, NotOffered::kOnCpu)."});
}

}  // namespace kizzasi
