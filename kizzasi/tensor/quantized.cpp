#include "kizzasi/tensor/quantized.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace kizzasi {
namespace {

using kernels::kI4Block;
using kernels::Precision;

constexpr std::array<std::string_view, 3> kAxes{"first", "last", "last_but_one"};  // in the order of OutputsAxis

bool is_integers(Precision precision) { return precision == Precision::kI8 || precision == Precision::kI4; }

// A tensor as rows of one output each.
struct Rows {
  std::size_t stack = 1, outputs = 0, inputs = 0;
  Rows(const Shape& shape, OutputsAxis axis) {
    const std::size_t all = elements(shape);
    if (axis == OutputsAxis::kLast && shape.size() >= 2) {
      outputs = shape.back();
      inputs = shape[shape.size() - 2];
      stack = outputs * inputs == 0 ? 0 : all / (outputs * inputs);
    } else if (axis == OutputsAxis::kLastButOne && shape.size() >= 2) {
      inputs = shape.back();
      outputs = shape[shape.size() - 2];
      stack = outputs * inputs == 0 ? 0 : all / (outputs * inputs);
    } else {
      outputs = shape.empty() ? 1 : shape.front();
      inputs = outputs == 0 ? 0 : all / outputs;
    }
  }
  std::size_t rows() const { return stack * outputs; }
};

// The values outputs first, and back.
std::vector<float> turned(std::span<const float> values, const Rows& r, OutputsAxis axis, bool back) {
  std::vector<float> out(values.begin(), values.end());
  if (axis != OutputsAxis::kLast) return out;
  for (std::size_t s = 0; s < r.stack; ++s) {
    const std::size_t at = s * r.outputs * r.inputs;
    for (std::size_t o = 0; o < r.outputs; ++o) {
      for (std::size_t k = 0; k < r.inputs; ++k) {
        const std::size_t first = at + o * r.inputs + k, last = at + k * r.outputs + o;
        out[back ? last : first] = values[back ? first : last];
      }
    }
  }
  return out;
}

std::string scale_name(const std::string& name) { return name + ".scale"; }

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<StoredPart> i8_parts(const std::string& name, std::span<const float> values, const Rows& r) {
  StoredPart numbers{name, "I8", {r.rows(), r.inputs}, {}}, scales{scale_name(name), "F32", {r.rows()}, {}};
  std::vector<std::int8_t> q(r.inputs);
  for (std::size_t row = 0; row < r.rows(); ++row) {
    append(scales.bytes, kernels::quantize_i8(values.subspan(row * r.inputs, r.inputs), q));
    for (const std::int8_t each : q) append(numbers.bytes, each);
  }
  return {std::move(numbers), std::move(scales)};
}

std::vector<StoredPart> i4_parts(const std::string& name, std::span<const float> values, const Rows& r) {
  const std::size_t blocks = (r.inputs + kI4Block - 1) / kI4Block;
  StoredPart numbers{name, "U8", {r.rows(), (r.inputs + 1) / 2}, {}}, scales{scale_name(name), "BF16", {r.rows(), blocks}, {}};
  std::vector<std::uint8_t> q(r.inputs + 1);
  for (std::size_t row = 0; row < r.rows(); ++row) {
    for (std::size_t k = 0; k < r.inputs; k += kI4Block) {
      const std::size_t count = std::min(kI4Block, r.inputs - k);
      const float scale = kernels::quantize_i4(values.subspan(row * r.inputs + k, count), std::span(q).subspan(k, count));
      append(scales.bytes, kernels::to_bf16(scale));
    }
    q[r.inputs] = 8;  // beside an odd last one
    for (std::size_t k = 0; k < r.inputs; k += 2) append(numbers.bytes, static_cast<std::uint8_t>(q[k] | (q[k + 1] << 4)));
  }
  return {std::move(numbers), std::move(scales)};
}

tl::unexpected<Error> broken(std::string what, std::string_view where, std::string expected) {
  return fail({Fault::kBroken, std::move(what), std::string(where), std::move(expected), "The file is damaged; get or write it again."});
}

// The values of a tensor of integers from its two parts, which are as the record has them.
std::vector<float> restored(Precision precision, const Rows& r, std::span<const float> numbers, std::span<const float> scales) {
  std::vector<float> values(r.rows() * r.inputs);
  const std::size_t bytes = (r.inputs + 1) / 2, blocks = (r.inputs + kI4Block - 1) / kI4Block;
  for (std::size_t row = 0; row < r.rows(); ++row) {
    for (std::size_t k = 0; k < r.inputs; ++k) {
      float& value = values[row * r.inputs + k];
      if (precision == Precision::kI8) {
        value = scales[row] * numbers[row * r.inputs + k];
      } else {
        const auto both = static_cast<unsigned>(numbers[row * bytes + k / 2]);
        value = scales[row * blocks + k / kI4Block] * (static_cast<float>(k % 2 == 0 ? both & 15u : both >> 4) - 8.0f);
      }
      value += 0.0f;  // never -0
    }
  }
  return values;
}

Result<Tensor> restore_one(SafetensorsFile& file, const std::string& name, const Json& record, const std::string& at) {
  const Json *precision_json = record.find("precision"), *shape_json = record.find("shape"), *outputs_json = record.find("outputs");
  if (precision_json == nullptr || shape_json == nullptr || outputs_json == nullptr || !precision_json->is_string() ||
      !outputs_json->is_string() || !shape_json->is_array()) {
    return broken("its entry lacks something", at, "precision, shape and outputs");
  }
  const auto precision = kernels::precision_from_name(precision_json->string());
  if (!precision || !is_integers(*precision)) {
    return broken(fmt::format("precision '{}'", precision_json->string()), at, "int8 or int4");
  }
  const auto axis_at = std::find(kAxes.begin(), kAxes.end(), outputs_json->string());
  if (axis_at == kAxes.end()) return broken(fmt::format("outputs '{}'", outputs_json->string()), at, "first, last or last_but_one");
  const auto axis = static_cast<OutputsAxis>(axis_at - kAxes.begin());
  Shape shape;
  std::size_t size = 1;
  for (const Json& each : shape_json->items()) {
    if (!each.is_integer() || each.integer() < 0) return broken("its shape holds something that is no size", at, "whole numbers");
    shape.push_back(static_cast<std::size_t>(each.integer()));
    if (__builtin_mul_overflow(size, shape.back(), &size)) return broken("its shape is beyond any file", at, "");
  }
  const auto numbers = file.tensors.find(name), scales = file.tensors.find(scale_name(name));
  if (numbers == file.tensors.end() || scales == file.tensors.end()) {
    return broken("a part of it is missing", at, fmt::format("tensors '{}' and '{}'", name, scale_name(name)));
  }
  const Rows r(shape, axis);
  const bool eight = *precision == Precision::kI8;
  const Shape wanted = eight ? Shape{r.rows(), r.inputs} : Shape{r.rows(), (r.inputs + 1) / 2};
  const Shape wanted_scales = eight ? Shape{r.rows()} : Shape{r.rows(), (r.inputs + kI4Block - 1) / kI4Block};
  if (numbers->second.shape != wanted || scales->second.shape != wanted_scales) {
    return broken(fmt::format("shapes {} and {}", shape_text(numbers->second.shape), shape_text(scales->second.shape)), at,
                  fmt::format("{} and {}", shape_text(wanted), shape_text(wanted_scales)));
  }
  const float low = eight ? -127.0f : 0.0f, high = eight ? 127.0f : 255.0f;
  for (const float each : numbers->second.values) {
    if (!(each >= low && each <= high && each == std::floor(each))) {
      return broken(fmt::format("it holds {}", each), at, fmt::format("whole numbers from {} to {}", low, high));
    }
  }
  std::vector<float> values = restored(*precision, r, numbers->second.values, scales->second.values), again = values;
  kernels::round_to(*precision, again, r.inputs);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || again[i] != values[i]) {
      return broken("its numbers and scales are none that rounding gives", at, fmt::format("those of {}", precision_json->string()));
    }
  }
  Tensor tensor(shape, turned(values, r, axis, true));
  tensor.storage = {*precision, axis};
  file.tensors.erase(numbers);
  file.tensors.erase(scale_name(name));
  return tensor;
}

}  // namespace

