// A model in fewer bits: smaller, faster where memory is the limit, and measured before it is written.
#include <fmt/format.h>

#include <cmath>

#include "apps/cli/load.h"
#include "apps/cli/model_use.h"
#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/forecast/quantization_loss.h"
#include "kizzasi/io/file.h"
#include "kizzasi/model/quantize.h"
#include "kizzasi/tensor/quantized.h"

namespace kizzasi::cli {
namespace {

constexpr double kJudgedShare = 0.3;  // the last part of the recording: mostly what training did not see
constexpr std::size_t kMostForecasts = 200;

struct Ask {
  std::string model, out, precision, data;
  double most_loss = 1;
  bool unmeasured = false, resample = false;
  io::CsvOptions csv;
};

Result<kernels::Precision> check(const Ask& ask) {
  const auto bad = [](std::string what, std::string where, std::string expected, std::string hint = "") {
    return fail({Fault::kBadUse, std::move(what), std::move(where), std::move(expected), std::move(hint)});
  };
  if (ask.precision.empty()) return bad("nothing says what to convert to", "--quantize", "bf16, f16, int8 or int4");
  const auto precision = kernels::precision_from_name(ask.precision);
  if (!precision || *precision == kernels::Precision::kF32) {
    return bad(fmt::format("'{}' is no smaller precision", ask.precision), "--quantize", "bf16, f16, int8 or int4");
  }
  if (ask.data.empty() == !ask.unmeasured) {
    return bad(ask.unmeasured ? "it is given beside --data" : "there is no recording to measure the loss on",
               ask.unmeasured ? "--unmeasured" : "--data", "--data FILE, or --unmeasured to write the model without knowing");
  }
  if (!(ask.most_loss >= 0)) return bad(fmt::format("{} is out of range", ask.most_loss), "--most-loss", "per cent, 0 or more");
  return *precision;
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:+.2f} %", 100 * share) : "from none to some"; }

void print_loss(const QuantizationLoss& loss, std::string_view precision) {
  const bool spread = std::isfinite(loss.targets.front().exact_crps);
  std::vector<std::vector<std::string>> rows{{"target", "MAE f32", fmt::format("MAE {}", precision)}};
  if (spread) rows[0].insert(rows[0].end(), {"CRPS f32", fmt::format("CRPS {}", precision)});
  rows[0].push_back("moved by");
  for (const auto& target : loss.targets) {
    auto& row = rows.emplace_back(std::vector<std::string>{target.name, number_text(target.exact_mae), number_text(target.rounded_mae)});
    if (spread) row.insert(row.end(), {number_text(target.exact_crps), number_text(target.rounded_crps)});
    row.push_back(number_text(target.moved));
  }
  print(columns(rows));
  print(fmt::format("The error of {} forecasts changes by {} ({}).\n", loss.forecasts, percent(loss.loss), spread ? "CRPS" : "MAE"));
}

Json loss_json(const QuantizationLoss& loss) {
  Json json = Json::object();
  json["forecasts"] = loss.forecasts;
  json["loss"] = loss.loss;
  json["targets"] = Json::array();
  for (const auto& t : loss.targets) {
    json["targets"].push_back(Json::Object{{"name", t.name},
                                           {"mae_f32", t.exact_mae},
                                           {"mae", t.rounded_mae},
                                           {"crps_f32", t.exact_crps},
                                           {"crps", t.rounded_crps},
                                           {"moved", t.moved}});
  }
  return json;
}

}  // namespace

Result<int> convert(Options& options, const Context& context) {
  Ask ask;
  options.positional("MODEL", ask.model, "A model that train has written.");
  options.output("-o,--out FILE", ask.out, "Where the converted model goes.");
  options.option("--quantize PRECISION", ask.precision,
                 "What its weights are rounded to: bf16, f16, int8 or int4. State and sums stay f32.");
  options.option("--data FILE", ask.data, "A recording of the model's channels; the loss is measured on forecasts from its last 30 %.");
  options.option("--most-loss X", ask.most_loss, "Per cent by which the forecasts' error may rise; beyond that nothing is written.");
  options.flag("--unmeasured", ask.unmeasured, "Writes the model without measuring what it lost.");
  options.flag("--resample", ask.resample, "Brings the recording to the model's step where its own differs.");
  options.fields(ask.csv, "The file");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  const auto precision = check(ask);
  if (!precision) return fail(precision.error());
  if (ask.out.empty()) return fail({Fault::kBadUse, "nothing says where the model goes", "--out", "a file name", ""});

  auto file = read_model_file(ask.model);
  if (!file) return fail(file.error());
  auto exact = Predictor::make(*file, {}, ask.model);
  if (!exact) return fail(exact.error());
  if ((*exact)->model().packed().empty()) {
    return fail({Fault::kBadInput, "the model has no weights that may stand in fewer bits: it is a short-cut alone, exact and small",
                 ask.model, "a model with a backbone", ""});
  }
  auto rounded_weights = quantized(file->weights, (*exact)->model().packed(), *precision);
  if (!rounded_weights) return fail(rounded_weights.error());
  ModelFile small = *file;
  small.weights = std::move(*rounded_weights);
  auto rounded = Predictor::make(small, {}, ask.model);
  if (!rounded) return fail(rounded.error());

  Json answer = Json::object();
  std::size_t before = 0, after = 0;
  for (const auto& [name, tensor] : file->weights) before += stored_bytes(tensor);
  for (const auto& [name, tensor] : small.weights) after += stored_bytes(tensor);
  answer["precision"] = ask.precision;
  answer["weight_bytes_f32"] = before;
  answer["weight_bytes"] = after;
  if (!ask.unmeasured) {
    auto recording = read_for_model((*exact)->schema(), ask.data, ask.csv, {.some = false, .resample = ask.resample});
    if (!recording) return fail(recording.error());
    const auto loss = quantization_loss(*recording, *exact, *rounded, kJudgedShare, kMostForecasts);
    if (!loss) return fail(loss.error());
    const bool good = 100 * loss->loss <= ask.most_loss;
    answer["measured"] = loss_json(*loss);
    if (!context.json) print_loss(*loss, ask.precision);
    if (!good) {
      return fail({Fault::kBadInput, fmt::format("the error would rise by {}", percent(loss->loss)), ask.out,
                   fmt::format("at most {} %", ask.most_loss), "Choose more bits, or allow it with --most-loss. Nothing was written."});
    }
    small.training["quantized"] = Json::Object{{"precision", ask.precision}, {"loss", loss->loss}, {"forecasts", loss->forecasts}};
  } else {
    small.training["quantized"] = Json::Object{{"precision", ask.precision}, {"loss", nullptr}};
  }
  if (auto written = write_model_file(ask.out, small); !written) return fail(written.error());
  answer["written"] = ask.out;
  if (context.json) {
    print_json(answer);
  } else {
    print(fmt::format("{}: {} in {}, {} KiB of weights instead of {}.\n", ask.out, ask.model, ask.precision, (after + 512) / 1024,
                      (before + 512) / 1024));
  }
  return 0;
}

}  // namespace kizzasi::cli
