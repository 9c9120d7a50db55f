#include "kizzasi/model/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kizzasi/model/attention/published.h"
#include "kizzasi/model/griffin/published.h"
#include "kizzasi/model/hybrid/published.h"
#include "kizzasi/model/published_mamba.h"
#include "kizzasi/model/rwkv/published.h"
#include "kizzasi/model/xlstm/published.h"

namespace kizzasi {
namespace {

constexpr std::array kFormats = std::to_array<ModelFormat>({
    {"mamba, falcon_mamba, mamba2", is_published_mamba, published_mamba},
    {"rwkv4 to rwkv7", is_published_rwkv, published_rwkv},
    {"llama, mistral, mixtral", is_published_llama, published_llama},
    {"griffin (RecurrentGemma)", is_published_griffin, published_griffin},
    {"xlstm", is_published_xlstm, published_xlstm},
    {"jamba", is_published_jamba, published_jamba},
    {"bamba", is_published_bamba, published_bamba},
    {"qwen3_next", is_published_qwen3_next, published_qwen3_next},
    {"gpt2", is_published_gpt2, published_gpt2},
});

}  // namespace

tl::unexpected<Error> refused(std::string what, std::string_view where, std::string expected) {
  return fail({Fault::kBadInput, std::move(what), std::string(where), std::move(expected), ""});
}

std::int64_t size_of(const NamedTensors& tensors, const std::string& name, std::size_t axis) {
  const auto found = tensors.find(name);
  return found == tensors.end() || axis >= found->second.shape.size() ? 0 : static_cast<std::int64_t>(found->second.shape[axis]);
}

std::span<const ModelFormat> model_formats() { return kFormats; }

std::span<const float> StateBatch::floats(std::size_t b, const std::string& name) const {
  const StateField* field = layout.find(name);
  if (field == nullptr) return {};
  return {reinterpret_cast<const float*>(blocks[b].data() + field->offset), elements(field->shape)};
}

std::optional<std::vector<float>> StateBatch::all(const std::string& name) const {
  if (layout.find(name) == nullptr) return std::nullopt;
  std::vector<float> values;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::span<const float> one = floats(b, name);
    values.insert(values.end(), one.begin(), one.end());
  }
  return values;
}

std::optional<std::vector<float>> StateBatch::with_last_axes_swapped(const std::string& name) const {
  const StateField* field = layout.find(name);
  if (field == nullptr) return std::nullopt;
  const std::size_t cols = field->shape.back(), rows = field->shape[field->shape.size() - 2], size = elements(field->shape);
  std::vector<float> swapped;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::span<const float> values = floats(b, name);
    for (std::size_t block = 0; block < size; block += rows * cols) {
      for (std::size_t c = 0; c < cols; ++c) {
        for (std::size_t r = 0; r < rows; ++r) swapped.push_back(values[block + r * cols + c]);
      }
    }
  }
  return swapped;
}

NamedTensors taken_over(const NamedTensors& published, const std::function<WeightVars<double>(const WeightVars<double>&)>& ours) {
  autograd::Tape<double> tape;
  WeightVars<double> leaves;
  for (const auto& [name, tensor] : published) {
    const std::vector<double> values(tensor.values.begin(), tensor.values.end());
    leaves.add(name, tape.constant(tensor.shape, std::span<const double>(values)));
  }
  NamedTensors weights;
  const WeightVars<double> taken = ours(leaves);
  for (const auto& [name, var] : taken.all()) {
    Tensor tensor(Shape(var.dims().begin(), var.dims().end()));
    std::transform(var.value().begin(), var.value().end(), tensor.values.begin(), [](double v) { return static_cast<float>(v); });
    weights.emplace(name, std::move(tensor));
  }
  return weights;
}

Result<Json> parse_python_json(std::string_view text, std::string_view where) {
  std::string strict;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {  // whatever follows a backslash ends no text
      strict.append(text.substr(i++, 2));
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    const std::string_view rest = text.substr(i);
    std::string_view word;
    for (const std::string_view each : {"-Infinity", "Infinity", "NaN"}) {
      if (!quoted && rest.starts_with(each)) word = each;
    }
    if (word.empty()) {
      strict += text[i];
    } else {
      strict.append("{\"__float__\": \"").append(word).append("\"}");
      i += word.size() - 1;
    }
  }
  return Json::parse(strict, where);
}

double python_number(const Json* json, double otherwise) {
  if (json == nullptr) return otherwise;
  if (json->is_number()) return json->number();
  const Json* word = json->find("__float__");
  const std::string text = word != nullptr && word->is_string() ? word->string() : json->is_string() ? json->string() : "";
  if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return otherwise;  // such as "auto"
}

}  // namespace kizzasi
