#include "kizzasi/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/train/clip.h"
#include "kizzasi/train/early_stopping.h"
#include "kizzasi/train/head_loss.h"
#include "kizzasi/train/parameter_layout.h"
#include "kizzasi/train/piece.h"

namespace kizzasi {
namespace {

using autograd::Var;

constexpr std::size_t kShards = 4;  // of a batch; fixed, and summed in order, so that the bits do not depend on the threads

// What holds the first gradient that is not finite, or "".
std::string not_finite(const ParameterLayout& layout, std::span<const float> gradient) {
  for (const auto& entry : layout.entries()) {
    const auto own = gradient.subspan(entry.offset, entry.count);
    if (!std::all_of(own.begin(), own.end(), [](float x) { return std::isfinite(x); })) return entry.name;
  }
  return "";
}

// Which windows a step sees: every epoch is a shuffle of all of them, and both follow from the seed and the step alone.
class WindowOrder {
 public:
  WindowOrder(std::size_t windows, std::size_t batch, std::int64_t seed)
      : order_(windows), batch_(batch), rng_(Rng(static_cast<std::uint64_t>(seed)).named("windows")) {}

  std::vector<std::size_t> of_step(std::int64_t step) {
    std::vector<std::size_t> chosen(batch_);
    for (std::size_t i = 0; i < batch_; ++i) {
      const std::uint64_t at = static_cast<std::uint64_t>(step) * batch_ + i;
      shuffle(at / order_.size());
      chosen[i] = order_[at % order_.size()];
    }
    return chosen;
  }

 private:
  void shuffle(std::uint64_t epoch) {
    if (epoch_ == epoch) return;
    epoch_ = epoch;
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    Rng rng = rng_.numbered(epoch);
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng.below(i)]);
  }
  std::vector<std::size_t> order_;
  std::size_t batch_;
  Rng rng_;
  std::optional<std::uint64_t> epoch_;
};

// Rows before a window's last from which it forecasts too: spread over its later half.
std::vector<std::size_t> origin_rows(const SignalShape& s, std::int64_t origins) {
  if (s.windowed || !s.has_backbone) return {0};
  const auto n = std::min<std::size_t>(static_cast<std::size_t>(origins), (s.context + 1) / 2);
  std::vector<std::size_t> back;
  for (std::size_t i = n; i-- > 0;) back.push_back(i * ((s.context + 1) / 2) / n);
  return back;
}

// A falling schedule reaches its end at the last step, so a resumed run must have the same.
bool schedule_kind_needs_end(const ScheduleConfig& schedule) {
  switch (schedule.kind()) {
    case ScheduleKind::kConstant:
    case ScheduleKind::kStep:
    case ScheduleKind::kMultistep:
    case ScheduleKind::kExponential:
    case ScheduleKind::kWarmRestarts:
    case ScheduleKind::kInverseSqrt:
    case ScheduleKind::kCyclic:
    case ScheduleKind::kPlateau:
      return false;
    default:
      return true;
  }
}

Json plateau_json(const Schedule::Watch& watch) {
  Json json;
  json["rate"] = watch.rate;
  json["best"] = watch.best;
  json["bad"] = watch.bad;
  json["cooldown"] = watch.cooldown;
  return json;
}

Schedule::Watch plateau_from(const Json& json) {
  const auto number = [&](const char* key, double otherwise) {
    const Json* found = json.find(key);
    return found != nullptr && found->is_number() ? found->number() : otherwise;
  };
  // An infinite best (nothing seen yet) is written as null.
  return {number("rate", 0), number("best", std::numeric_limits<double>::infinity()), static_cast<std::int64_t>(number("bad", 0)),
          static_cast<std::int64_t>(number("cooldown", 0))};
}

// The whole run, step by step; what it holds between steps is what a checkpoint holds.
class Run {
 public:
  Run(const TrainTask& task, const TrainConfig& config, ThreadPool& pool, const Clock& clock)
      : task_(task),
        config_(config),
        pool_(pool),
        clock_(clock),
        windows_(all_origins(*task.data, task.train)),
        rows_back_(origin_rows(task.data->shape(), config.origins)),
        pieces_(kShards),
        layout_(task.weights, is_trained),
        gradient_(layout_.total()),
        noise_(Rng(static_cast<std::uint64_t>(config.seed)).named("noise")) {}

  Result<TrainOutcome> run(const TrainWatch& watch);

