// What is in a model file, or in any file of tensors.
#include <fmt/format.h>

#include "apps/cli/forecast_report.h"
#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/engine/predictor.h"

namespace kizzasi::cli {
namespace {

Json tensors_json(const SafetensorsFile& file) {
  Json list = Json::array();
  for (const auto& [name, tensor] : file.tensors) {
    list.push_back(Json::Object{{"name", name},
                                {"shape", Json::list(tensor.shape)},
                                {"numbers", tensor.values.size()},
                                {"precision", std::string(kernels::precision_name(tensor.storage.precision))}});
  }
  return list;
}

void print_tensors(const SafetensorsFile& file) {
  std::vector<std::vector<std::string>> rows{{"tensor", "shape", "numbers", "precision"}};
  for (const auto& [name, tensor] : file.tensors) {
    rows.push_back({name, shape_text(tensor.shape), std::to_string(tensor.values.size()),
                    std::string(kernels::precision_name(tensor.storage.precision))});
  }
  print(columns(rows));
}

// A file of tensors that is no model of this program: its metadata and its tensors.
int show_tensors(const SafetensorsFile& file, const Context& context) {
  std::size_t numbers = 0;
  for (const auto& [name, tensor] : file.tensors) numbers += tensor.values.size();
  if (context.json) {
    Json answer = Json::object();
    answer["kind"] = "tensors";
    answer["numbers"] = numbers;
    answer["metadata"] = Json::object();
    for (const auto& [key, value] : file.metadata) answer["metadata"][key] = value;
    answer["tensors"] = tensors_json(file);
    print_json(answer);
    return 0;
  }
  print(fmt::format("{} tensors with {} numbers; no model of this program.\n", file.tensors.size(), numbers));
  for (const auto& [key, value] : file.metadata) print(fmt::format("{}: {}\n", key, value));
  print("\n");
  print_tensors(file);
  return 0;
}

}  // namespace

Result<int> inspect(Options& options, const Context& context) {
  std::string path;
  bool tensors = false, state = false;
  options.positional("FILE", path, "A model, or any safetensors file.");
  options.flag("--tensors", tensors, "Lists every weight of a model too.");
  options.flag("--state", state, "Lists the fields of a stream's state too.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;

  auto file = read_safetensors(path);
  if (!file) return fail(file.error());
  if (!is_model_file(*file)) return show_tensors(*file, context);
  auto model = model_from_safetensors(*file, path);
  if (!model) return fail(model.error());
  const ModelFile kept = *model;
  auto predictor = Predictor::make(std::move(*model));
  if (!predictor) return fail(predictor.error());
  const Predictor& p = **predictor;
  const StateLayout& layout = p.layout().fields;
  if (context.json) {
    Json answer = Json::object();
    answer["kind"] = "model";
    answer["schema"] = to_json(kept.schema);
    answer["config"] = to_json(kept.config);
    answer["normalizer"] = kept.normalizer.to_json();
    answer["parameters"] = p.model().parameter_count();
    answer["weight_bytes"] = p.model().weight_bytes();
    answer["state_bytes"] = layout.bytes();
    answer["lookback"] = p.lookback();
    answer["calibration"] = to_json(kept.calibration);
    answer["constraints"] = to_json(kept.constraints);
    answer["training"] = kept.training;
    answer["extra"] = kept.extra;
    answer["state"] = Json::array();
    for (const StateField& field : layout.fields()) {
      answer["state"].push_back(Json::Object{{"name", field.name}, {"shape", Json::list(field.shape)}, {"offset", field.offset}});
    }
    answer["tensors"] = tensors_json(*file);
    print_json(answer);
    return 0;
  }
  std::string text;
  for (const auto& [name, value] : model_card(kept, p.model(), layout.bytes())) text += fmt::format("{:<24} {}\n", name, value);
  print(text);
  if (tensors) {
    print("\n");
    print_tensors(*file);
  }
  if (state) {
    std::vector<std::vector<std::string>> rows{{"field of the state", "shape", "offset"}};
    for (const StateField& field : layout.fields()) rows.push_back({field.name, shape_text(field.shape), std::to_string(field.offset)});
    print("\n" + columns(rows));
  }
  return 0;
}

}  // namespace kizzasi::cli
