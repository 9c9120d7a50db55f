#include "apps/cli/plan.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "apps/cli/model_use.h"
#include "kizzasi/data/prepare.h"

namespace kizzasi::cli {

void declare_future(Options& options, std::string& file) {
  options.option("--plan,--future FILE", file,
                 "A recording of what is known of the future: known-future and observed channels, with times, or counted from the first "
                 "predicted row.");
}

Result<Plan> Plan::read(const std::string& path, const Predictor& predictor, const io::CsvOptions& csv) {
  Plan plan;
  if (path.empty()) return plan;
  Schema wanted = predictor.schema();
  std::erase_if(wanted.channels, [](const Channel& channel) { return channel.role == Role::kTarget; });
  if (wanted.channels.empty()) {
    return fail({Fault::kBadUse, "the model reads nothing that a plan could give", "--future",
                 "a model with observed or known-future channels", "Leave the plan out."});
  }
  auto series = read_for_model(wanted, path, csv, {.some = true, .resample = true});
  if (!series) return fail(series.error());
  if (series->size() != 1) return fail({Fault::kBadInput, fmt::format("the plan holds {} series", series->size()), path, "one", ""});
  plan.series_ = std::move(series->front());
  return plan;
}

double Plan::at(const std::string& channel, std::int64_t time_ns, std::size_t step) const {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const auto column = series_.schema.index_of(channel);
  if (!column) return kNothing;
  std::size_t row = step;
  if (series_.start_ns != 0 && series_.schema.step_ns != 0) {
    const std::int64_t since = time_ns - series_.start_ns, step_ns = series_.schema.step_ns;
    if (since < 0) return kNothing;
    row = static_cast<std::size_t>((since + step_ns / 2) / step_ns);
    if (data::row_time(series_, row) != time_ns) return kNothing;
  }
  return row < series_.rows() ? series_.at(row, *column) : kNothing;
}

}  // namespace kizzasi::cli