 private:
  Result<void> begin();
  Result<double> step();
  Result<void> validate();
  Result<void> save() const;
  Merit merit(const NamedTensors& weights) {
    return merit_of(*task_.model, *task_.data, weights, task_.validation, static_cast<std::size_t>(config_.validation_windows), point_,
                    task_.cost, cost_state_, pool_);
  }
  double validation_of(const NamedTensors& weights) { return merit(weights).all(); }
  void note(const Merit& merit);
  void restore_sum(const Json& progress);
  Result<void> restore_cost(const Json& progress);

  const TrainTask& task_;
  const TrainConfig& config_;
  ThreadPool& pool_;
  const Clock& clock_;
  std::vector<std::pair<std::uint32_t, Origin>> windows_;
  std::vector<std::size_t> rows_back_;
  std::vector<Piece> pieces_;
  ParameterLayout layout_;
  std::vector<float> gradient_;
  Rng noise_;
  std::optional<WindowOrder> order_;
  std::optional<Optimizer> optimizer_;
  std::optional<Schedule> schedule_;
  EarlyStopping stopping_{0};
  PointLoss point_ = PointLoss::kAbsolute;
  Checkpoint at_;
  double start_validation_ = 0, validation_ = 0, loss_sum_ = 0;
  std::int64_t loss_steps_ = 0;
  std::vector<double> cost_state_;  // numbers of the cost of predictions
};

Result<void> Run::begin() {
  if (windows_.empty()) {
    return fail({Fault::kBadInput, "there is not one training window", "training data",
                 fmt::format("at least {} rows in the training part", task_.data->shape().horizon + 1),
                 "Give more data, or a shorter --horizon."});
  }
  order_.emplace(windows_.size(), static_cast<std::size_t>(config_.batch), config_.seed);
  auto optimizer = Optimizer::of(config_.optimizer, layout_);
  if (!optimizer) return fail(optimizer.error());
  optimizer_ = std::move(*optimizer);
  auto schedule = Schedule::of(config_.schedule, config_.optimizer.learning_rate, std::max<std::int64_t>(config_.steps, 1));
  if (!schedule) return fail(schedule.error());
  schedule_ = std::move(*schedule);
  const auto point = point_loss(config_.loss);
  if (!point) return fail(point.error());
  point_ = *point;
  stopping_ = EarlyStopping(config_.patience == 0 ? -1 : config_.patience);

  Json settings;
  settings["identity"] = task_.identity;
  settings["training"] = to_json(config_);
  if (task_.resume) {
    auto found = read_checkpoint(task_.checkpoint);
    if (!found) return fail(found.error());
    // The end may be moved where no schedule depends on it; everything else that decides what a step does may not.
    const bool falling = schedule_kind_needs_end(config_.schedule);
    const auto essence = [&](Json json) {
      for (const char* free : {"budget_s", "checkpoint_every", "patience"}) json["training"][free] = nullptr;
      if (!falling) json["training"]["steps"] = nullptr;
      return json;
    };
    if (essence(found->settings).dump() != essence(settings).dump()) {  // as text: 5.0 reads back as 5
      return fail({Fault::kBadInput, "the checkpoint belongs to another run", task_.checkpoint, "the same data, model and training options",
                   "Repeat the options of the first run, or start again without --resume."});
    }
    at_ = std::move(*found);
    at_.settings = settings;
    if (auto restored = optimizer_->restore(at_.optimizer); !restored) return restored;
    stopping_.restore(at_.best_validation, at_.best_step, at_.stale);
    if (at_.progress.find("plateau") != nullptr) schedule_->restore(plateau_from(at_.progress["plateau"]));
    restore_sum(at_.progress);
    const Json* start = at_.progress.find("start_validation");
    const Json* last = at_.progress.find("validation");
    start_validation_ = start != nullptr && start->is_number() ? start->number() : 0;
    validation_ = last != nullptr && last->is_number() ? last->number() : 0;
    return restore_cost(at_.progress);
  }
  at_.settings = settings;
  at_.weights = task_.weights;
  at_.average = task_.weights;
  at_.best = task_.weights;
  if (task_.cost != nullptr) cost_state_ = task_.cost->start();
  const Merit start = merit(at_.best);
  start_validation_ = validation_ = start.all();
  stopping_.observe(validation_, 0);
  if (!std::isfinite(start_validation_)) {
    return fail({Fault::kBadInput, "the loss of the untrained model is not finite", "validation data", "finite values",
                 "Look at the data with kizzasi check."});
  }
  at_.progress["start_validation"] = start_validation_;
  at_.progress["validation"] = validation_;
  at_.progress["history"] = Json::array();
  note(start);
  return save();
}

