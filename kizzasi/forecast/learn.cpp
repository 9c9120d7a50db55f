#include "kizzasi/forecast/learn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "kizzasi/base/float_env.h"
#include "kizzasi/decode/correction.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/engine/session.h"

namespace kizzasi {
namespace {

// Levels of the calibrated intervals of a head that states none of its own.
const std::vector<double> kUsualLevels{0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995};

// One series that holds the training rows of all: what scales are fitted on.
Series training_rows(const std::vector<Series>& series, const LearnParts& parts) {
  Series all = series[0].slice(0, 0);
  for (const RowRange& range : parts.train) {
    const Series rows = series[range.series].slice(range.first, range.last);
    all.values.insert(all.values.end(), rows.values.begin(), rows.values.end());
  }
  return all;
}

std::size_t longest(const std::vector<RowRange>& part) {
  std::size_t most = 0;
  for (const RowRange& range : part) most = std::max(most, range.last - range.first);
  return most;
}

// Whether the rows hold one window of each part. Sizes alone decide, before anything of the size of a window is allocated.
Result<void> rows_fit(const SignalShape& shape, const LearnParts& parts) {
  const auto refuse = [](std::string what, std::string where, std::string expected, std::string hint) {
    return fail({Fault::kBadInput, std::move(what), std::move(where), std::move(expected), std::move(hint)});
  };
  const std::size_t training = longest(parts.train), validation = longest(parts.validation);
  if (training < shape.horizon + 1) {
    return refuse(fmt::format("the longest training part has {} rows", training), "training data",
                  fmt::format("at least {} rows: a horizon of {} and one row before it", shape.horizon + 1, shape.horizon),
                  "Give more data, or a shorter --horizon.");
  }
  const std::size_t most = training - shape.horizon;
  if (shape.lookback() > most) {
    const bool by_context = shape.context > most, by_recent = shape.recent > most;
    const std::string what = by_context  ? fmt::format("a context of {} rows", shape.context)
                             : by_recent ? fmt::format("the short-cut's recent past of {} rows", shape.recent)
                                         : fmt::format("{} seasons of {} rows", shape.seasons, shape.season);
    return refuse(fmt::format("{} and a horizon of {} do not fit into a training part of {} rows", what, shape.horizon, training),
                  "training data", fmt::format("a look-back of at most {} rows", most),
                  fmt::format("Take a shorter {}, a shorter --horizon, or give more data.", by_context  ? "--context"
                                                                                            : by_recent ? "--recent"
                                                                                                        : "--season, fewer --seasons"));
  }
  if (validation < shape.horizon) {
    return refuse(fmt::format("the longest validation part has {} rows", validation), "validation data",
                  fmt::format("at least {} rows, one horizon: without them nothing chooses the best weights", shape.horizon),
                  "Give more data, a shorter --horizon, or a larger --validation-share.");
  }
  return {};
}

struct Start {
  std::size_t series, origin;
};

// At most `most` moments of the validation part from which a whole horizon lies in it, spread over it.
std::vector<Start> validation_starts(const LearnParts& parts, std::size_t horizon, std::size_t most) {
  std::vector<Start> starts;
  for (const RowRange& range : parts.validation) {
    for (std::size_t origin = std::max<std::size_t>(range.first, 1); origin + horizon <= range.last; ++origin)
      starts.push_back({range.series, origin});
  }
  const std::size_t n = std::min(starts.size(), most);
  std::vector<Start> chosen;
  for (std::size_t i = 0; i < n; ++i) chosen.push_back(starts[i * starts.size() / n]);
  return chosen;
}

// The forecasts from there, in the order of `starts`; where there was none, its horizon is 0.
std::vector<Forecast> forecasts_from(const std::vector<Start>& starts, const std::shared_ptr<const Predictor>& predictor,
                                     const std::vector<Series>& series, std::span<const double> levels, ThreadPool& pool) {
  std::vector<Forecast> forecasts(starts.size());
  pool.run(starts.size(), [&](std::size_t i) {
    const Start& start = starts[i];
    const Series& one = series[start.series];
    Session session = Session::prepare(predictor);
    session.prefill(one, start.origin - std::min(start.origin, predictor->lookback()), start.origin);
    ForecastRequest request;
    request.horizon = predictor->horizon();
    request.levels.assign(levels.begin(), levels.end());
    const auto known = one.schema.with_role(Role::kKnownFuture);
    for (std::size_t h = 0; h < request.horizon; ++h) {
      for (const std::size_t channel : known) request.known.push_back(one.at(start.origin + h, channel));
    }
    if (!session.forecast(request, forecasts[i])) forecasts[i].block.horizon = 0;
  });
  return forecasts;
}

PredictorOptions as_learned() {
  PredictorOptions plain;
  plain.calibrate = false;
  plain.model_constraints = false;
  return plain;
}

// Forecasts from validation origins against what came, for each step ahead and target: the calibration of the intervals.
Result<Calibration> calibrate(const ModelFile& file, const std::vector<Series>& series, const LearnParts& parts,
                              const LearnOptions& options, ThreadPool& pool) {
  PredictorOptions plain = as_learned();
  const std::vector<double> levels = file.config.head.which() == HeadKind::kQuantiles ? file.config.head.levels : kUsualLevels;
  if (file.config.head.which() != HeadKind::kPoint) plain.levels = levels;  // a point has no levels of its own before it is calibrated
  auto predictor = Predictor::make(file, plain);
  if (!predictor) return fail(predictor.error());
  const std::size_t horizon = (*predictor)->horizon(), targets = (*predictor)->targets();
  const auto starts = validation_starts(parts, horizon, static_cast<std::size_t>(options.calibration_windows));
  const bool spread = (*predictor)->has_spread();
  const auto forecasts =
      forecasts_from(starts, *predictor, series, spread ? std::span<const double>(levels) : std::span<const double>(), pool);
  CalibrationFit fit(levels, horizon, targets);
  const std::vector<std::size_t> channels = series[0].schema.with_role(Role::kTarget);
  std::vector<double> quantiles(levels.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const ForecastBlock& block = forecasts[i].block;
    if (block.horizon == 0) continue;
    for (std::size_t h = 0; h < horizon; ++h) {
      for (std::size_t t = 0; t < targets; ++t) {
        const double median = block.point(h, t);
        for (std::size_t q = 0; q < quantiles.size(); ++q) quantiles[q] = spread ? block.quantile(q, h, t) : median;
        fit.add(h, t, median, quantiles, series[starts[i].series].at(starts[i].origin + h, channels[t]));
      }
    }
  }
  return fit.finish(options.adaptation_rate);
}

// What forecasts of the validation part break, before anything moves them.
Result<Breaches> breaches_of(const ModelFile& file, const LimitCost& limits, const std::vector<Series>& series, const LearnParts& parts,
                             ThreadPool& pool) {
  constexpr std::size_t kMost = 400;
  auto predictor = Predictor::make(file, as_learned());
  if (!predictor) return fail(predictor.error());
  const auto starts = validation_starts(parts, (*predictor)->horizon(), kMost);
  const auto forecasts = forecasts_from(starts, *predictor, series, {}, pool);
  Breaches breaches = limits.no_breaches();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (forecasts[i].block.horizon > 0) limits.judge(starts[i].series, starts[i].origin, forecasts[i].block, breaches);
  }
  return breaches;
}

// The unit of the loss, and what it needs of the model.
Result<LossUnit> unit_of(const LearnOptions& options) {
  const auto unit = loss_unit(options.training.loss_unit);
  if (!unit || *unit == LossUnit::kWindow) return unit;
  const ModelConfig& model = options.model;
  if (model.season == 0 || model.context <= model.season) {
    return fail({Fault::kBadUse, fmt::format("the season is {}, the context {}", model.season, model.context), "field 'loss_unit'",
                 "for 'seasonal' a season, and a context longer than it", "Give --season, and a --context of several seasons."});
  }
  const HeadKind head = model.head.which();
  if (head != HeadKind::kPoint && head != HeadKind::kQuantiles) {
    return fail({Fault::kBadUse, fmt::format("the head is {}", model.head.kind), "field 'loss_unit'",
                 "for 'seasonal' the head point or quantiles",
                 "The likelihood of a density is the same in every unit, but for a constant."});
  }
  return unit;
}

}  // namespace

