// Any bytes as .npy and .npz: read or refused, never a crash or an allocation that the bytes do not justify.
#include <cstdint>
#include <cstdlib>

#include "kizzasi/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kizzasi;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto array = io::parse_npy(bytes, "fuzz")) {
    std::size_t count = array->complex ? 2 : 1;
    for (const std::size_t axis : array->shape) count *= axis;
    if (count != array->values.size()) std::abort();
    std::vector<io::NpyArray> arrays;
    arrays.push_back(std::move(*array));
    (void)io::npy_table(std::move(arrays), "fuzz");
  }
  if (auto arrays = io::parse_npz(bytes, "fuzz")) (void)io::npy_table(std::move(*arrays), "fuzz");
  return 0;
}
