// Tensors in fewer bits: the rounding of values, and the form that a file gives them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/json.h"
#include "kizzasi/tensor/safetensors.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// Rounds the values to what that precision holds and notes it in `storage`. int8 has a scale an output, int4 one for 32 inputs of an
// output. Matrices of kLast and kLastButOne may be a stack of such; one of kFirst takes all axes but the first as inputs. A value that f16
// cannot hold is an error.
Result<void> set_precision(Tensor& tensor, kernels::Precision precision, OutputsAxis outputs, std::string_view name);

// What its numbers and scales take in a file.
std::size_t stored_bytes(const Tensor& tensor);

// One tensor of a file as bytes.
struct StoredPart {
  std::string name;
  std::string_view dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

// bf16 and f16 have types of their own. Integers stand outputs first, in rows: int8 as I8 (rows, inputs) and "<name>.scale" F32 (rows);
// int4 as U8 (rows, inputs / 2, rounded up), the first of two in the low half of a byte, counted from -8, and "<name>.scale" BF16 (rows,
// inputs / 32).
std::vector<StoredPart> stored_parts(const std::string& name, const Tensor& tensor);

// The entry of the metadata under kQuantization that says of each tensor of integers its precision, shape and axis; null where there is
// none.
inline constexpr const char* kQuantization = "quantization";
Json quantization_record(const NamedTensors& tensors);
// Puts such tensors together again and takes that entry out of the metadata.
Result<void> restore_quantized(SafetensorsFile& file, std::string_view where);

}  // namespace kizzasi
