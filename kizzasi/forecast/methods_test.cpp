#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>

#include "kizzasi/base/json.h"
#include "kizzasi/forecast/ets.h"
#include "kizzasi/forecast/simple_methods.h"
#include "kizzasi/forecast/theta.h"

namespace kizzasi {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTwoSided80 = 1.2815515655446004, kTwoSided95 = 1.959963984540054;

std::vector<double> numbers(const Json& json) {
  std::vector<double> out;
  for (const Json& item : json.items()) out.push_back(item.is_null() ? kNan : item.number());
  return out;
}

double number_or(const Json& json, const char* key, double otherwise) {
  const Json* value = json.find(key);
  return value == nullptr ? otherwise : value->number();
}

struct Case {
  std::string id;
  std::vector<double> y;
  std::size_t season, horizon;
  std::string model;
  Json json;  // the record of the model
  const Json& of(const char* key) const { return *json.find(key); }
  std::vector<double> forecast() const { return numbers(of("forecast")); }
};

// Every record of the oracle whose model's name begins with `prefix`; the full set where KIZZASI_ORACLES names it.
std::vector<Case> cases(std::string_view prefix, std::string_view suffix = "") {
  const char* folder = std::getenv("KIZZASI_ORACLES");
  std::ifstream file(folder != nullptr ? std::string(folder) + "/forecast/forecasts.jsonl"
                                       : std::string(KIZZASI_SOURCE_DIR "/tests/golden/forecast/forecasts.jsonl"));
  std::vector<Case> found;
  for (std::string line; std::getline(file, line);) {
    const Json json = *Json::parse(line, "forecasts.jsonl");
    for (const Json& model : json.find("models")->items()) {
      const std::string& name = model.find("model")->string();
      if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
      found.push_back({json.find("unique_id")->string(), numbers(*json.find("y")), static_cast<std::size_t>(json.find("season")->integer()),
                       static_cast<std::size_t>(json.find("horizon")->integer()), name, model});
    }
  }
  return found;
}

void expect_equal(const std::vector<double>& ours, const std::vector<double>& theirs, const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_NEAR(ours[i], theirs[i], 1e-9 * std::max(1.0, std::abs(theirs[i]))) << what << " at " << i;
  }
}

using Fill = std::function<void(const Case&, std::span<double>)>;

void expect_method(const char* name, const Fill& points, const Fill& deviations = nullptr) {
  const auto all = cases(name);
  std::size_t seen = 0;
  for (const Case& each : all) {
    if (each.model != name) continue;
    ++seen;
    SCOPED_TRACE(each.id);
    std::vector<double> out(each.horizon), sigma(each.horizon);
    points(each, out);
    expect_equal(out, each.forecast(), name);
    if (!deviations) continue;
    deviations(each, sigma);
    for (const auto& [key, width] :
         {std::pair{"lo80", -kTwoSided80}, {"hi80", kTwoSided80}, {"lo95", -kTwoSided95}, {"hi95", kTwoSided95}}) {
      auto bound = out;
      for (std::size_t h = 0; h < bound.size(); ++h) bound[h] += width * sigma[h];
      expect_equal(bound, numbers(each.of(key)), key);
    }
  }
  EXPECT_GE(seen, 5u) << name;
}

TEST(SimpleMethods, EqualTheOracleWithTheirIntervals) {
  expect_method("naive", [](const Case& c, auto out) { naive(c.y, out); }, [](const Case& c, auto out) { naive_deviation(c.y, out); });
  expect_method(
      "seasonal_naive", [](const Case& c, auto out) { seasonal_naive(c.y, c.season, out); },
      [](const Case& c, auto out) { seasonal_naive_deviation(c.y, c.season, out); });
  expect_method("drift", [](const Case& c, auto out) { drift(c.y, out); }, [](const Case& c, auto out) { drift_deviation(c.y, out); });
  expect_method("mean", [](const Case& c, auto out) { mean(c.y, out); }, [](const Case& c, auto out) { mean_deviation(c.y, out); });
  const auto whole = [](const Case& c, const char* key) { return static_cast<std::size_t>(c.of("params").find(key)->integer()); };
  expect_method("window_average", [&](const Case& c, auto out) { window_average(c.y, whole(c, "k"), out); });
  expect_method("seasonal_window_average", [&](const Case& c, auto out) { seasonal_mean(c.y, c.season, whole(c, "k"), out); });
}