Result<void> set_precision(Tensor& tensor, Precision precision, OutputsAxis outputs, std::string_view name) {
  if (precision == Precision::kF16) {
    const auto bad = std::find_if(tensor.values.begin(), tensor.values.end(), [](float x) { return !(std::abs(x) < 65520.0f); });
    if (bad != tensor.values.end()) {
      return fail({Fault::kBadInput, fmt::format("value {} is {}", bad - tensor.values.begin(), *bad), fmt::format("weight '{}'", name),
                   "at most 65504, the largest number of f16", "bf16 has the range of f32."});
    }
  }
  const Rows r(tensor.shape, outputs);
  std::vector<float> rows = turned(tensor.values, r, outputs, false);
  kernels::round_to(precision, rows, r.inputs);
  tensor.values = turned(rows, r, outputs, true);
  tensor.storage = {precision, outputs};
  return {};
}

std::size_t stored_bytes(const Tensor& tensor) {
  const Rows r(tensor.shape, tensor.storage.outputs);
  switch (tensor.storage.precision) {
    case Precision::kF32:
      return tensor.values.size() * 4;
    case Precision::kBf16:
    case Precision::kF16:
      return tensor.values.size() * 2;
    case Precision::kI8:
      return r.rows() * (r.inputs + 4);
    case Precision::kI4:
      return r.rows() * ((r.inputs + 1) / 2 + 2 * ((r.inputs + kI4Block - 1) / kI4Block));
  }
  return 0;
}