void Run::restore_sum(const Json& progress) {
  const Json* sum = progress.find("loss_sum");
  const Json* steps = progress.find("loss_steps");
  if (sum != nullptr && sum->is_number()) loss_sum_ = sum->number();
  if (steps != nullptr && steps->is_integer()) loss_steps_ = steps->integer();
}

Result<void> Run::restore_cost(const Json& progress) {
  if (task_.cost == nullptr) return {};
  cost_state_ = task_.cost->start();
  const Json* kept = progress.find("cost");
  const bool fits = kept != nullptr && kept->is_array() && kept->items().size() == cost_state_.size() &&
                    std::all_of(kept->items().begin(), kept->items().end(), [](const Json& number) { return number.is_number(); });
  if (!fits) {
    return fail({Fault::kBadInput, "the multipliers of the limits are missing or of another number", task_.checkpoint,
                 fmt::format("{} numbers", cost_state_.size()), "Start again without --resume."});
  }
  for (std::size_t i = 0; i < cost_state_.size(); ++i) cost_state_[i] = kept->items()[i].number();
  return {};
}

void Run::note(const Merit& merit) {
  Json entry;
  entry["step"] = at_.step;
  entry["loss"] = loss_steps_ > 0 ? Json(loss_sum_ / static_cast<double>(loss_steps_)) : Json();
  entry["validation"] = validation_;
  if (task_.cost != nullptr) {
    entry["price"] = merit.price;
    if (Json said = task_.cost->note(cost_state_, merit.sums); !said.is_null()) entry["limits"] = std::move(said);
  }
  at_.progress["validation"] = validation_;
  at_.progress["history"].push_back(std::move(entry));
}

Result<void> Run::save() const {
  if (task_.checkpoint.empty()) return {};
  Checkpoint out = at_;
  out.optimizer = optimizer_->state_tensors();
  out.best_validation = stopping_.best();
  out.best_step = stopping_.best_step();
  out.stale = stopping_.stale();
  out.progress["plateau"] = plateau_json(schedule_->watch());
  out.progress["loss_sum"] = loss_sum_;
  out.progress["loss_steps"] = loss_steps_;
  if (task_.cost != nullptr) {
    out.progress["cost"] = Json::array();
    for (const double number : cost_state_) out.progress["cost"].push_back(number);
  }
  return write_checkpoint(task_.checkpoint, out);
}

