#include "kizzasi/forecast/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "kizzasi/forecast/ets.h"
#include "kizzasi/forecast/past_values.h"
#include "kizzasi/forecast/simple_methods.h"

namespace kizzasi {
namespace {

constexpr std::size_t kSeasonsBack = 10, kLeastBack = 200;  // rows that ETS and Theta read before an origin
constexpr std::size_t kMostAutoSeason = 48;

std::size_t rows_back(std::size_t season) { return std::max(kLeastBack, kSeasonsBack * season); }

// Every target channel by itself: a method sees its past and gives the steps after it.
class Univariate : public Forecaster {
 public:
  explicit Univariate(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  Result<void> fit(const Series&) override { return {}; }
  Result<void> forecast(const Series& series, std::size_t origin, std::size_t horizon, ForecastBlock& out) const override {
    const auto targets = series.schema.with_role(Role::kTarget);
    out.resize(horizon, targets.size(), {});
    std::vector<double> steps(horizon);
    for (std::size_t c = 0; c < targets.size(); ++c) {
      const std::size_t back = std::min(reach(), origin);
      auto done = continue_after(channel_rows(series, targets[c], origin - back, origin), c, steps);
      if (!done) return done;
      for (std::size_t h = 0; h < horizon; ++h) out.point(h, c) = steps[h];
    }
    return {};
  }

 private:
  // Rows of the past that it reads.
  virtual std::size_t reach() const { return std::numeric_limits<std::size_t>::max(); }
  virtual Result<void> continue_after(std::vector<double> past, std::size_t target, std::span<double> out) const = 0;

  std::string name_;
};

class Simple final : public Univariate {
 public:
  using Method = std::function<void(std::span<const double>, std::span<double>)>;
  Simple(std::string name, Method method) : Univariate(std::move(name)), method_(std::move(method)) {}

 private:
  Result<void> continue_after(std::vector<double> past, std::size_t, std::span<double> out) const override {
    method_(past, out);
    return {};
  }
  Method method_;
};

class Velocity final : public Forecaster {
 public:
  explicit Velocity(std::vector<std::pair<std::string, std::string>> pairs) : pairs_(std::move(pairs)) {}
  std::string name() const override { return "constant velocity"; }
  Result<void> fit(const Series&) override { return {}; }
  Result<void> forecast(const Series& series, std::size_t origin, std::size_t horizon, ForecastBlock& out) const override {
    const auto targets = series.schema.with_role(Role::kTarget);
    out.resize(horizon, targets.size(), {});
    const double step = static_cast<double>(series.schema.step_ns) * 1e-9;
    if (!(step > 0) || origin == 0) {
      return fail({Fault::kBadInput, "there is no step in seconds or no row before the origin", name(), "a series with times", ""});
    }
    for (std::size_t c = 0; c < targets.size(); ++c) {
      const std::string& target = series.schema.channels[targets[c]].name;
      const double now = series.at(origin - 1, targets[c]);
      double speed = 0;
      if (!is_rate(target)) {
        const auto rate = rate_of(series.schema, target);
        if (!rate) return fail(rate.error());
        speed = series.at(origin - 1, *rate);
      }
      for (std::size_t h = 0; h < horizon; ++h) out.point(h, c) = now + speed * step * static_cast<double>(h + 1);
    }
    return {};
  }

 private:
  bool is_rate(const std::string& target) const {
    return std::any_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) { return pair.second == target; });
  }
  Result<std::size_t> rate_of(const Schema& schema, const std::string& target) const {
    for (const auto& [position, rate] : pairs_) {
      if (position != target) continue;
      if (const auto index = schema.index_of(rate)) return *index;
      return fail(
          {Fault::kBadInput, fmt::format("there is no channel '{}'", rate), name(), fmt::to_string(fmt::join(schema.names(), ", ")), ""});
    }
    return fail({Fault::kBadInput, fmt::format("no rate is named for '{}'", target), name(), "a channel for each target", ""});
  }
  std::vector<std::pair<std::string, std::string>> pairs_;
};

class Ets final : public Univariate {
 public:
  Ets(std::string form, std::size_t season)
      : Univariate(form == "auto"  ? "ETS"
                   : form == "AAA" ? fmt::format("Holt-Winters {}", season)
                                   : fmt::format("ETS {}", form)),
        form_(std::move(form)),
        season_(season) {}

  Result<void> fit(const Series& train) override {
    models_.clear();
    for (const std::size_t channel : train.schema.with_role(Role::kTarget)) {
      const std::size_t back = std::min(rows_back(season_), train.rows());
      auto past = channel_rows(train, channel, train.rows() - back, train.rows());
      bridge_gaps(past);
      auto model = fitted(past);
      if (!model) return fail(model.error());
      models_.push_back(std::move(*model));
    }
    return {};
  }