TEST(SimpleMethods, PassOverMissingValues) {
  const std::vector<double> past{1, 2, 3, 4, kNan, 6, 7, kNan};
  std::vector<double> out(4);
  naive(past, out);
  EXPECT_EQ(out, (std::vector<double>{7, 7, 7, 7}));
  seasonal_naive(past, 4, out);
  EXPECT_EQ(out, (std::vector<double>{1, 6, 7, 4}));
  seasonal_mean(past, 4, 2, out);
  EXPECT_EQ(out, (std::vector<double>{1, 4, 5, 4}));
  window_average(past, 3, out);
  EXPECT_EQ(out[0], 6.5);
  drift(past, out);
  EXPECT_EQ(out[1], 9);
  seasonal_naive(std::vector<double>{1, 2}, 4, out);  // slots of a season that was not seen whole
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[2], 1);
}

EtsModel fixed_model(const Case& each, EtsForm form) {
  const Json& params = each.of("params");
  EtsModel model{
      form, number_or(params, "alpha", 0), number_or(params, "beta", 0), number_or(params, "gamma", 0), number_or(params, "phi", 1), {}};
  model.start.level = number_or(params, "level0", each.y[0]);
  model.start.trend = number_or(params, "trend0", 0);
  if (params.find("season0") != nullptr) model.start.season = numbers(*params.find("season0"));
  return model;
}

void expect_run(const Case& each, const EtsModel& model) {
  const EtsRun run = ets_run(model, each.y);
  std::vector<double> out(each.horizon);
  ets_forecast(model, run.end, each.y.size(), out);
  expect_equal(out, each.forecast(), each.model);
  if (each.json.find("fitted_first3") == nullptr) return;
  expect_equal({run.fitted.begin(), run.fitted.begin() + 3}, numbers(each.of("fitted_first3")), "first fits");
  expect_equal({run.fitted.end() - 3, run.fitted.end()}, numbers(each.of("fitted_last3")), "last fits");
  const char* sum = each.json.find("sse") != nullptr ? "sse" : "sse_of_errors";
  EXPECT_NEAR(run.sum_of_squared_errors, each.of(sum).number(), 1e-9 * std::max(1.0, each.of(sum).number()));
  if (each.json.find("loglik") == nullptr) return;
  EXPECT_NEAR(run.log_likelihood, each.of("loglik").number(), 1e-9 * std::abs(run.log_likelihood));
}

TEST(Ets, FixedFormsEqualTheOracle) {
  const auto all = cases("ets_", "_fixed");
  EXPECT_GE(all.size(), 58u);
  for (const Case& each : all) {
    SCOPED_TRACE(each.id + " " + each.model);
    expect_run(each, fixed_model(each, *EtsForm::from(each.model.substr(4, each.model.size() - 10), "case")));
  }
  for (const Case& each : cases("ses_fixed")) expect_run(each, fixed_model(each, *EtsForm::from("ANN", "case")));
}

TEST(HoltWinters, FixedFormsEqualTheOracle) {
  for (const char* kind : {"add", "mul"}) {
    const auto all = cases(std::string("holt_winters_") + kind + "_fixed");
    EXPECT_GE(all.size(), 3u);
    for (const Case& each : all) {
      SCOPED_TRACE(each.id + " " + each.model);
      const EtsModel read = fixed_model(each, {});
      expect_run(each, holt_winters(kind[0] == 'm', read.alpha, read.beta, read.gamma, read.start));
    }
  }
}

// "ETS(A,Ad,N)" -> AAdN
EtsForm chosen(const Case& each) {
  std::string text;
  for (const char c : each.of("params").find("chosen")->string().substr(3))
    text += c == '(' || c == ')' || c == ',' ? "" : std::string(1, c);
  return *EtsForm::from(text, "case");
}

// The oracle's likelihood leaves out the constant of the normal density.
double with_constant(double log_likelihood, std::size_t n) {
  const auto count = static_cast<double>(n);
  return log_likelihood - count / 2 * (std::log(2 * M_PI / count) + 1);
}

TEST(Ets, ParametersOfThePackageGiveItsForecasts) {
  for (const Case& each : cases("ets_", "_optimised")) {
    SCOPED_TRACE(each.id + " " + each.model);
    const EtsForm form = chosen(each);
    const auto par = numbers(*each.of("params").find("par"));
    EtsModel model{form, par[0], form.trend ? par[1] : 0, std::isnan(par[2]) ? 0 : par[2], form.damped ? par[3] : 1, {}};
    std::size_t at = 4;
    model.start.level = par[at++];
    if (form.trend) model.start.trend = par[at++];
    if (form.season != EtsForm::Season::kNone) {
      std::vector<double> season(par.begin() + static_cast<std::ptrdiff_t>(at), par.end());
      double rest = form.season == EtsForm::Season::kMultiplicative ? static_cast<double>(each.season) : 0;
      for (const double s : season) rest -= s;
      if (season.size() + 1 == each.season) season.push_back(rest);
      model.start.season.assign(season.rbegin(), season.rend());
    }
    const EtsRun run = ets_run(model, each.y);
    std::vector<double> out(each.horizon);
    ets_forecast(model, run.end, each.y.size(), out);
    expect_equal(out, each.forecast(), "forecast");
    EXPECT_NEAR(run.log_likelihood, with_constant(each.of("loglik").number(), each.y.size()), 1e-9 * std::abs(run.log_likelihood));
  }
}

