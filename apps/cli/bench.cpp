// Speed on this machine.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/base/clock.h"

namespace kizzasi::cli {
namespace {

struct Bandwidth {
  std::size_t bytes = 0;  // of the block that is read again and again
  double gb_per_s = 0;    // the best of several tries
};

// Reads a block of floats in eight independent sums, so that adding does not hold the reading up.
float read_block(const std::vector<float>& block) {
  constexpr std::size_t kSums = 64;
  float sums[kSums] = {};
  for (std::size_t i = 0; i + kSums <= block.size(); i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += block[i + j];
  }
  return std::accumulate(std::begin(sums), std::end(sums), 0.0F);
}

Bandwidth measure_bandwidth(std::size_t bytes, double seconds, const Clock& clock) {
  const std::vector<float> block(bytes / sizeof(float), 1.0F);
  Bandwidth result{bytes, 0};
  volatile float sink = read_block(block);
  const double end = clock.seconds() + seconds;
  const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{16} << 20) / bytes);
  do {
    const double before = clock.seconds();
    for (std::size_t r = 0; r < repeats; ++r) sink = sink + read_block(block);
    const double took = clock.seconds() - before;
    result.gb_per_s = std::max(result.gb_per_s, static_cast<double>(bytes * repeats) / took * 1e-9);
  } while (clock.seconds() < end);
  return result;
}

}  // namespace

Result<int> bench(Options& options, const Context& context) {
  double seconds = 4;
  options.option("--seconds", seconds, "How long to measure, all in all.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  if (!(seconds > 0 && seconds <= 3600)) {
    return fail({Fault::kBadUse, fmt::format("{} is out of range", seconds), "--seconds", "more than 0 and at most 3600", ""});
  }
  const SteadyClock clock;
  constexpr std::size_t kSizes[] = {std::size_t{16} << 10, std::size_t{256} << 10, std::size_t{4} << 20, std::size_t{64} << 20};
  Json answer = Json::object();
  std::vector<std::vector<std::string>> rows{{"block read", "GB/s"}};
  for (const std::size_t bytes : kSizes) {
    const Bandwidth found = measure_bandwidth(bytes, seconds / std::size(kSizes), clock);
    Json row = Json::object();
    row["bytes"] = found.bytes;
    row["gb_per_s"] = found.gb_per_s;
    answer["bandwidth"].push_back(std::move(row));
    rows.push_back({fmt::format("{} KiB", bytes >> 10), number_text(found.gb_per_s)});
  }
  if (context.json) {
    print_json(answer);
  } else {
    print(columns(rows));
  }
  return 0;
}

}  // namespace kizzasi::cli
