#include "kizzasi/forecast/backtest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kizzasi/base/float_env.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/decode/conformal.h"
#include "kizzasi/forecast/adaptive_intervals.h"
#include "kizzasi/forecast/past_values.h"

namespace kizzasi {
namespace {

constexpr std::size_t kPieces = 16;  // of the origins: fixed, so that sums are joined alike whatever the number of threads
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// A series of which only what is known at an origin can be read; origins rise.
class Blindfold {
 public:
  Blindfold(const Series& whole, std::size_t origin, std::size_t horizon) : whole_(whole), shown_(whole), horizon_(horizon) {
    for (std::size_t c = 0; c < whole.channels(); ++c) {
      for (std::size_t r = known_until(c, origin); r < whole.rows(); ++r) shown_.values[r * whole.channels() + c] = kMissing;
    }
    origin_ = origin;
  }
  const Series& at(std::size_t origin) {
    for (std::size_t c = 0; c < whole_.channels(); ++c) {
      for (std::size_t r = known_until(c, origin_); r < known_until(c, origin); ++r) shown_.row(r)[c] = whole_.at(r, c);
    }
    origin_ = origin;
    return shown_;
  }

 private:
  std::size_t known_until(std::size_t channel, std::size_t origin) const {
    const bool ahead = whole_.schema.channels[channel].role == Role::kKnownFuture;
    return std::min(whole_.rows(), origin + (ahead ? horizon_ : 0));
  }
  const Series& whole_;
  Series shown_;
  std::size_t horizon_, origin_;
};

std::vector<std::size_t> origins_between(std::size_t first, std::size_t last_row, std::size_t horizon, std::size_t stride) {
  std::vector<std::size_t> origins;
  for (std::size_t origin = first; origin + horizon <= last_row; origin += stride) origins.push_back(origin);
  return origins;
}

// At most `most` of `all`, spread evenly, the last among them.
std::vector<std::size_t> thinned(const std::vector<std::size_t>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<std::size_t> some;
  for (std::size_t i = 1; i <= most; ++i) some.push_back(all[i * all.size() / most - 1]);
  return some;
}

void share_out(ThreadPool* pool, std::size_t pieces, const std::function<void(std::size_t)>& work) {
  if (pool != nullptr) return pool->run(pieces, work);
  for (std::size_t i = 0; i < pieces; ++i) work(i);
}

// What is the same for every forecaster of one backtest.
struct Course {
  const Series& series;
  const BacktestOptions& options;
  std::vector<std::size_t> targets;
  std::vector<SeasonalScale> scales;           // (targets)
  std::vector<std::size_t> calibration, test;  // origins
  ThreadPool* pool;