// One step of gradient descent; the value is its loss.
Result<double> Run::step() {
  const std::vector<std::size_t> chosen = order_->of_step(at_.step);
  pool_.run(kShards, [&](std::size_t shard) {
    std::vector<std::pair<std::uint32_t, Origin>> own;
    for (std::size_t i = chosen.size() * shard / kShards; i < chosen.size() * (shard + 1) / kShards; ++i)
      own.push_back(windows_[chosen[i]]);
    Piece& piece = pieces_[shard];
    piece.weight = 0;
    if (own.empty()) return;
    fill(*task_.model, *task_.data, task_.train, own, rows_back_, point_, piece);
    if (config_.noise > 0) add_noise(piece.batch, config_.noise, noise_.numbered(static_cast<std::uint64_t>(at_.step) * kShards + shard));
  });
  double total = 0, windows = 0;
  for (const Piece& piece : pieces_) {
    total += piece.weight;
    if (piece.weight > 0) windows += static_cast<double>(piece.origins.size());
  }
  if (total == 0) return 0.0;  // every answer of these windows is missing

  std::array<std::vector<std::size_t>, kShards> ids;
  pool_.run(kShards, [&](std::size_t shard) {
    Piece& piece = pieces_[shard];
    if (piece.weight == 0) return;
    piece.tape.clear();
    const WeightVars<float> vars = bound_weights(piece.tape, at_.weights, true, &ids[shard]);
    const Var<float> out = piece_parameters(*task_.model, vars, piece);
    const Var<float> loss = piece_loss(*task_.model, out, point_, piece);
    const double share = piece.weight / total;
    piece.loss = share * loss.value()[0];
    if (task_.cost == nullptr) {
      piece.tape.backward(loss, static_cast<float>(share));
      return;
    }
    const Var<float> price = piece_price(*task_.model, *task_.cost, cost_state_, out, piece);
    piece.loss += static_cast<double>(price.value()[0]) / windows;
    piece.tape.backward(
        autograd::add(autograd::scale(loss, static_cast<float>(share)), autograd::scale(price, static_cast<float>(1 / windows))));
  });

  double loss = 0;
  for (const Piece& piece : pieces_) loss += piece.weight > 0 ? piece.loss : 0;
  std::fill(gradient_.begin(), gradient_.end(), 0.0f);
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    if (pieces_[shard].weight == 0) continue;
    for (std::size_t i = 0; i < ids[shard].size(); ++i) {
      const auto part = pieces_[shard].tape.grad(ids[shard][i]);
      float* sum = gradient_.data() + layout_.entries()[i].offset;
      for (std::size_t j = 0; j < part.size(); ++j) sum[j] += part[j];
    }
  }
  if (const std::string bad = not_finite(layout_, gradient_); !std::isfinite(loss) || !bad.empty()) {
    return fail(
        {Fault::kBadInput, bad.empty() ? "the loss is not finite" : fmt::format("the gradient of '{}' is not finite", bad),
         fmt::format("training step {}", at_.step + 1), "finite numbers",
         "Take a smaller --learning-rate, or look for extreme values with kizzasi check. The best weights so far are in the checkpoint."});
  }
  if (config_.clip > 0) clip_by_norm(gradient_, config_.clip);
  optimizer_->step(at_.weights, gradient_, schedule_->rate(at_.step), schedule_->momentum(at_.step));
  ++at_.step;
  if (task_.cost != nullptr) {
    std::vector<double> sums(task_.cost->sums(), 0.0);
    for (const Piece& piece : pieces_) {
      for (std::size_t i = 0; piece.weight > 0 && i < sums.size(); ++i) sums[i] += piece.sums[i];
    }
    task_.cost->step(at_.step, cost_state_, sums);
  }

  // The average starts as a plain mean and becomes exponential, so that it is never dominated by the start.
  const double keep = config_.ema > 0 ? std::min(config_.ema, (static_cast<double>(at_.step)) / (static_cast<double>(at_.step) + 9)) : 0;
  for (auto& [name, tensor] : at_.average) {
    if (!is_trained(name)) continue;
    const std::vector<float>& now = at_.weights.at(name).values;
    for (std::size_t i = 0; i < now.size(); ++i) tensor.values[i] += static_cast<float>(1 - keep) * (now[i] - tensor.values[i]);
  }
  return loss;
}

Result<void> Run::validate() {
  const Merit now = merit(at_.average);
  validation_ = now.all();
  if (task_.cost != nullptr && task_.cost->moves()) {
    at_.progress["start_validation"] = start_validation_ = validation_of(task_.weights);
    stopping_.restore(validation_of(at_.best), stopping_.best_step(), stopping_.stale());
  }
  at_.validated = at_.step;
  if (!std::isfinite(validation_)) {
    return fail({Fault::kBadInput, "the validation loss is not finite", fmt::format("training step {}", at_.step), "finite numbers",
                 "Take a smaller --learning-rate. The best weights so far are in the checkpoint."});
  }
  // A gain that small over a closed form is chance: on one validation part it picks weights that do worse elsewhere.
  const double enough = start_validation_ - config_.least_gain * std::abs(start_validation_);
  const bool counts = !task_.model->shape().has_shortcut || validation_ <= enough;
  if (stopping_.observe(counts ? validation_ : std::numeric_limits<double>::quiet_NaN(), at_.step)) at_.best = at_.average;
  schedule_->observe(validation_);
  note(now);
  loss_sum_ = 0;
  loss_steps_ = 0;
  return {};
}

