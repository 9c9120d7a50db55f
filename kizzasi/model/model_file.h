// A trained model as one self-describing file: safetensors with everything but the weights as JSON in its metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/model/config.h"
#include "kizzasi/model/signal_model.h"
#include "kizzasi/signal/calibration.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/normalizer.h"
#include "kizzasi/signal/schema.h"
#include "kizzasi/signal/series.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {

// Files of every earlier version open in every later one; a file of a later version is refused with both numbers.
inline constexpr std::int64_t kModelFormat = 2;

// What docs/model-file.md describes, key by key.
struct ModelFile {
  ModelConfig config;
  Schema schema;          // in the order of the recording; channel_order() is the order in which the model takes them
  Normalizer normalizer;  // one offset and scale a channel of the schema
  NamedTensors weights;
  Calibration calibration;                  // of the targets, in the model's order; empty: none
  std::vector<ConstraintText> constraints;  // part of the model: they apply wherever it runs
  Json training;                            // record: data hash, seed, steps, metrics, comparison with the baselines
  Json extra;                               // what users add; kept as it is
};

// Reads and checks: format and version, ranges of the configuration, sizes that must agree, weights that are not finite. (Names and shapes
// of the weights are checked by SignalModel::load, which everyone calls who uses them.)
Result<ModelFile> read_model_file(const std::string& path);
// The same from memory; `where` names the file in messages.
Result<ModelFile> parse_model_file(std::span<const std::byte> bytes, std::string_view where);
Result<ModelFile> model_from_safetensors(SafetensorsFile file, std::string_view where);
// True where the metadata says that this is a model of this program, whatever its version.
bool is_model_file(const SafetensorsFile& file);

// Equal content gives equal bytes. Written beside the target and moved over it. Content that would not read back is refused before a byte
// is written.
Result<void> write_model_file(const std::string& path, const ModelFile& model);
Result<std::vector<std::byte>> model_file_bytes(const ModelFile& model);

// The schema's channels in the order in which SignalModel takes them: targets, observed, known-future; each in the schema's order.
std::vector<std::size_t> channel_order(const Schema& schema);
ChannelCounts channel_counts(const Schema& schema);

// `data` cut down to the model's channels, found by name and put in the model schema's order. A channel that the data lacks, a unit that
// differs or another step is an error that names the channel, what the data has, and the nearest name. Channels that the data has beyond
// the model's are left out.
Result<Series> select_for_model(const Schema& model, const Series& data, std::string_view where);

}  // namespace kizzasi
