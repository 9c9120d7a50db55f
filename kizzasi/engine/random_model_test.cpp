#include "kizzasi/engine/random_model_test.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kizzasi/model/architectures.h"

namespace kizzasi {

std::size_t cases(std::size_t usual) {
  const char* wanted = std::getenv("KIZZASI_CASES");
  return wanted == nullptr ? usual : static_cast<std::size_t>(std::strtoull(wanted, nullptr, 10));
}

ModelFile random_model(Rng& rng, double wild) {
  const auto from = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  const auto one_of = [&](auto... choices) {
    const std::vector<std::string> all{choices...};
    return all[rng.below(all.size())];
  };
  ModelFile m;
  ModelConfig& c = m.config;
  const auto table = architectures();
  c.backbone.architecture = std::string(table[rng.below(table.size())].name);
  c.backbone.head_dim = 4;
  c.backbone.d_model = 4 * from(1, 4);
  c.backbone.n_layers = from(1, 2);
  c.backbone.d_state = 2 * from(1, 4);
  c.backbone.d_conv = from(2, 4);
  c.head.kind = one_of("point", "gaussian", "student_t", "mixture", "quantiles");
  c.head.components = from(1, 3);
  if (rng.below(2) == 0) c.head.levels = {0.1, 0.5, 0.8};
  c.channel_mode = one_of("mixed", "independent");
  c.windowed = rng.below(3) == 0;
  c.patch = c.windowed ? from(1, 3) : 1;
  c.context = c.patch * from(1, 8);
  c.window_norm = c.windowed ? one_of("none", "last", "mean_std") : one_of("none", "last");
  c.parts = one_of("both", "both", "both", "shortcut", "backbone");
  c.horizon = from(1, 6);
  c.recent = from(1, 10);
  c.season = rng.below(2) == 0 ? 0 : from(1, 7);
  c.seasons = c.season == 0 ? 0 : from(1, 3);
  c.d_decoder = 4 * from(1, 3);

  m.schema.step_ns = rng.below(4) == 0 ? 0 : 1'000'000 * from(1, 4000);
  const std::size_t targets = 1 + rng.below(3), observed = rng.below(3), known = rng.below(3);
  std::vector<Role> roles(targets, Role::kTarget);
  roles.insert(roles.end(), observed, Role::kObserved);
  roles.insert(roles.end(), known, Role::kKnownFuture);
  std::vector<double> offset, scale;
  while (!roles.empty()) {  // in any order
    const std::size_t next = rng.below(roles.size());
    m.schema.channels.push_back({fmt::format("x{}", m.schema.channels.size()), "", roles[next]});
    roles.erase(roles.begin() + static_cast<std::ptrdiff_t>(next));
    offset.push_back(100 * rng.normal());
    scale.push_back(std::exp(2 * rng.normal()));
  }
  m.normalizer = Normalizer(offset, scale);
  m.weights = SignalModel::initial_weights(c, channel_counts(m.schema), rng.named("weights"));
  for (auto& [name, tensor] : m.weights) {
    // Not the poles of a recurrence: those stay what the papers make them.
    if (name.starts_with("backbone.")) continue;
    const bool positive = name == "head.scale";
    for (float& w : tensor.values) w = static_cast<float>(positive ? std::exp(rng.normal()) : w * wild + 0.1 * wild * rng.normal());
  }
  if (rng.below(2) == 0) {
    Calibration& k = m.calibration;
    k = {{0.05, 0.5, 0.95}, 1 + rng.below(static_cast<std::uint64_t>(c.horizon)), targets, {}, {}, 10, rng.below(2) == 0 ? 0 : 0.05};
    for (std::size_t i = 0; i < k.horizon * targets * 3; ++i) {
      k.stretch.push_back(2 * rng.uniform());
      k.shift.push_back(rng.normal());
    }
  }
  return m;
}

void still(ModelFile& model) {
  model.weights = SignalModel::initial_weights(model.config, channel_counts(model.schema), Rng(1));
  for (auto& [name, tensor] : model.weights) std::ranges::fill(tensor.values, name == "head.scale" ? 1.0f : 0.0f);
}

Series random_series(const ModelFile& model, std::size_t rows, double odd, Rng& rng) {
  Series s;
  s.schema = model.schema;
  s.start_ns = 1'600'000'000'000'000'000 + static_cast<std::int64_t>(rng.below(1000));
  std::vector<double> walk(s.channels());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < s.channels(); ++c) {
      walk[c] = 0.9 * walk[c] + 0.5 * rng.normal();
      double value = model.normalizer.physical(walk[c], c);
      if (rng.uniform() < odd) {
        const double infinity = std::numeric_limits<double>::infinity();
        const double strange[] = {std::nan(""), infinity, -infinity, 1e300, -1e300, 1e20, 5e-324, value * 1e5};
        value = strange[rng.below(std::size(strange))];
      }
      s.values.push_back(value);
    }
  }
  return s;
}

std::shared_ptr<const Predictor> predictor_of(ModelFile model, std::vector<ConstraintText> constraints, PredictorOptions options) {
  options.constraints = std::move(constraints);
  auto made = Predictor::make(std::move(model), std::move(options));
  if (!made) ADD_FAILURE() << made.error().text();
  return made ? *made : nullptr;
}

std::vector<std::uint64_t> bits(std::span<const double> values) {
  std::vector<std::uint64_t> all;
  for (const double v : values) all.push_back(std::isnan(v) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(v));
  return all;
}

std::string text_of(const ModelFile& m) { return to_json(m.config).dump() + to_json(m.schema).dump(); }

}  // namespace kizzasi
