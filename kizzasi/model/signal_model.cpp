#include "kizzasi/model/signal_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/fused.h"
#include "kizzasi/model/signal_parts.h"

namespace kizzasi {
namespace {

// Hands out pieces of the caller's scratch, each on a 64-byte boundary.
class Scratch {
 public:
  explicit Scratch(std::span<float> all) : next_(all.data()), end_(all.data() + all.size()) {
    const auto address = std::bit_cast<std::uintptr_t>(next_);
    next_ += (64 - address % 64) % 64 / sizeof(float);
  }
  std::span<float> take(std::size_t n) noexcept {
    const std::span<float> piece(next_, n);
    next_ += padded(n);
    return piece;
  }
  std::span<float> rest() const noexcept { return {next_, static_cast<std::size_t>(end_ - next_)}; }
  static constexpr std::size_t padded(std::size_t n) noexcept { return (n + 15) / 16 * 16; }

 private:
  float* next_;
  float* end_;
};

// The ring of one stream as a past (signal_features.h), in periods of the training data; between two frames on the line that joins them.
struct RingPast {
  const float* values;
  const std::uint8_t* absent;
  std::size_t ring, channels;
  std::uint64_t frames;
  Sampling sampling;

  bool seen(std::size_t back) const noexcept {
    const std::size_t frame = sampling.frames_back(back);
    return frame < frames && frame < ring;
  }
  float value(std::size_t back, std::size_t channel) const noexcept {
    const std::size_t after = sampling.slower == 1 ? back * sampling.faster : back / sampling.slower, rest = back % sampling.slower;
    const float newer = values[place(after) + channel];
    if (rest == 0) return newer;
    return newer + (values[place(after + 1) + channel] - newer) * static_cast<float>(rest) / static_cast<float>(sampling.slower);
  }
  bool missing(std::size_t back, std::size_t channel) const noexcept {
    const std::size_t frame = sampling.frames_back(back);
    return absent[place(frame) + channel] != 0 || (back % sampling.slower != 0 && absent[place(frame - 1) + channel] != 0);
  }

