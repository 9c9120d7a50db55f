#include "kizzasi/engine/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace kizzasi {
namespace {

constexpr std::array<double, 7> kUsualLevels{0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975};

// FNV-1a (Fowler, Noll and Vo), over whole words where there are any.
class Fingerprint {
 public:
  void add(std::uint64_t word) noexcept { value_ = (value_ ^ word) * 0x100000001b3ULL; }
  void add(std::string_view text) noexcept {
    add(text.size());
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

std::uint64_t identity_of(const ModelFile& file, std::span<const ConstraintText> constraints, std::span<const ConstraintText> monitors,
                          std::span<const double> levels, Sampling sampling) {
  Fingerprint print;
  print.add(to_json(file.config).dump());
  print.add(to_json(file.schema).dump());
  print.add(file.normalizer.to_json().dump());
  print.add(to_json(constraints).dump());
  for (const ConstraintText& monitor : monitors) print.add(monitor.that);
  for (const double level : levels) print.add(std::bit_cast<std::uint64_t>(level));
  for (const auto& [name, tensor] : file.weights) {
    print.add(name);
    for (const float w : tensor.values) print.add(std::bit_cast<std::uint32_t>(w));
  }
  if (!sampling.as_trained()) {
    print.add(sampling.faster);
    print.add(sampling.slower);
  }
  return print.value();
}

Result<std::vector<double>> levels_of(const ModelFile& file, const PredictorOptions& options, const DistributionFamily& family) {
  if (!options.levels.empty()) {
    for (std::size_t i = 0; i < options.levels.size(); ++i) {
      const double level = options.levels[i];
      if (!(level > 0 && level < 1) || (i > 0 && !(level > options.levels[i - 1]))) {
        return fail({Fault::kBadUse, fmt::format("level {} is {}", i + 1, level), "levels", "levels above 0 and below 1, rising",
                     "For example 0.1,0.5,0.9."});
      }
    }
    if (!family.has_density() && (file.calibration.empty() || !options.calibrate)) {
      return fail({Fault::kBadInput, "the model gives points only and was not calibrated", "levels", "a model with intervals",
                   "Train with a distribution as its head, or leave the levels out."});
    }
    return options.levels;
  }
  if (options.calibrate && !file.calibration.empty()) return file.calibration.levels;
  if (!family.levels().empty()) return std::vector<double>(family.levels().begin(), family.levels().end());
  if (!family.has_density()) return std::vector<double>{};
  return std::vector<double>(kUsualLevels.begin(), kUsualLevels.end());
}

}  // namespace

Result<std::shared_ptr<const Predictor>> Predictor::make(ModelFile file, PredictorOptions options, std::string_view where) {
  const auto placed = [&](Error error) {
    if (!where.empty()) error.where = error.where.empty() ? std::string(where) : fmt::format("{}: {}", where, error.where);
    return fail(std::move(error));
  };
  if (auto good = file.config.check("config"); !good) return placed(good.error());
  const ChannelCounts counts = channel_counts(file.schema);
  const Sampling sampling = options.sampling;
  auto model = SignalModel::load(file.config, counts, file.weights, sampling);
  if (!model) return placed(model.error());
  auto family = DistributionFamily::of(file.config.head);
  if (!family) return placed(family.error());
  auto levels = levels_of(file, options, *family);
  if (!levels) return fail(levels.error());
  options.levels = std::move(*levels);
  if (!sampling.as_trained()) options.adapt = false;  // what is measured next is not what was predicted
  if (options.max_gap < 0) return fail({Fault::kBadUse, fmt::format("the longest gap is {} frames", options.max_gap), "", "0 or more", ""});

  std::vector<ConstraintText> constraints;
  if (options.model_constraints) constraints = file.constraints;
  constraints.insert(constraints.end(), options.constraints.begin(), options.constraints.end());
  std::vector<double> scale;
  for (std::size_t c = 0; c < file.normalizer.channels(); ++c) scale.push_back(file.normalizer.scale(c));
  auto guard = compile_guard(file.schema, constraints, options.grid, scale);
  if (!guard) return fail(guard.error());

  std::shared_ptr<Predictor> made(new Predictor(std::move(file), std::move(options), std::move(*model), std::move(*family)));
  made->guard_ = std::move(*guard);
  made->constraints_ = std::move(constraints);
  if (made->options_.calibrate) made->calibration_ = made->file_.calibration;
  made->counts_ = counts;
  made->order_ = channel_order(made->file_.schema);
  made->can_reject_ =
      std::any_of(made->constraints_.begin(), made->constraints_.end(), [](const ConstraintText& c) { return c.otherwise == "reject"; });
  const auto slower = static_cast<std::int64_t>(sampling.slower), faster = static_cast<std::int64_t>(sampling.faster);
  made->frame_ns_ = made->file_.schema.step_ns / faster * slower + made->file_.schema.step_ns % faster * slower / faster;
  if (!made->options_.monitors.empty()) {
    Schema watched = made->file_.schema;
    watched.step_ns = made->frame_ns_;
    auto monitor = Monitor::create(watched, made->options_.monitors);
    if (!monitor) return fail(monitor.error());
    made->monitor_ = std::move(*monitor);
  }
  made->layout_ = SessionLayout(made->model_.layout(), made->guard_->state_bytes(), made->monitor_ ? made->monitor_->state_bytes() : 0,
                                made->channels(), counts.targets, made->options_.levels.size());
  made->identity_ = identity_of(made->file_, made->constraints_, made->options_.monitors, made->options_.levels, sampling);
  made->file_.weights.clear();
  return std::shared_ptr<const Predictor>(std::move(made));
}

Result<std::shared_ptr<const Predictor>> Predictor::load(const std::string& path, PredictorOptions options) {
  auto file = read_model_file(path);
  if (!file) return fail(file.error());
  return make(std::move(*file), std::move(options), path);
}

}  // namespace kizzasi