  std::size_t cells() const { return options.horizon * targets.size(); }
  double truth(std::size_t origin, std::size_t cell) const {
    return series.at(origin + cell / targets.size(), targets[cell % targets.size()]);
  }
};

// Forecasts from every origin; take(piece, index of the origin, block) is called on any thread, in order within a piece.
template <typename Take>
std::optional<Error> forecast_all(const Course& course, const Forecaster& forecaster, const std::vector<std::size_t>& origins, Take take) {
  const std::size_t pieces = std::min(kPieces, origins.size());
  std::vector<std::optional<Error>> errors(pieces);
  share_out(course.pool, pieces, [&](std::size_t piece) {
    const std::size_t begin = piece * origins.size() / pieces, end = (piece + 1) * origins.size() / pieces;
    Blindfold blindfold(course.series, origins[begin], course.options.horizon);
    ForecastBlock block;
    for (std::size_t i = begin; i < end; ++i) {
      const auto done = forecaster.forecast(blindfold.at(origins[i]), origins[i], course.options.horizon, block);
      if (!done) {
        errors[piece] = done.error();
        return;
      }
      take(piece, i, block);
    }
  });
  for (auto& error : errors) {
    if (error) return std::move(error);
  }
  return std::nullopt;
}

// What to add to the points to get quantiles: (levels, cells). Cells are steps and targets.
struct Shifts {
  std::vector<double> levels, values;
  std::size_t beyond = 0;  // of `values`: their rank lies beyond the errors at hand; the outermost error stands in
};

Shifts conformal_shifts(const Course& course, const std::vector<double>& errors) {
  const std::size_t cells = course.cells(), rows = errors.size() / cells;
  Shifts shifts{course.options.levels, std::vector<double>(course.options.levels.size() * cells)};
  std::vector<double> of_cell;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    of_cell.clear();
    for (std::size_t r = 0; r < rows; ++r) {
      if (std::isfinite(errors[r * cells + cell])) of_cell.push_back(errors[r * cells + cell]);
    }
    std::sort(of_cell.begin(), of_cell.end());
    for (std::size_t level = 0; level < shifts.levels.size(); ++level) {
      double shift = conformal_shift(of_cell, shifts.levels[level]);
      if (std::isinf(shift) && !of_cell.empty()) {
        shift = shift > 0 ? of_cell.back() : of_cell.front();
        ++shifts.beyond;
      }
      shifts.values[level * cells + cell] = shift;
    }
  }
  return shifts;
}

void give_quantiles(const Shifts& shifts, ForecastBlock& block) {
  const std::size_t cells = block.points.size();
  block.levels = shifts.levels;
  block.quantiles.resize(shifts.values.size());
  for (std::size_t i = 0; i < shifts.values.size(); ++i) block.quantiles[i] = block.points[i % cells] + shifts.values[i];
}

// Quantiles at the wanted levels, adapted by what came of the forecasts before: only values that were measured before an origin count.
void adapt(const Course& course, std::vector<ForecastBlock>& blocks) {
  const std::size_t targets = course.targets.size(), horizon = course.options.horizon, cells = course.cells(),
                    levels = course.options.levels.size();
  AdaptiveIntervals intervals(course.options.levels, targets, course.options.adaptation);
  std::vector<std::size_t> seen(blocks.size(), 0);  // steps of each forecast that were learned from
  std::vector<double> of_cell(levels);
  std::size_t oldest = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t j = oldest; j < i; ++j) {
      const std::size_t known = std::min(horizon, course.test[i] - course.test[j]);
      for (; seen[j] < known; ++seen[j]) {
        for (std::size_t target = 0; target < targets; ++target) {
          const std::size_t cell = seen[j] * targets + target;
          for (std::size_t q = 0; q < levels; ++q) of_cell[q] = blocks[j].quantiles[q * cells + cell];
          intervals.learn(target, horizon, of_cell, course.truth(course.test[j], cell));
        }
      }
      if (j == oldest && seen[j] == horizon) ++oldest;
    }
    intervals.apply(blocks[i]);
  }
}

// Sums of one piece of the origins.
struct Sums {
  std::vector<PointMetrics> points;        // (cells)
  std::vector<QuantileMetrics> quantiles;  // (cells) or empty
  std::size_t values = 0, outside = 0;

  void add(const Course& course, std::size_t origin, const ForecastBlock& block) {
    const std::size_t cells = block.points.size();
    points.resize(cells);
    if (!block.levels.empty() && quantiles.empty()) quantiles.assign(cells, QuantileMetrics(block.levels));
    std::vector<double> of_cell(block.levels.size());
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const double truth = course.truth(origin, cell);
      points[cell].add(truth, block.points[cell]);
      if (quantiles.empty()) continue;
      for (std::size_t level = 0; level < of_cell.size(); ++level) of_cell[level] = block.quantiles[level * cells + cell];
      quantiles[cell].add(truth, of_cell);
    }
    if (!course.options.outside) return;
    values += cells;
    outside += course.options.outside(course.series, origin, block);
  }
};

void merge(Sums part, MethodResult& result) {
  if (result.points.empty()) {
    result.points = std::move(part.points);
    result.quantiles = std::move(part.quantiles);
  } else {
    for (std::size_t i = 0; i < part.points.size(); ++i) result.points[i].merge(part.points[i]);
    for (std::size_t i = 0; i < part.quantiles.size(); ++i) result.quantiles[i].merge(part.quantiles[i]);
  }
  result.values += part.values;
  result.outside += part.outside;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value / static_cast<double>(values.size());
  return sum;
}