 private:
  std::size_t place(std::size_t frame) const noexcept { return static_cast<std::size_t>((frames - 1 - frame) % ring) * channels; }
};

template <typename T>
const T* field(std::span<const std::byte> state, std::size_t offset) noexcept {
  return reinterpret_cast<const T*>(state.data() + offset);
}
template <typename T>
T* field(std::span<std::byte> state, std::size_t offset) noexcept {
  return reinterpret_cast<T*>(state.data() + offset);
}

}  // namespace

const ModelConfig& SignalModel::config() const noexcept { return parts_->config; }
ChannelCounts SignalModel::counts() const noexcept { return parts_->counts; }
const SignalShape& SignalModel::shape() const noexcept { return parts_->shape; }
const Sampling& SignalModel::sampling() const noexcept { return parts_->sampling; }
std::size_t SignalModel::parameter_count() const noexcept { return parts_->weights; }
const PackedNames& SignalModel::packed() const noexcept { return parts_->packed; }
std::size_t SignalModel::weight_bytes() const noexcept { return parts_->weight_bytes; }
const StateLayout& SignalModel::layout() const noexcept { return parts_->layout; }
std::size_t SignalModel::scratch_floats() const noexcept { return parts_->scratch; }

void SignalModel::reset(std::span<std::byte> state) const noexcept {
  const Parts& p = *parts_;
  std::fill(state.begin(), state.end(), std::byte{0});
  if (p.lane_stride == 0) return;
  for (std::size_t lane = 0; lane < p.shape.lanes; ++lane) p.backbone->reset(state.subspan(lane * p.lane_stride, p.lane_stride));
}

namespace {

// Writes one frame into the ring, filled where it is missing; returns nothing, since the newest frame is then at back 0.
void enter(const SignalShape& shape, std::size_t ring, std::size_t channels, float* values, std::uint8_t* absent, std::uint64_t& frames,
           std::span<const float> frame) noexcept {
  const std::size_t here = static_cast<std::size_t>(frames % ring) * channels;
  const std::size_t kept = static_cast<std::size_t>(std::min<std::uint64_t>(frames, ring - 1));
  for (std::size_t c = 0; c < channels; ++c) {
    const bool missing = std::isnan(frame[c]);
    const auto before = [&](std::size_t back) { return values[static_cast<std::size_t>((frames - back) % ring) * channels + c]; };
    values[here + c] = missing ? filled(shape, kept, before) : frame[c];
    absent[here + c] = missing ? 1 : 0;
  }
  ++frames;
}

}  // namespace

void SignalModel::push(std::span<std::byte> state, std::span<const float> frame, float dt, std::span<float> scratch) const noexcept {
  push_rows(state, {frame.data(), 1, frame.size()}, dt, scratch);
}

void SignalModel::push_rows(std::span<std::byte> state, kernels::MatrixView frames, float dt, std::span<float> scratch) const noexcept {
  const Parts& p = *parts_;
  const SignalShape& s = p.shape;
  const std::size_t channels = p.counts.inputs();
  float* values = field<float>(state, p.values_at);
  auto* absent = field<std::uint8_t>(state, p.missing_at);
  std::uint64_t& count = *field<std::uint64_t>(state, p.frames_at);
  if (p.lane_stride == 0) {  // windowed, or no backbone: the ring is all
    for (std::size_t r = 0; r < frames.rows; ++r) enter(p.filling, p.ring, channels, values, absent, count, frames.row(r));
    return;
  }

  Scratch take(scratch);
  const std::size_t block = kRunRows * s.lanes;
  const auto zeros = take.take(s.inputs()), ones = take.take(s.inputs());
  std::fill(zeros.begin(), zeros.end(), 0.0f);
  std::fill(ones.begin(), ones.end(), 1.0f);
  const auto vectors = take.take(block * s.vector()), embedded = take.take(block * s.d_model), out = take.take(block * s.d_model);
  const std::size_t lanes_at_once = std::min(s.lanes, kRunRows);
  float* hidden = field<float>(state, p.hidden_at);
  for (std::size_t begin = 0; begin < frames.rows; begin += kRunRows) {
    const std::size_t rows = std::min(kRunRows, frames.rows - begin);
    for (std::size_t r = 0; r < rows; ++r) {
      enter(p.filling, p.ring, channels, values, absent, count, frames.row(begin + r));
      const RingPast past{values, absent, p.ring, channels, count, p.sampling};
      for (std::size_t lane = 0; lane < s.lanes; ++lane) {
        embed_input(s, past, lane, 0, zeros, ones, vectors.subspan((lane * rows + r) * s.vector(), s.vector()));
      }
    }
    kernels::linear(p.embed, {vectors.data(), s.lanes * rows, s.vector()}, p.embed_bias, {embedded.data(), s.lanes * rows, s.d_model});
    if (rows == 1) {
      // One frame: all lanes together, so that the weights are read once.
      for (std::size_t lane = 0; lane < s.lanes; lane += lanes_at_once) {
        const std::size_t n = std::min(lanes_at_once, s.lanes - lane);
        std::array<Lane, kRunRows> group;
        for (std::size_t i = 0; i < n; ++i) group[i] = {state.data() + (lane + i) * p.lane_stride, dt};
        p.backbone->step({group.data(), n}, {embedded.data() + lane * s.d_model, n, s.d_model},
                         {out.data() + lane * s.d_model, n, s.d_model}, take.rest());
      }
      std::copy_n(out.data(), s.lanes * s.d_model, hidden);
      continue;
    }
    for (std::size_t lane = 0; lane < s.lanes; ++lane) {
      const Lane one{state.data() + lane * p.lane_stride, dt};
      float* first = embedded.data() + lane * rows * s.d_model;
      float* result = out.data() + lane * rows * s.d_model;
      p.backbone->run(one, {first, rows, s.d_model}, {result, rows, s.d_model}, take.rest());
      std::copy_n(result + (rows - 1) * s.d_model, s.d_model, hidden + lane * s.d_model);
    }
  }
}

void SignalModel::Parts::shortcut(std::span<const float> recent_past, std::span<const float> ahead, std::size_t first, std::size_t count,
                                  std::span<float> all, std::span<float> location) const noexcept {
  const SignalShape& s = shape;
  const std::size_t features = s.slots() + s.known, n = count * s.targets;
  if (!s.has_shortcut) {
    std::fill_n(location.begin(), n, 0.0f);
    return;
  }
  // One step alone reads only its own weights; otherwise all are computed, and those asked for are taken.
  const bool one = first == 0 && count == 1;
  const auto bias = std::span<const float>(shortcut_bias).first(one ? s.targets : s.horizon * s.targets);
  kernels::linear(one ? recent_first : recent_all, {recent_past.data(), 1, recent_past.size()}, bias, {all.data(), 1, bias.size()});
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = first * s.targets + i, step = i / s.targets, target = i % s.targets;
    float sum = all[at];
    for (std::size_t k = 0; k < s.seasons; ++k) sum += shortcut_slots[at * s.seasons + k] * ahead[step * features + k * s.past() + target];
    for (std::size_t f = 0; f < s.known; ++f) sum += shortcut_known[at * s.known + f] * ahead[step * features + s.slots() + f];
    location[i] = sum;
  }
}

void SignalModel::locate(const SignalBatch& batch, std::span<float> location, std::span<float> scale) const {
  const Parts& p = *parts_;
  const SignalShape& s = p.shape;
  const std::size_t n = batch.windows * batch.origins, recent = s.recent * s.past(), ahead = s.horizon * (s.slots() + s.known);
  const std::size_t outputs = s.horizon * s.targets;
  std::vector<float> all(outputs);
  for (std::size_t i = 0; i < n; ++i) {
    p.shortcut(std::span(batch.recent).subspan(i * recent, recent), std::span(batch.ahead).subspan(i * ahead, ahead), 0, s.horizon, all,
               location.subspan(i * outputs, outputs));
  }
  std::copy(p.head_scale.begin(), p.head_scale.end(), scale.begin());
}