void LearnOptions::fields(FieldVisitor& visit) {
  visit.field({"scaling", "How values are scaled, fitted on the training rows.", 0, 0, {"standard", "robust", "min_max", "none"}}, scaling);
  visit.field({"train_share", "Share of the rows that trains, from the start.", 0.01, 1}, train_share);
  visit.field({"validation_share", "Share of the rows after them that chooses the best weights and calibrates the intervals.", 0, 0.99},
              validation_share);
  visit.field({"calibration_windows", "Validation forecasts that the intervals are calibrated on, at most; 0: none.", 0, 1e6},
              calibration_windows);
  visit.field({"adaptation_rate", "How fast intervals learn in streams; 0: they stay as calibrated.", 0, 1}, adaptation_rate);
  penalty.fields(visit);
}

Result<LearnParts> learn_parts(const std::vector<Series>& series, double train_share, double validation_share) {
  LearnParts parts;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto split = data::split_rows(series[i].rows(), train_share, validation_share);
    if (!split) return fail(split.error());
    const auto at = static_cast<std::uint32_t>(i);
    parts.train.push_back({at, 0, split->train_end});
    parts.validation.push_back({at, split->train_end, split->validation_end});
    parts.test.push_back({at, split->validation_end, split->rows});
  }
  return parts;
}

