// usage: kizzasi_history [STEPS] [silent]
// Does a step cost more after a long history? For each backbone one session of STEPS frames (a million by default); its last tenth goes
// through in turns with the first tenth of a fresh session, so that both meet the same moments of the machine. Exit 1 where the old one is
// slower by more than a tenth, by the lower quartile of short blocks: what else the machine does only adds. `silent`: the old session hears
// nothing but zeros after its first hundred frames, the fresh one goes on hearing the signal.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/engine/session.h"
#include "kizzasi/model/architectures.h"

namespace {

using namespace kizzasi;

constexpr std::size_t kBlock = 50;
constexpr double kMostGrowth = 1.1;

std::shared_ptr<const Predictor> small_model(const Architecture& architecture) {
  ModelFile model;
  model.config.backbone.architecture = std::string(architecture.name);
  model.config.backbone.d_model = 32;
  model.config.backbone.n_layers = 2;
  model.config.backbone.head_dim = 8;
  model.config.context = 64;
  model.config.season = 24;
  model.config.seasons = 7;
  model.config.recent = 8;
  model.schema = {{{"a", "", Role::kTarget}, {"b", "", Role::kTarget}, {"c", "", Role::kObserved}}, 1'000'000'000, ""};
  model.normalizer = Normalizer({0, 0, 0}, {1, 1, 1});
  model.weights = SignalModel::initial_weights(model.config, channel_counts(model.schema), Rng(1));
  PredictorOptions options;
  options.constraints = {{"range", "-1 <= a <= 1"}, {"slew", "abs(rate(b)) <= 0.5 [1/s]"}};
  auto made = Predictor::make(std::move(model), std::move(options));
  if (made) return *made;
  std::fprintf(stderr, "%s\n", made.error().text().c_str());
  std::exit(2);
}

// A session and how many frames it has seen.
struct Run {
  explicit Run(std::shared_ptr<const Predictor> predictor, std::size_t loud_frames = ~std::size_t{0})
      : session(Session::prepare(std::move(predictor))), loud(loud_frames) {}

  void block() {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kBlock; ++i, ++frames) {
      const double phase = static_cast<double>(frames % 24) / 24;
      const double level = frames < loud ? 1 : 0;
      const double values[] = {level * std::sin(6.28 * phase), level * std::cos(6.28 * phase), level * phase};
      session.step({static_cast<std::int64_t>(frames) * 1'000'000'000, values});
    }
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  double quartile_us() {
    const auto place = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 4);
    std::nth_element(seconds.begin(), place, seconds.end());
    return 1e6 * *place / kBlock;
  }

  Session session;
  std::size_t loud;
  std::size_t frames = 0;
  std::vector<double> seconds;  // of each block
};

}  // namespace

int main(int count, char** words) {
  const std::size_t steps = std::max<std::size_t>(10 * kBlock, count > 1 ? std::strtoull(words[1], nullptr, 10) : 1'000'000);
  const bool silent = count > 2 && std::string_view(words[2]) == "silent";
  bool good = true;
  for (const Architecture& architecture : architectures()) {
    const auto predictor = small_model(architecture);
    Run old(predictor, silent ? 2 * kBlock : ~std::size_t{0}), fresh(predictor);
    while (old.frames < steps - steps / 10) old.block();
    old.seconds.clear();
    while (old.frames < steps) {
      const bool old_first = (old.frames / kBlock) % 2 == 0;
      (old_first ? old : fresh).block();
      (old_first ? fresh : old).block();
    }
    const double first = fresh.quartile_us(), last = old.quartile_us();
    good = good && last <= kMostGrowth * first;
    std::printf("%-14s %zu steps: fresh %.2f us a step, last tenth %.2f us, ratio %.3f\n", std::string(architecture.name).c_str(),
                old.frames, first, last, last / first);
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}