 private:
  std::size_t reach() const override { return rows_back(season_); }

  Result<EtsModel> fitted(std::span<const double> past) const {
    const bool constant = std::all_of(past.begin(), past.end(), [&](double v) { return v == past[0]; });
    if (constant) return EtsModel{{}, 1, 0, 0, 1, {}};  // follows the last value
    if (form_ == "auto") return ets_select(past, season_ > kMostAutoSeason ? 1 : season_);
    const auto form = EtsForm::from(form_, "ETS");
    if (!form) return fail(form.error());
    return ets_fit(*form, past, season_);
  }

  Result<void> continue_after(std::vector<double> past, std::size_t target, std::span<double> out) const override {
    bridge_gaps(past);
    EtsModel model = models_[target];
    if (past.empty() || (!model.start.season.empty() && past.size() < 2 * season_)) {
      std::fill(out.begin(), out.end(), std::numeric_limits<double>::quiet_NaN());
      return {};
    }
    model.start = ets_start(model.form, past, season_);
    const EtsRun run = ets_run(model, past);
    ets_forecast(model, run.end, past.size(), out);
    return {};
  }

  std::string form_;
  std::size_t season_;
  std::vector<EtsModel> models_;  // (targets)
};

class Theta final : public Univariate {
 public:
  Theta(ThetaKind kind, std::size_t season)
      : Univariate(kind == ThetaKind::kStandard    ? "Theta"
                   : kind == ThetaKind::kOptimised ? "Theta optimised"
                                                   : "Theta dynamic optimised"),
        kind_(kind),
        season_(season) {}

 private:
  std::size_t reach() const override { return rows_back(season_); }
  Result<void> continue_after(std::vector<double> past, std::size_t, std::span<double> out) const override {
    bridge_gaps(past);
    const auto model = theta_fit(kind_, past, season_);
    if (!model) return fail(model.error());
    theta_forecast(*model, past, out);
    return {};
  }
  ThetaKind kind_;
  std::size_t season_;
};

}  // namespace

std::unique_ptr<Forecaster> naive_forecaster() { return std::make_unique<Simple>("naive", naive); }
std::unique_ptr<Forecaster> drift_forecaster() { return std::make_unique<Simple>("drift", drift); }

std::unique_ptr<Forecaster> seasonal_naive_forecaster(std::size_t season) {
  return std::make_unique<Simple>(fmt::format("seasonal naive {}", season),
                                  [season](auto past, auto out) { seasonal_naive(past, season, out); });
}

std::unique_ptr<Forecaster> window_average_forecaster(std::size_t window) {
  return std::make_unique<Simple>(fmt::format("window average {}", window),
                                  [window](auto past, auto out) { window_average(past, window, out); });
}

std::unique_ptr<Forecaster> seasonal_mean_forecaster(std::size_t season, std::size_t seasons) {
  return std::make_unique<Simple>(fmt::format("mean of the last {} seasons of {}", seasons, season),
                                  [=](auto past, auto out) { seasonal_mean(past, season, seasons, out); });
}

std::unique_ptr<Forecaster> constant_velocity_forecaster(std::vector<std::pair<std::string, std::string>> position_and_rate) {
  return std::make_unique<Velocity>(std::move(position_and_rate));
}

std::unique_ptr<Forecaster> ets_forecaster(std::string form, std::size_t season) {
  return std::make_unique<Ets>(std::move(form), std::max<std::size_t>(season, 1));
}

std::unique_ptr<Forecaster> theta_forecaster(ThetaKind kind, std::size_t season) {
  return std::make_unique<Theta>(kind, std::max<std::size_t>(season, 1));
}

std::vector<std::unique_ptr<Forecaster>> standard_baselines(const std::vector<std::size_t>& seasons, const RidgeOptions& ridge) {
  std::vector<std::unique_ptr<Forecaster>> all;
  const std::size_t shortest = seasons.empty() ? 1 : seasons.front();
  for (const std::size_t season : seasons) all.push_back(seasonal_naive_forecaster(season));
  all.push_back(naive_forecaster());
  all.push_back(drift_forecaster());
  all.push_back(window_average_forecaster(std::max<std::size_t>(shortest, 4)));
  for (const std::size_t season : seasons) all.push_back(seasonal_mean_forecaster(season, 7));
  all.push_back(ridge_forecaster(ridge));
  all.push_back(ets_forecaster(seasons.empty() ? "AAdN" : "AAA", shortest));
  all.push_back(ets_forecaster("auto", shortest));
  all.push_back(theta_forecaster(ThetaKind::kStandard, shortest));
  return all;
}

}  // namespace kizzasi
