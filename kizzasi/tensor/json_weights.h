// Weights as one JSON object: name -> flat list of numbers. Shapes are not in the file; the model that takes the weights knows them.
#pragma once

#include <string>
#include <string_view>

#include "kizzasi/base/json.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// Every float prints with the fewest digits that read back to it. A value that is not finite has no JSON form: an error that names it.
Result<Json> weights_to_json(const NamedTensors& weights);
// Takes each tensor's shape from `like`. A name that is missing or unknown, a wrong count and anything but numbers are errors.
Result<NamedTensors> weights_from_json(const Json& json, const NamedTensors& like, std::string_view where);

Result<void> write_json_weights(const std::string& path, const NamedTensors& weights);
Result<NamedTensors> read_json_weights(const std::string& path, const NamedTensors& like);

}  // namespace kizzasi
