#include "kizzasi/forecast/model_forecaster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kizzasi/engine/session.h"
#include "kizzasi/model/model_file.h"

namespace kizzasi {
namespace {

class ModelForecaster final : public Forecaster {
 public:
  ModelForecaster(std::string name, std::shared_ptr<const Predictor> predictor)
      : name_(std::move(name)), predictor_(std::move(predictor)) {}

  std::string name() const override { return name_; }
  Result<void> fit(const Series&) override { return {}; }

  Result<void> forecast(const Series& series, std::size_t origin, std::size_t horizon, ForecastBlock& out) const override {
    // Only the rows that count, by the model's own channels: look-back and the horizon's known future.
    const std::size_t begin = origin - std::min(origin, predictor_->lookback());
    Schema schema = predictor_->schema();
    schema.step_ns = predictor_->frame_ns();
    auto rows = select_for_model(schema, series.slice(begin, std::min(series.rows(), origin + horizon)), name_);
    if (!rows) return fail(rows.error());
    Session session = Session::prepare(predictor_);
    session.prefill(*rows, 0, origin - begin);
    ForecastRequest request;
    const Sampling& sampling = predictor_->options().sampling;
    request.horizon = (horizon * sampling.slower + sampling.faster - 1) / sampling.faster;
    request.observed_plan = ObservedPlan::kHold;
    const auto known = predictor_->schema().with_role(Role::kKnownFuture);
    for (std::size_t row = origin - begin; row < rows->rows(); ++row) {
      for (const std::size_t channel : known) request.known.push_back(rows->at(row, channel));
    }
    Forecast forecast;
    if (auto done = session.forecast(request, forecast); !done) return done;
    out = sampling.as_trained() ? std::move(forecast.block) : at_rows(forecast.block, *rows, origin - begin, horizon);
    return {};
  }

 private:
  // Steps of the model as rows of a recording at another rate.
  ForecastBlock at_rows(const ForecastBlock& steps, const Series& rows, std::size_t origin, std::size_t horizon) const {
    const Sampling& sampling = predictor_->options().sampling;
    const auto targets = predictor_->schema().with_role(Role::kTarget);
    ForecastBlock out;
    out.resize(horizon, steps.channels, steps.levels);
    for (std::size_t h = 0; h < horizon; ++h) {
      const std::size_t place = (h + 1) * sampling.slower, next = (place + sampling.faster - 1) / sampling.faster - 1;
      const double share =
          place % sampling.faster == 0 ? 1 : static_cast<double>(place % sampling.faster) / static_cast<double>(sampling.faster);
      for (std::size_t c = 0; c < steps.channels; ++c) {
        const double measured = origin > 0 ? rows.at(origin - 1, targets[c]) : std::numeric_limits<double>::quiet_NaN();
        const double last = std::isnan(measured) ? steps.point(0, c) : measured;
        const auto between = [&](auto value) {
          const double before = next == 0 ? last : value(next - 1);
          return share == 1 ? value(next) : before + share * (value(next) - before);
        };
        out.point(h, c) = between([&](std::size_t step) { return steps.point(step, c); });
        for (std::size_t l = 0; l < steps.levels.size(); ++l) {
          out.quantile(l, h, c) = between([&](std::size_t step) { return steps.quantile(l, step, c); });
        }
      }
    }
    return out;
  }

  std::string name_;
  std::shared_ptr<const Predictor> predictor_;
};

}  // namespace

std::unique_ptr<Forecaster> model_forecaster(std::string name, std::shared_ptr<const Predictor> predictor) {
  return std::make_unique<ModelForecaster>(std::move(name), std::move(predictor));
}

}  // namespace kizzasi