void scale_errors(const Course& course, MethodResult& result) {
  std::vector<double> mase, rmsse, msis;
  for (std::size_t target = 0; target < course.targets.size(); ++target) {
    const PointMetrics points = result.points_of(target);
    mase.push_back(points.mase(course.scales[target]));
    rmsse.push_back(points.rmsse(course.scales[target]));
    msis.push_back(kMissing);
    if (result.quantiles.empty()) continue;
    for (const IntervalMetrics& interval : result.quantiles_of(target).intervals()) {
      if (std::abs(interval.nominal - 0.95) < 1e-9) msis.back() = interval.msis(course.scales[target]);
    }
  }
  result.mase = mean_of(mase);
  result.rmsse = mean_of(rmsse);
  result.msis95 = mean_of(msis);
}

std::optional<Error> judge(const Course& course, const Series& train, Forecaster& forecaster, MethodResult& result) {
  if (auto fitted = forecaster.fit(train); !fitted) return fitted.error();
  const std::size_t cells = course.cells();
  std::vector<double> errors(course.calibration.size() * cells, kMissing);
  std::vector<char> own(course.calibration.size(), 0);  // forecasts that came with quantiles
  auto failed = forecast_all(course, forecaster, course.calibration, [&](std::size_t, std::size_t i, const ForecastBlock& block) {
    own[i] = block.levels.empty() ? 0 : 1;
    for (std::size_t cell = 0; cell < cells; ++cell)
      errors[i * cells + cell] = course.truth(course.calibration[i], cell) - block.points[cell];
  });
  if (failed) return failed;
  std::optional<Shifts> shifts;
  if (!course.calibration.empty() && own[0] == 0) shifts = conformal_shifts(course, errors);
  result.calibrated = shifts.has_value();
  result.beyond_calibration = shifts ? shifts->beyond : 0;

  std::vector<Sums> pieces(kPieces);
  const auto shown = thinned(course.test, course.options.keep);
  // Own quantiles adapt from origin to origin, so their forecasts are gathered first and judged in order of time.
  const bool adapts = course.options.adaptation > 0 && !own.empty() && own[0] != 0;
  std::vector<ForecastBlock> kept(course.options.keep > 0 || adapts ? course.test.size() : 0);
  failed = forecast_all(course, forecaster, course.test, [&](std::size_t piece, std::size_t i, ForecastBlock& block) {
    if (block.levels.empty() && shifts) give_quantiles(*shifts, block);
    if (!adapts) pieces[piece].add(course, course.test[i], block);
    if (adapts || (!kept.empty() && std::binary_search(shown.begin(), shown.end(), course.test[i]))) kept[i] = block;
  });
  if (failed) return failed;
  if (adapts) {
    adapt(course, kept);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      pieces[0].add(course, course.test[i], kept[i]);
      if (!std::binary_search(shown.begin(), shown.end(), course.test[i])) kept[i] = {};
    }
  }
  for (Sums& piece : pieces) {
    if (!piece.points.empty()) merge(std::move(piece), result);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].horizon > 0) result.kept.emplace_back(course.test[i], std::move(kept[i]));
  }
  result.forecasts = course.test.size();
  scale_errors(course, result);
  return std::nullopt;
}

template <typename Metrics>
Metrics joined(const std::vector<Metrics>& all, std::size_t first, std::size_t last, std::size_t stride) {
  Metrics sum = all[first];
  for (std::size_t i = first + stride; i < last; i += stride) sum.merge(all[i]);
  return sum;
}

Result<Course> course_of(const Series& series, const BacktestOptions& options, ThreadPool* pool) {
  const data::Split& split = options.split;
  const auto bad = [](std::string what, std::string expected, std::string hint) {
    return fail({Fault::kBadInput, std::move(what), "backtest", std::move(expected), std::move(hint)});
  };
  if (options.horizon == 0 || options.stride == 0 || options.season == 0) return bad("horizon, stride or season is 0", "at least 1", "");
  if (split.train_end == 0 || split.train_end > split.validation_end || split.validation_end > split.rows || split.rows > series.rows()) {
    return bad(fmt::format("the parts end at rows {}, {} and {} of {}", split.train_end, split.validation_end, split.rows, series.rows()),
               "training before validation before test", "");
  }
  Course course{series, options, series.schema.with_role(Role::kTarget), {}, {}, {}, pool};
  if (course.targets.empty()) return bad("no channel is a target", "at least one", "");
  for (const std::size_t target : course.targets) {
    course.scales.push_back(seasonal_scale(channel_rows(series, target, 0, split.train_end), options.season));
  }
  course.test = origins_between(split.validation_end, split.rows, options.horizon, options.stride);
  if (course.test.empty()) {
    return bad(fmt::format("{} test rows hold no horizon of {}", split.rows - split.validation_end, options.horizon),
               "a test part at least as long as the horizon", "Shorten the horizon or give the test part a larger share.");
  }
  course.calibration = thinned(origins_between(split.train_end, split.validation_end, options.horizon, 1), options.most_calibration);
  return course;
}

}  // namespace