Result<TrainOutcome> Run::run(const TrainWatch& watch) {
  const FloatEnv environment;
  if (auto begun = begin(); !begun) return fail(begun.error());
  const double start = clock_.seconds();
  const std::int64_t first = at_.step;
  TrainEnd end = TrainEnd::kSteps;
  double last_mean = 0;
  while (at_.step < config_.steps) {
    const auto loss = step();
    if (!loss) {
      // What was learned before stays on disk.
      if (auto saved = save(); !saved) return fail(saved.error());
      return fail(loss.error());
    }
    loss_sum_ += *loss;
    ++loss_steps_;
    const double seconds = clock_.seconds() - start;
    const bool over = config_.budget_s > 0 && seconds >= config_.budget_s;
    const double mean = loss_sum_ / static_cast<double>(loss_steps_);
    last_mean = mean;
    const bool due = at_.step % config_.validate_every == 0;
    if (due) {
      if (auto validated = validate(); !validated) return fail(validated.error());
    }
    TrainProgress progress{at_.step, config_.steps, mean, validation_, stopping_.best(), stopping_.best_step(), 0, seconds, 0, due};
    const double done = static_cast<double>(at_.step - first);
    progress.samples_per_second = seconds > 0 ? done * static_cast<double>(config_.batch) / seconds : 0;
    const double by_steps = seconds / done * static_cast<double>(config_.steps - at_.step);
    progress.seconds_left = config_.budget_s > 0 ? std::min(by_steps, std::max(0.0, config_.budget_s - seconds)) : by_steps;
    const bool go_on = !watch || watch(progress);
    if (over) end = TrainEnd::kBudget;
    if (!go_on) end = TrainEnd::kStopped;
    if (stopping_.should_stop()) end = TrainEnd::kPatience;
    if (end != TrainEnd::kSteps) break;
    if (at_.step % config_.checkpoint_every == 0) {
      if (auto saved = save(); !saved) return fail(saved.error());
    }
  }
  // What ends a run early is no part of its course: the checkpoint is that of a run that goes on. The last weights are judged after it.
  if (auto saved = save(); !saved) return fail(saved.error());
  if (at_.validated != at_.step) {
    if (auto validated = validate(); !validated) return fail(validated.error());
    if (watch) {
      const double seconds = clock_.seconds() - start;
      watch({at_.step, config_.steps, last_mean, validation_, stopping_.best(), stopping_.best_step(), 0, seconds, 0, true});
    }
  }
  TrainOutcome outcome;
  outcome.weights = at_.best;
  outcome.steps = at_.step;
  outcome.best_step = stopping_.best_step();
  outcome.start_validation = start_validation_;
  outcome.best_validation = stopping_.best();
  outcome.end = end;
  outcome.history = at_.progress["history"];
  return outcome;
}

}  // namespace

const char* to_string(TrainEnd end) {
  switch (end) {
    case TrainEnd::kSteps:
      return "all steps taken";
    case TrainEnd::kBudget:
      return "time budget used";
    case TrainEnd::kPatience:
      return "no better validation for a while";
    case TrainEnd::kStopped:
      return "stopped by the user";
  }
  return "";
}

void TrainConfig::fields(FieldVisitor& visit) {
  visit.field({"steps", "Training steps at most.", 0, 1e9}, steps);
  visit.field({"budget_s", "Seconds of training at most; 0: no limit.", 0, 1e9}, budget_s);
  visit.field({"batch", "Windows a step.", 1, 65536}, batch);
  visit.field({"origins", "Moments of a window from which is forecast (streaming mode).", 1, 65536}, origins);
  visit.field({"loss", "Loss of a point head.", 0, 0, {"l1", "huber", "l2"}}, loss);
  visit.field(
      {"loss_unit",
       "In what an error counts: window, the scale that the model sees; seasonal, the mean absolute change over one season within the "
       "context, as in MASE.",
       0,
       0,
       {"window", "seasonal"}},
      loss_unit);
  optimizer.fields(visit);
  schedule.fields(visit);
  visit.field({"clip", "Largest norm of the gradient; 0: no limit.", 0, 1e9}, clip);
  visit.field({"ema", "Weight of the past in the moving average of the weights that is kept; 0: the last weights.", 0, 0.99999}, ema);
  visit.field({"noise", "Standard deviation of noise added to the inputs, in normalised units.", 0, 10}, noise);
  visit.field({"validate_every", "Steps between validations.", 1, 1e9}, validate_every);
  visit.field({"validation_windows", "Windows that a validation looks at, at most.", 1, 1e9}, validation_windows);
  visit.field({"patience", "Validations without a better one before training stops; 0: never.", 0, 1e9}, patience);
  visit.field(
      {"least_gain", "Share by which the validation loss must fall below that of the short-cut alone for the backbone to be kept.", 0, 1},
      least_gain);
  visit.field({"checkpoint_every", "Steps between checkpoints; one is written before the first step.", 1, 1e9}, checkpoint_every);
  visit.field({"seed", "Seed of everything that is drawn.", 0, 9e15}, seed);
}

double mean_loss(const SignalModel& model, const Dataset& data, const NamedTensors& weights, const std::vector<RowRange>& ranges,
                 std::size_t most_windows, PointLoss point, ThreadPool& pool) {
  return merit_of(model, data, weights, ranges, most_windows, point, nullptr, {}, pool).loss;
}

Result<TrainOutcome> train(const TrainTask& task, const TrainConfig& config, ThreadPool& pool, const Clock& clock,
                           const TrainWatch& watch) {
  Run run(task, config, pool, clock);
  return run.run(watch);
}

}  // namespace kizzasi
