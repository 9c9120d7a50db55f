// Any bytes are read or refused; what was read has as many finite numbers as its shapes say, and no more memory than its file allows.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "kizzasi/tensor/rwkv_cpp.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kizzasi;
  const auto file = parse_rwkv_cpp({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  if (!file) return 0;
  std::size_t values = 0;
  for (const auto& [name, tensor] : file->tensors) {
    if (name.empty() || tensor.values.size() != elements(tensor.shape)) std::abort();
    values += tensor.values.size();
    for (const float v : tensor.values) {
      if (!std::isfinite(v)) std::abort();
    }
  }
  if (values > 2 * size) std::abort();  // the tightest packing has 32 numbers in 18 bytes
  return 0;
}