void SignalModel::predict(std::span<const std::byte> state, std::span<const float> known, std::size_t first, std::size_t count,
                          std::span<float> params, std::span<float> anchor, std::span<float> spread,
                          std::span<float> scratch) const noexcept {
  const Parts& p = *parts_;
  const SignalShape& s = p.shape;
  const RingPast past{field<float>(state, p.values_at),
                      field<std::uint8_t>(state, p.missing_at),
                      p.ring,
                      p.counts.inputs(),
                      *field<std::uint64_t>(state, p.frames_at),
                      p.sampling};
  Scratch take(scratch);
  const std::size_t features = s.slots() + s.known;
  const auto lane_anchor = take.take(s.inputs()), lane_spread = take.take(s.inputs());
  const auto recent = take.take(s.recent * s.past()), all = take.take(s.horizon * s.targets), location = take.take(s.horizon * s.targets);
  const auto slots = take.take(s.horizon * features);
  const auto context = take.take(s.decoder), u = take.take(s.horizon * s.decoder), v = take.take(s.horizon * s.decoder);
  const auto decoded = take.take(s.horizon * s.outputs());
  const auto hidden = take.take(s.d_model);

  for (std::size_t lane = 0; lane < s.lanes; ++lane) {
    std::fill(lane_anchor.begin(), lane_anchor.end(), 0.0f);
    std::fill(lane_spread.begin(), lane_spread.end(), 1.0f);
    for (std::size_t i = 0; i < s.past(); ++i) window_scale(s, p.norm, past, s.channel(lane, i), lane_anchor[i], lane_spread[i]);

    for (std::size_t h = 0; h < count; ++h) {
      const auto row = slots.subspan(h * features, features);
      slot_input(s, past, lane, first + h + 1, lane_anchor, lane_spread, row.first(s.slots()));
      for (std::size_t f = 0; f < s.known; ++f) {
        const float value = known[(first + h) * s.known + f];
        row[s.slots() + f] = std::isnan(value) ? 0.0f : value;
      }
    }

    if (s.has_backbone) {
      if (s.windowed) {
        Scratch window(take.rest());
        const std::size_t rows = s.rows();
        const auto vectors = window.take(rows * s.vector()), embedded = window.take(rows * s.d_model), out = window.take(rows * s.d_model);
        const auto fresh = std::as_writable_bytes(window.take(p.backbone->layout().bytes() / sizeof(float) + 16));
        for (std::size_t r = 0; r < rows; ++r) {
          embed_input(s, past, lane, (rows - 1 - r) * s.patch, lane_anchor, lane_spread, vectors.subspan(r * s.vector(), s.vector()));
        }
        kernels::linear(p.embed, {vectors.data(), rows, s.vector()}, p.embed_bias, {embedded.data(), rows, s.d_model});
        p.backbone->reset(fresh);
        p.backbone->run({fresh.data(), 1.0f}, {embedded.data(), rows, s.d_model}, {out.data(), rows, s.d_model}, window.rest());
        std::copy_n(out.data() + (rows - 1) * s.d_model, s.d_model, hidden.data());
      } else {
        std::copy_n(field<float>(state, p.hidden_at) + lane * s.d_model, s.d_model, hidden.data());
      }
      kernels::linear(p.decoder_context, {hidden.data(), 1, s.d_model}, p.decoder_bias, {context.data(), 1, s.decoder});
      if (features > 0) {
        kernels::linear(p.decoder_slots, {slots.data(), count, features}, {}, {u.data(), count, s.decoder});
      } else {
        std::fill_n(u.data(), count * s.decoder, 0.0f);
      }
      for (std::size_t h = 0; h < count; ++h) {
        for (std::size_t j = 0; j < s.decoder; ++j) u[h * s.decoder + j] += context[j] + p.decoder_step[(first + h) * s.decoder + j];
      }
      kernels::silu(u.first(count * s.decoder), u.first(count * s.decoder));
      kernels::linear_then(p.decoder_mix, {u.data(), count, s.decoder}, p.decoder_mix_bias, kernels::silu, {v.data(), count, s.decoder});
      for (std::size_t j = 0; j < count * s.decoder; ++j) v[j] += u[j];
      kernels::linear(p.decoder_out, {v.data(), count, s.decoder}, {}, {decoded.data(), count, s.outputs()});
    } else {
      std::fill_n(decoded.data(), count * s.outputs(), 0.0f);
    }
    for (std::size_t j = 0; j < count * s.outputs(); ++j) decoded[j] += p.head_bias[first * s.outputs() + j];

    recent_input(s, past, lane, lane_anchor, lane_spread, recent);
    p.shortcut(recent, slots, first, count, all, location);
    for (std::size_t h = 0; h < count; ++h) {
      for (std::size_t o = 0; o < s.targets; ++o) {
        const std::size_t target = s.lanes == 1 ? o : lane, at = h * p.counts.targets + target;
        anchor[at] = location[h * s.targets + o] * lane_spread[o] + lane_anchor[o];
        spread[at] = p.head_scale[(first + h) * s.targets + o] * lane_spread[o];
        std::copy_n(decoded.data() + h * s.outputs() + o * s.parameters, s.parameters, params.data() + at * s.parameters);
      }
    }
  }
}

}  // namespace kizzasi
