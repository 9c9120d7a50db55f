// Proof that a converted model is the same model.
#include "kizzasi/model/verification.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/model/published.h"
#include "kizzasi/model/rwkv/published_cpp.h"
#include "kizzasi/tensor/files.h"

namespace kizzasi::cli {
namespace {

namespace fs = std::filesystem;

std::string without_ending(const std::string& path, std::string_view ending) {
  return path.ends_with(ending) ? path.substr(0, path.size() - ending.size()) : path;
}

Result<Json> read_json(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  auto json = parse_python_json(*text, path);
  if (json && !json->is_object()) return fail({Fault::kBadInput, "this is no JSON object", path, "a configuration", ""});
  return json;
}

// A checkpoint, and what its file says about the configuration by itself: all of it in files of rwkv.cpp, nothing in others.
struct Checkpoint {
  SafetensorsFile file;
  std::optional<Json> config;
};

Result<Checkpoint> read_checkpoint(const std::string& path) {
  Checkpoint checkpoint;
  if (!is_rwkv_cpp_file(path)) {
    auto file = read_safetensors(path);
    if (!file) return fail(file.error());
    checkpoint.file = std::move(*file);
    return checkpoint;
  }
  const auto stored = read_rwkv_cpp(path);
  if (!stored) return fail(stored.error());
  auto published = published_of(*stored, path);
  if (!published) return fail(published.error());
  checkpoint.file.tensors = std::move(published->tensors);
  checkpoint.config = std::move(published->config);
  return checkpoint;
}

// The configuration: as asked for, or CASE.json, CASE.config.json or config.json beside the checkpoint.
Result<std::string> find_config(const std::string& asked, const std::string& checkpoint) {
  if (!asked.empty()) return asked;
  const std::string stem = without_ending(without_ending(checkpoint, ".safetensors"), ".bin");
  const fs::path folder = fs::path(checkpoint).parent_path();
  const std::string candidates[] = {stem + ".json", stem + ".config.json", (folder / "config.json").string()};
  for (const std::string& path : candidates) {
    if (fs::exists(path)) return path;
  }
  return fail({Fault::kUnavailable, "there is no configuration beside the checkpoint", checkpoint,
               fmt::format("{}, or a config.json in its folder", candidates[0]), "Name it with --config FILE."});
}

Json report_of(const std::string& checkpoint, const Verification& report) {
  Json json = Json::object();
  json["case"] = checkpoint;
  json["passed"] = report.good();
  json["tensors"] = Json::array();
  for (const ComparedTensor& t : report.tensors) {
    Json line = Json::object();
    line["name"] = t.name;
    line["path"] = t.path;
    line["max_abs"] = t.max_abs;
    line["max_rel"] = t.max_rel;
    line["tolerance"] = t.tolerance;
    line["passed"] = t.good();
    if (!t.problem.empty()) line["problem"] = t.problem;
    json["tensors"].push_back(std::move(line));
  }
  json["not_compared"] = Json::list(report.not_compared);
  json["known_wrong"] = Json::list(report.known_wrong);
  return json;
}

void print_report(const Verification& report, const Context& context) {
  std::vector<std::vector<std::string>> rows{{"tensor", "computed by", "max abs", "max rel", "tolerance", ""}};
  std::size_t out = 0;
  for (const ComparedTensor& t : report.tensors) {
    out += t.good() ? 0 : 1;
    rows.push_back({t.name, t.path, fmt::format("{:.2e}", t.max_abs), fmt::format("{:.2e}", t.max_rel), fmt::format("{:.2e}", t.tolerance),
                    t.good()            ? "ok"
                    : t.problem.empty() ? "OUT"
                                        : "OUT: " + t.problem});
  }
  print(columns(rows));
  for (const std::string& name : report.not_compared) remark(context, fmt::format("not compared: '{}' has no meaning here", name));
  for (const std::string& name : report.known_wrong) {
    remark(context, fmt::format("not compared: '{}', which the reference's program is known to compute wrongly", name));
  }
  if (report.tensors.empty()) {
    print("Nothing was compared: the reference holds no output, state or gradient by a known name.\n");
  } else if (out == 0) {
    print(fmt::format("The same model: all {} comparisons are within their tolerances.\n", report.tensors.size()));
  } else {
    print(fmt::format("Not the same model: {} of {} comparisons are out of their tolerances.\n", out, report.tensors.size()));
  }
}

}  // namespace

Result<int> verify(Options& options, const Context& context) {
  std::string checkpoint, reference, asked;
  options.positional("CASE.safetensors", checkpoint, "The published checkpoint; rwkv.cpp's .bin, too.");
  options.option("--against FILE", reference,
                 "Reference tensors: input, output, states, gradients (CASE.io.safetensors); has to be given.");
  options.option("--config FILE", asked, "The published configuration; default: CASE.json or config.json beside the checkpoint.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  if (reference.empty()) {
    return fail({Fault::kBadUse, "there is nothing to compare with", "--against", "a file of reference tensors",
                 "Add --against CASE.io.safetensors."});
  }

  const auto weights = read_checkpoint(checkpoint);
  if (!weights) return fail(weights.error());
  const auto io = read_safetensors(reference);
  if (!io) return fail(io.error());
  Json config = weights->config.value_or(Json::object()), description = Json::object();
  const auto path = find_config(asked, checkpoint);
  if (!path && !weights->config) return fail(path.error());
  if (path) {
    const auto read = read_json(*path);
    if (!read) return fail(read.error());
    const Json* inner = read->find("config");
    // What the user or the file beside says stands over what the format says.
    for (const auto& [key, value] : (inner != nullptr && inner->is_object() ? *inner : *read).members()) config[key] = value;
    description = *read;
  }
  // Tolerances stand in the description of the case, beside the reference or in the configuration itself.
  const std::string beside = without_ending(reference, ".io.safetensors") + ".json";
  if (description.find("tolerance") == nullptr && fs::exists(beside)) {
    auto read = read_json(beside);
    if (!read) return fail(read.error());
    description = std::move(*read);
  }

  const auto report = verify_checkpoint(weights->file, *io, config, description, checkpoint);
  if (!report) return fail(report.error());
  if (context.json) {
    print_json(report_of(checkpoint, *report));
  } else {
    print_report(*report, context);
  }
  return report->good() ? 0 : 1;
}

}  // namespace kizzasi::cli