std::string data_hash(const std::vector<Series>& series) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the bytes
  const auto bytes = [&](const void* data, std::size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < n; ++i) hash = (hash ^ p[i]) * 0x100000001b3u;
  };
  for (const Series& one : series) {
    const std::string head = one.id + to_json(one.schema).dump();
    bytes(head.data(), head.size());
    bytes(&one.start_ns, sizeof(one.start_ns));
    for (const double value : one.values) {
      const double plain = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;  // every NaN is one missing value
      bytes(&plain, sizeof(plain));
    }
  }
  return fmt::format("{:016x}", hash);
}

Result<Learned> learn(const std::vector<Series>& series, const LearnOptions& options, const std::string& checkpoint, bool resume,
                      ThreadPool& pool, const Clock& clock, const LearnHooks& hooks) {
  const FloatEnv environment;
  if (series.empty()) return fail({Fault::kBadInput, "there is no series", "training data", "at least one", ""});
  const auto parts = learn_parts(series, options.train_share, options.validation_share);
  if (!parts) return fail(parts.error());
  const auto scaling = scaling_from(options.scaling, "scaling");
  if (!scaling) return fail(scaling.error());
  if (auto good = options.model.check("model"); !good) return fail(good.error());
  const auto unit = unit_of(options);
  if (!unit) return fail(unit.error());
  const ChannelCounts counts = channel_counts(series[0].schema);
  if (auto fit = rows_fit(SignalShape(options.model, counts), *parts); !fit) return fail(fit.error());
  Learned learned;
  ModelFile& file = learned.file;
  file.config = options.model;
  file.schema = series[0].schema;
  const auto normalizer = Normalizer::fit(training_rows(series, *parts), *scaling);
  if (!normalizer) return fail(normalizer.error());
  file.normalizer = *normalizer;

  const std::vector<std::size_t> order = channel_order(file.schema);
  const Rng rng = Rng(static_cast<std::uint64_t>(options.training.seed)).named("weights");
  file.weights = SignalModel::initial_weights(file.config, counts, rng);
  const auto untrained = SignalModel::load(file.config, counts, file.weights);
  if (!untrained) return fail(untrained.error());
  std::unique_ptr<LimitCost> limits;
  if (!options.limits.empty() || options.penalty.kind() != PenaltyKind::kNone) {
    auto made = LimitCost::make(options.penalty, options.limits, series, file.normalizer, untrained->shape(), parts->train);
    if (!made) return fail(made.error());
    limits = std::move(*made);
  }
  const Dataset data(*untrained, series, file.normalizer, order, *unit);
  const auto shortcut = fit_shortcut(file.config, data, parts->train, parts->validation, file.weights, pool);
  if (!shortcut) return fail(shortcut.error());
  learned.shortcut = *shortcut;
  const auto model = SignalModel::load(file.config, counts, file.weights);
  if (!model) return fail(model.error());
  if (hooks.started) hooks.started(*model, *shortcut);

  TrainTask task;
  task.model = &*model;
  task.data = &data;
  task.train = parts->train;
  task.validation = parts->validation;
  task.weights = file.weights;
  task.identity["data"] = data_hash(series);
  task.identity["model"] = to_json(options.model);
  task.identity["learning"] = to_json(options);
  task.checkpoint = checkpoint;
  task.resume = resume;
  if (options.penalty.kind() != PenaltyKind::kNone) {
    task.cost = limits.get();
    task.identity["limits"] = to_json(options.limits);
  }
  TrainConfig training = options.training;
  if (!model->shape().has_backbone) training.steps = 0;  // a short-cut alone is solved, not trained
  auto outcome = train(task, training, pool, clock, hooks.watch);
  if (!outcome) return fail(outcome.error());
  learned.outcome = std::move(*outcome);
  if (limits && limits->price().conditions() > 0) {
    auto before = breaches_of(file, *limits, series, *parts, pool);
    if (!before) return fail(before.error());
    learned.shortcut_breaches = std::move(*before);
  }
  file.weights = learned.outcome.weights;
  if (learned.shortcut_breaches) {
    auto after = breaches_of(file, *limits, series, *parts, pool);
    if (!after) return fail(after.error());
    learned.breaches = std::move(*after);
  }
  file.constraints = options.limits;
  if (options.calibration_windows > 0) {
    auto calibration = calibrate(file, series, *parts, options, pool);
    if (!calibration) return fail(calibration.error());
    file.calibration = std::move(*calibration);
  }

  Json& record = file.training;
  record["data_hash"] = data_hash(series);
  record["seed"] = options.training.seed;
  record["steps"] = learned.outcome.steps;
  record["best_step"] = learned.outcome.best_step;
  record["parameters"] = model->parameter_count();
  record["train_share"] = options.train_share;
  record["validation_share"] = options.validation_share;
  record["rows"] = series[0].rows();
  record["series"] = series.size();
  record["shortcut_lambda"] = learned.shortcut.lambda;
  record["shortcut_least_lambda"] = learned.shortcut.least_lambda;
  record["shortcut_most_lambda"] = learned.shortcut.most_lambda;
  record["shortcut_validation_loss"] = learned.outcome.start_validation;
  record["validation_loss"] = learned.outcome.best_validation;
  Json training_options = to_json(options.training);
  training_options["budget_s"] = nullptr;  // `steps` repeats the run, whatever stopped it
  training_options["steps"] = nullptr;
  training_options["checkpoint_every"] = nullptr;
  record["options"] = std::move(training_options);
  if (options.penalty.kind() != PenaltyKind::kNone) record["penalty"] = to_json(options.penalty);
  if (learned.breaches) {
    record["broken_share"] = share(learned.breaches->all());
    record["broken_size"] = mean_size(learned.breaches->all());
  }
  return learned;
}

}  // namespace kizzasi
