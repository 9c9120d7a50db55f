#include "kizzasi/train/checkpoint.h"

#include <fmt/format.h>

#include <array>

#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr const char* kKey = "kizzasi_checkpoint";

template <typename C>
auto parts(C& checkpoint) {
  return std::array{std::pair{"weights.", &checkpoint.weights}, std::pair{"average.", &checkpoint.average},
                    std::pair{"best.", &checkpoint.best}, std::pair{"optimizer.", &checkpoint.optimizer}};
}

}  // namespace

Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  Json record;
  record["version"] = kVersion;
  record["step"] = checkpoint.step;
  record["best_validation"] = checkpoint.best_validation;
  record["best_step"] = checkpoint.best_step;
  record["stale"] = checkpoint.stale;
  record["validated"] = checkpoint.validated;
  record["settings"] = checkpoint.settings;
  record["progress"] = checkpoint.progress;
  NamedTensors all;
  for (const auto& [prefix, tensors] : parts(checkpoint)) {
    for (const auto& [name, tensor] : *tensors) all.emplace(prefix + name, tensor);
  }
  return write_safetensors(path, all, {{kKey, record.dump()}});
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  auto file = read_safetensors(path);
  if (!file) return fail(file.error());
  const auto broken = [&](std::string what) {
    return fail({Fault::kBroken, std::move(what), path, "a checkpoint of a training", "Start again without --resume."});
  };
  const auto found = file->metadata.find(kKey);
  if (found == file->metadata.end()) return broken("this file holds no training checkpoint");
  const auto record = Json::parse(found->second, path);
  if (!record) return fail(record.error());
  Checkpoint checkpoint;
  const auto whole = [&](const char* key, std::int64_t& value) {
    const Json* json = record->find(key);
    if (json == nullptr || !json->is_integer()) return false;
    value = json->integer();
    return true;
  };
  std::int64_t version = 0;
  if (!whole("version", version)) return broken("the record has no version");
  if (version > kVersion) return broken(fmt::format("version {} is newer than this program's {}", version, kVersion));
  const Json* best = record->find("best_validation");
  const Json* settings = record->find("settings");
  const Json* progress = record->find("progress");
  if (!whole("step", checkpoint.step) || !whole("best_step", checkpoint.best_step) || !whole("stale", checkpoint.stale) ||
      !whole("validated", checkpoint.validated) || best == nullptr || !best->is_number() || settings == nullptr || progress == nullptr) {
    return broken("the record is incomplete");
  }
  checkpoint.best_validation = best->number();
  checkpoint.settings = *settings;
  checkpoint.progress = *progress;
  for (auto& [name, tensor] : file->tensors) {
    bool known = false;
    for (const auto& [prefix, tensors] : parts(checkpoint)) {
      if (!name.starts_with(prefix)) continue;
      tensors->emplace(name.substr(std::string_view(prefix).size()), std::move(tensor));
      known = true;
      break;
    }
    if (!known) return broken(fmt::format("there is a tensor '{}' that no checkpoint has", name));
  }
  return checkpoint;
}

}  // namespace kizzasi