TEST(Ets, OwnFittingReachesTheLikelihood) {
  for (const Case& each : cases("ets_", "_optimised")) {
    SCOPED_TRACE(each.id + " " + each.model + " " + each.of("params").find("chosen")->string());
    const auto model = ets_fit(chosen(each), each.y, each.season);
    ASSERT_TRUE(model) << model.error().text();
    const double theirs = each.of("loglik").number();
    const double ours = ets_run(*model, each.y).log_likelihood - with_constant(0, each.y.size());
    EXPECT_GT(ours, theirs - 1e-4 * std::abs(theirs));
  }
}

// The form is chosen among more than the package tries, so its criterion is at least as low.
TEST(Ets, SelectionIsAtLeastAsGoodAsThePackages) {
  for (const Case& each : cases("ets_ZZ", "_optimised")) {
    if (each.y.size() > 210) continue;
    SCOPED_TRACE(each.id);
    const auto model = ets_select(each.y, each.season);
    ASSERT_TRUE(model) << model.error().text();
    const double ours = ets_aicc(*model, ets_run(*model, each.y).log_likelihood - with_constant(0, each.y.size()), each.y.size());
    const double theirs = each.of("aicc").number();
    EXPECT_LT(ours, theirs + 1e-4 * std::abs(theirs)) << model->form.text() << " against " << chosen(each).text();
  }
}

TEST(Ets, RefusesWhatCannotBeFitted) {
  const auto error = [](const char* form, std::vector<double> y, std::size_t season) {
    return ets_fit(*EtsForm::from(form, "x"), y, season).error().what;
  };
  EXPECT_EQ(error("ANN", {1, 2, 3}, 1), "3 values are too few for 2 parameters");
  EXPECT_EQ(error("ANN", std::vector<double>(20, 4.0), 1), "the values are constant");
  EXPECT_EQ(error("ANA", {1, 2, 3, 4, 5, 6, 7}, 4), "7 values are fewer than two seasons of 4");
  EXPECT_EQ(error("MNN", {1, 2, 0, 4, 5, 6, 7}, 1), "a form that multiplies needs positive values");
  EXPECT_FALSE(ets_select(std::vector<double>(50, 1.0), 1));
  EXPECT_EQ(EtsForm::from("AdAN", "--form").error().where, "--form");
}

TEST(Theta, ParametersOfThePackageGiveItsForecastsAndCriterion) {
  for (const ThetaKind kind : {ThetaKind::kStandard, ThetaKind::kOptimised, ThetaKind::kDynamicOptimised}) {
    const auto all = cases(to_string(kind));
    EXPECT_GE(all.size(), 5u);
    for (const Case& each : all) {
      SCOPED_TRACE(each.id + " " + each.model);
      const Json& params = each.of("params");
      auto model = *theta_fit(kind, each.y, each.season);
      EXPECT_EQ(!model.season.empty(), params.find("decompose")->number() == 1);
      const double ours = theta_criterion(model, each.y), theirs = each.of("mse").number();
      EXPECT_LT(ours, theirs * (1 + 1e-4));
      model.alpha = params.find("alpha")->number();
      model.theta = params.find("theta")->number();
      model.level = params.find("initial_smoothed")->number();
      EXPECT_NEAR(theta_criterion(model, each.y), theirs, 1e-9 * theirs);
      std::vector<double> out(each.horizon);
      theta_forecast(model, each.y, out);
      expect_equal(out, each.forecast(), "forecast");
    }
  }
}

TEST(Theta, ClassicFormEqualsTheOracle) {
  for (const Case& each : cases("theta_classic")) {
    SCOPED_TRACE(each.id);
    const Json& params = each.of("params");
    EXPECT_NEAR(slope_on_time(each.y), params.find("b0")->number(), 1e-9 * std::max(1.0, std::abs(params.find("b0")->number())));
    std::vector<double> out(each.horizon);
    theta_classic(each.y, params.find("alpha")->number(), params.find("b0")->number(), out);
    expect_equal(out, each.forecast(), "forecast");
  }
}

}  // namespace
}  // namespace kizzasi