LimitCheck bounds_check(std::vector<double> low, std::vector<double> high) {
  return [low = std::move(low), high = std::move(high)](const Series&, std::size_t, const ForecastBlock& block) {
    constexpr double kSlack = 1e-9;
    std::size_t outside = 0;
    for (std::size_t cell = 0; cell < block.points.size(); ++cell) {
      const std::size_t target = cell % block.channels;
      const double value = block.points[cell];
      outside += value < low[target] - kSlack || value > high[target] + kSlack ? 1 : 0;
    }
    return outside;
  };
}

PointMetrics MethodResult::points_over(std::size_t first_step, std::size_t last_step) const {
  return joined(points, first_step * targets, last_step * targets, 1);
}
PointMetrics MethodResult::points_of(std::size_t target) const { return joined(points, target, points.size(), targets); }
QuantileMetrics MethodResult::quantiles_over(std::size_t first_step, std::size_t last_step) const {
  return joined(quantiles, first_step * targets, last_step * targets, 1);
}
QuantileMetrics MethodResult::quantiles_of(std::size_t target) const { return joined(quantiles, target, quantiles.size(), targets); }

Result<BacktestResult> backtest(const Series& series, std::span<Forecaster* const> forecasters, const BacktestOptions& options,
                                ThreadPool* pool) {
  const FloatEnv environment;
  auto course = course_of(series, options, pool);
  if (!course) return fail(course.error());
  BacktestResult result;
  result.horizon = options.horizon;
  result.stride = options.stride;
  result.season = options.season;
  result.rows = options.split.rows;
  result.train_end = options.split.train_end;
  result.validation_end = options.split.validation_end;
  result.first_origin = course->test.front();
  result.last_origin = course->test.back();
  for (const std::size_t target : course->targets) {
    result.targets.push_back(series.schema.channels[target].name);
    result.units.push_back(series.schema.channels[target].unit);
  }
  const Series train = series.slice(0, options.split.train_end);
  for (Forecaster* forecaster : forecasters) {
    MethodResult& method = result.methods.emplace_back();
    method.horizon = options.horizon;
    method.targets = course->targets.size();
    const auto failed = judge(*course, train, *forecaster, method);
    method.name = forecaster->name();
    if (failed) method.problem = failed->text();
  }
  return result;
}

Result<BacktestResult> join(std::span<const BacktestResult> parts) {
  BacktestResult all = parts[0];
  all.series = parts.size();
  for (const BacktestResult& part : parts.subspan(1)) {
    if (part.horizon != all.horizon || part.targets != all.targets || part.methods.size() != all.methods.size()) {
      return fail({Fault::kBadInput, "the results are of different horizons, targets or methods", "backtest", "equal ones", ""});
    }
    for (std::size_t m = 0; m < all.methods.size(); ++m) {
      MethodResult& ours = all.methods[m];
      const MethodResult& theirs = part.methods[m];
      if (ours.problem.empty()) ours.problem = theirs.problem;
      if (!ours.problem.empty()) continue;
      merge({theirs.points, theirs.quantiles, theirs.values, theirs.outside}, ours);
      ours.forecasts += theirs.forecasts;
      ours.beyond_calibration += theirs.beyond_calibration;
      ours.mase += theirs.mase;
      ours.rmsse += theirs.rmsse;
      ours.msis95 += theirs.msis95;
    }
  }
  for (MethodResult& method : all.methods) {
    method.mase /= static_cast<double>(parts.size());
    method.rmsse /= static_cast<double>(parts.size());
    method.msis95 /= static_cast<double>(parts.size());
  }
  return all;
}

}  // namespace kizzasi
