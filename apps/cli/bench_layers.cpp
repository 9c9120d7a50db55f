#include "apps/cli/bench_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/print.h"
#include "kizzasi/base/clock.h"
#include "kizzasi/kernels/core_limits.h"
#include "kizzasi/model/model_file.h"
#include "kizzasi/model/signal_model.h"

namespace kizzasi::cli {
namespace {

struct Row {
  LayerCost cost;
  double limit = 0;  // seconds: its bytes at this core's bandwidth, or its products at this core's speed, whichever takes longer
  double score = 0;  // per cent of the whole step that would be saved if this ran at its limit
};

Json to_json(const Row& row) {
  return Json::Object{{"layer", row.cost.name},
                      {"weight_bytes", row.cost.weight_bytes},
                      {"state_bytes", row.cost.state_bytes},
                      {"multiply_adds", row.cost.multiply_adds},
                      {"us", row.cost.seconds * 1e6},
                      {"slow_us", row.cost.slow_seconds * 1e6},
                      {"limit_us", row.limit * 1e6},
                      {"score", row.score}};
}

}  // namespace

Result<int> bench_layers(const std::string& path, double seconds, const Context& context) {
  auto file = read_model_file(path);
  if (!file) return fail(file.error());
  const auto model = SignalModel::load(file->config, channel_counts(file->schema), file->weights);
  if (!model) return fail(model.error());
  const SteadyClock clock;
  const double before = clock.seconds();
  model->profile(clock, 10);
  const double once = std::max((clock.seconds() - before) / 10, 1e-7);
  const auto rounds = static_cast<std::size_t>(std::clamp(seconds / once, 10.0, 1e6));
  const std::vector<LayerCost> costs = model->profile(clock, rounds);

  const double touched = static_cast<double>(model->weight_bytes() + 2 * model->layout().bytes());
  const double bandwidth = kernels::read_bytes_per_second(std::vector<float>(static_cast<std::size_t>(touched) / sizeof(float) + 1, 1.0f));
  const double flops = kernels::fused_flops_per_second();
  std::vector<Row> rows;
  double total = 0;
  for (const LayerCost& cost : costs) {
    const double moved = static_cast<double>(cost.weight_bytes + 2 * cost.state_bytes) / bandwidth;
    rows.push_back({cost, std::max(moved, 2 * static_cast<double>(cost.multiply_adds) / flops), 0});
    total += cost.seconds;
  }
  for (Row& row : rows) row.score = total > 0 ? std::max(0.0, 100 * (row.cost.seconds - row.limit) / total) : 0;

  if (context.json) {
    Json answer = Json::object();
    answer["model"] = path;
    answer["rounds"] = rounds;
    answer["step_us"] = total * 1e6;
    answer["gb_per_s"] = bandwidth * 1e-9;
    answer["gflop_per_s"] = flops * 1e-9;
    answer["layers"] = Json::array();
    for (const Row& row : rows) answer["layers"].push_back(to_json(row));
    print_json(answer);
    return 0;
  }
  std::vector<std::vector<std::string>> table{
      {"layer", "weights KiB", "state KiB", "multiply-adds", "us", "share %", "99 % us", "limit us", "score"}};
  for (const Row& row : rows) {
    table.push_back({row.cost.name, fmt::format("{:.1f}", static_cast<double>(row.cost.weight_bytes) / 1024),
                     fmt::format("{:.1f}", static_cast<double>(row.cost.state_bytes) / 1024), fmt::format("{}", row.cost.multiply_adds),
                     fmt::format("{:.2f}", row.cost.seconds * 1e6), fmt::format("{:.0f}", 100 * row.cost.seconds / total),
                     fmt::format("{:.2f}", row.cost.slow_seconds * 1e6), fmt::format("{:.2f}", row.limit * 1e6),
                     fmt::format("{:.0f}", row.score)});
  }
  print(columns(table));
  const auto worst = std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.score < b.score; });
  print(fmt::format(
      "\nA frame takes {:.1f} us, median of {} rounds. score: per cent of it that would be saved if a layer ran at its limit, what its\n"
      "bytes and products take at least on this core ({:.1f} GB/s, {:.0f} Gflop/s). The bottleneck is {}.\n",
      total * 1e6, rounds, bandwidth * 1e-9, flops * 1e-9, worst->cost.name));
  return 0;
}

}  // namespace kizzasi::cli
