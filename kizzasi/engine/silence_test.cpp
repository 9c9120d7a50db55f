// A stream that falls silent: its memory fades to nothing, and the numbers on the way there must not slow the steps. Denormals, on which
// some machines compute many times slower, never enter a state. KIZZASI_STEPS sets the silent frames (a million where it is said so; each
// step is as the one before).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "kizzasi/engine/random_model_test.h"
#include "kizzasi/engine/session.h"
#include "kizzasi/model/architectures.h"

namespace kizzasi {
namespace {

std::size_t silent_frames() {
  const char* wanted = std::getenv("KIZZASI_STEPS");
  return wanted == nullptr ? 4000 : std::strtoull(wanted, nullptr, 10);
}

ModelFile model_of(std::string_view architecture) {
  ModelFile m;
  ModelConfig& c = m.config;
  c.backbone.architecture = std::string(architecture);
  c.backbone.d_model = 16;
  c.backbone.n_layers = 2;
  c.backbone.d_state = 4;
  c.backbone.head_dim = 4;
  c.backbone.window = 16;
  c.windowed = false;
  c.patch = 1;
  c.recent = 4;
  c.horizon = 1;
  c.d_decoder = 8;
  c.head.kind = "point";
  m.schema.step_ns = 1'000'000;
  m.schema.channels = {{"x", "", Role::kTarget}};
  m.normalizer = Normalizer({0.0}, {1.0});
  m.weights = SignalModel::initial_weights(c, channel_counts(m.schema), Rng(1));
  for (auto& [name, tensor] : m.weights) {
    // Silence is zero all the way to the states: what is added to it would keep them alive.
    if (!name.ends_with("bias")) continue;
    std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
  }
  return m;
}

struct Numbers {
  std::size_t denormal = 0, finite = 0, live = 0;  // live: neither zero nor denormal
};

Numbers numbers_of(const Session& session) {
  Numbers n;
  const StateLayout& layout = session.predictor().model().layout();
  for (const StateField& field : layout.fields()) {
    if (field.type != FieldType::kF32) continue;
    const auto* values = reinterpret_cast<const float*>(session.state().data() + field.offset);
    for (std::size_t i = 0; i < elements(field.shape); ++i) {
      n.denormal += std::fpclassify(values[i]) == FP_SUBNORMAL ? 1 : 0;
      n.finite += std::isfinite(values[i]) ? 1 : 0;
      n.live += std::isnormal(values[i]) ? 1 : 0;
    }
  }
  return n;
}

TEST(Silence, LeavesNoDenormalInTheStateOfAnyBackbone) {
  const std::size_t frames = silent_frames();
  std::size_t faded = 0;
  for (const Architecture& architecture : architectures()) {
    Session session = Session::prepare(predictor_of(model_of(architecture.name)));
    Rng rng(5);
    std::int64_t time = 0;
    const auto step = [&](double value) {
      const double values[] = {value};
      return session.step({time += 1'000'000, values}).status;
    };
    for (int i = 0; i < 100; ++i) step(rng.normal());
    const Numbers noise = numbers_of(session);
    EXPECT_GT(noise.live, 0u) << architecture.name;
    std::size_t least = noise.live;
    for (std::size_t i = 0; i < frames; ++i) {
      ASSERT_EQ(step(0), StepStatus::kOk) << architecture.name;
      // Often at first, when fast states pass below the normal numbers, then at every so-many-th frame.
      if (i % (i < 1000 ? 1 : 97) != 0 && i + 1 != frames) continue;
      const Numbers n = numbers_of(session);
      ASSERT_EQ(n.denormal, 0u) << architecture.name << " after " << i + 1 << " silent frames";
      ASSERT_EQ(n.finite, noise.finite) << architecture.name;
      least = std::min(least, n.live);
    }
    faded += least < noise.live ? 1 : 0;
  }
  EXPECT_GT(faded, architectures().size() / 2);  // or nothing was on its way to zero
}

}  // namespace
}  // namespace kizzasi
