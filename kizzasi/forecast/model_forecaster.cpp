#include "kizzasi/forecast/model_forecaster.h"

#include <algorithm>
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
    auto rows = select_for_model(predictor_->schema(), series.slice(begin, std::min(series.rows(), origin + horizon)), name_);
    if (!rows) return fail(rows.error());
    Session session = Session::prepare(predictor_);
    session.prefill(*rows, 0, origin - begin);
    ForecastRequest request;
    request.horizon = horizon;
    request.observed_plan = ObservedPlan::kHold;
    const auto known = predictor_->schema().with_role(Role::kKnownFuture);
    for (std::size_t row = origin - begin; row < rows->rows(); ++row) {
      for (const std::size_t channel : known) request.known.push_back(rows->at(row, channel));
    }
    Forecast forecast;
    if (auto done = session.forecast(request, forecast); !done) return done;
    out = std::move(forecast.block);
    return {};
  }

 private:
  std::string name_;
  std::shared_ptr<const Predictor> predictor_;
};

}  // namespace

std::unique_ptr<Forecaster> model_forecaster(std::string name, std::shared_ptr<const Predictor> predictor) {
  return std::make_unique<ModelForecaster>(std::move(name), std::move(predictor));
}

}  // namespace kizzasi
