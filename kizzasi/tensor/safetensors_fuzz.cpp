// Any bytes are read or refused; what was read is written and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kizzasi/tensor/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kizzasi;
  const auto file = parse_safetensors({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  if (!file) return 0;
  const auto again = parse_safetensors(safetensors_bytes(file->tensors, file->metadata), "again");
  if (!again || again->metadata != file->metadata || again->tensors.size() != file->tensors.size()) std::abort();
  for (const auto& [name, tensor] : file->tensors) {
    const Tensor& copy = again->tensors.at(name);
    if (copy.shape != tensor.shape || copy.values.size() != tensor.values.size()) std::abort();
    if (!tensor.values.empty() && std::memcmp(copy.values.data(), tensor.values.data(), tensor.values.size() * sizeof(float)) != 0) {
      std::abort();  // by bits: NaN must survive
    }
  }
  return 0;
}