std::vector<StoredPart> stored_parts(const std::string& name, const Tensor& tensor) {
  const auto [precision, outputs] = tensor.storage;
  if (is_integers(precision)) {
    const Rows r(tensor.shape, outputs);
    const std::vector<float> values = turned(tensor.values, r, outputs, false);
    return precision == Precision::kI8 ? i8_parts(name, values, r) : i4_parts(name, values, r);
  }
  StoredPart part{name, precision == Precision::kF32 ? "F32" : precision == Precision::kBf16 ? "BF16" : "F16", tensor.shape, {}};
  part.bytes.reserve(stored_bytes(tensor));
  if (precision == Precision::kF32) {
    part.bytes.resize(stored_bytes(tensor));
    if (!part.bytes.empty()) std::memcpy(part.bytes.data(), tensor.values.data(), part.bytes.size());
  } else {
    for (const float value : tensor.values)
      append(part.bytes, precision == Precision::kBf16 ? kernels::to_bf16(value) : kernels::to_f16(value));
  }
  return {std::move(part)};
}

Json quantization_record(const NamedTensors& tensors) {
  Json record = Json::object();
  for (const auto& [name, tensor] : tensors) {
    const auto [precision, outputs] = tensor.storage;
    if (!is_integers(precision)) continue;
    Json entry = Json::object();
    entry["precision"] = std::string(kernels::precision_name(precision));
    entry["shape"] = Json::list(tensor.shape);
    entry["outputs"] = std::string(kAxes[static_cast<std::size_t>(outputs)]);
    record.members().emplace_back(name, std::move(entry));
  }
  return record.members().empty() ? Json() : record;
}

Result<void> restore_quantized(SafetensorsFile& file, std::string_view where) {
  const auto text = file.metadata.find(kQuantization);
  if (text == file.metadata.end()) return {};
  const std::string place = fmt::format("{}: {}", where, kQuantization);
  const auto record = Json::parse(text->second, place);
  if (!record) return fail(record.error());
  if (!record->is_object()) return broken("it is no object", place, "an entry for each tensor of integers");
  for (const auto& [name, entry] : record->members()) {
    const std::string at = fmt::format("{}: '{}'", place, name);
    if (!entry.is_object()) return broken("its entry is no object", at, "precision, shape and outputs");
    auto tensor = restore_one(file, name, entry, at);
    if (!tensor) return fail(tensor.error());
    file.tensors.insert_or_assign(name, std::move(*tensor));
  }
  file.metadata.erase(kQuantization);
  return {};
}

}  // namespace kizzasi
