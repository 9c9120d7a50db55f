#include "kizzasi/model/architectures.h"

#include <array>
#include <string>
#include <vector>

#include "kizzasi/base/suggest.h"
#include "kizzasi/model/attention/transformer.h"
#include "kizzasi/model/convolution/wavenet.h"
#include "kizzasi/model/gated/lstm.h"
#include "kizzasi/model/gated/mingru.h"
#include "kizzasi/model/griffin/griffin.h"
#include "kizzasi/model/hybrid/hybrid.h"
#include "kizzasi/model/linear_attention/deltanet.h"
#include "kizzasi/model/linear_attention/gla.h"
#include "kizzasi/model/linear_attention/hgrn.h"
#include "kizzasi/model/linear_attention/retnet.h"
#include "kizzasi/model/mamba.h"
#include "kizzasi/model/mamba2.h"
#include "kizzasi/model/rwkv/rwkv4.h"
#include "kizzasi/model/rwkv/rwkv5.h"
#include "kizzasi/model/rwkv/rwkv7.h"
#include "kizzasi/model/s4d.h"
#include "kizzasi/model/stack.h"
#include "kizzasi/model/state_space/dss.h"
#include "kizzasi/model/state_space/h3.h"
#include "kizzasi/model/state_space/lru.h"
#include "kizzasi/model/state_space/s4.h"
#include "kizzasi/model/state_space/s5.h"
#include "kizzasi/model/xlstm/mlstm.h"
#include "kizzasi/model/xlstm/mlstm_block.h"
#include "kizzasi/model/xlstm/slstm.h"

namespace kizzasi {
namespace {

template <const StackForm& kForm>
constexpr Architecture stack(std::string_view name, std::string_view summary) {
  return {name,
          summary,
          [](const BackboneConfig& config, std::string_view where) { return check_stack(kForm, config, where); },
          [](const BackboneConfig& config) { return stack_shapes(kForm, config); },
          [](const BackboneConfig& config) { return stack_parameters(kForm, config); },
          [](const BackboneConfig& config, Rng rng) { return initial_stack(kForm, config, rng); },
          [](const BackboneConfig& config, const NamedTensors& weights) { return load_stack(kForm, config, weights); }};
}

// Blocks of one layer after an RMS norm.
template <const LayerKind& kKind>
constexpr Sublayer kAlone{"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kKind; }};
template <const LayerKind& kKind>
constexpr StackForm kStackOf{{&kAlone<kKind>, 1}};
template <const LayerKind& kKind>
constexpr Architecture stack_of(std::string_view name, std::string_view summary) {
  return stack<kStackOf<kKind>>(name, summary);
}

constexpr Architecture in_time(Architecture architecture) {
  architecture.in_time = true;
  return architecture;
}

// To add one: its file, its line here, its page in docs/backbones.
constexpr std::array kArchitectures = std::to_array<Architecture>({
    in_time(stack_of<kMamba2Layer>("mamba2", "selective, matrix state per head: the default")),
    in_time(stack_of<kMambaLayer>("mamba", "selective, a step size for every channel")),
    in_time(stack_of<kFalconMambaLayer>("falcon_mamba", "mamba with normalised dt, B and C")),
    in_time(stack_of<kS4dLayer>("s4d", "linear and time-invariant, complex states: smooth dynamics, any sampling rate")),
    in_time(stack_of<kS4Layer>("s4", "s4d with all states of a channel coupled: a memory of the whole past from the start")),
    in_time(stack_of<kDssLayer>("dss", "s4d with one spectrum for all channels")),
    in_time(stack_of<kS5Layer>("s5", "s4d's system with all channels in and out of one state")),
    in_time(stack_of<kLruLayer>("lru", "linear, stable by construction, one complex state for all channels")),
    in_time(stack_of<kH3Layer>("h3", "a shift register and a diagonal system between products: recall at the cost of linear systems")),
    stack_of<kMinGruLayer>("mingru", "gates that see the input alone, one number a channel"),
    stack_of<kMinLstmLayer>("minlstm", "mingru with gates to keep and to take, normalised"),
    stack_of<kGruLayer>("gru", "gates that see the input and the last output"),
    stack_of<kLstmLayer>("lstm", "gru with a memory beside the output"),
    stack<kRwkv4>("rwkv4", "an average of all frames, weighted by content and age"),
    stack<kRwkv50>("rwkv5_0", "a matrix a head, one decay for each"),
    stack<kRwkv51>("rwkv5_1", "rwkv5_0 with a gate"),
    stack<kRwkv52>("rwkv5_2", "rwkv5_1 with a decay for every channel"),
    stack<kRwkv6>("rwkv6", "rwkv5_2 with decays and mixing that follow the frame"),
    stack<kRwkv7>("rwkv7", "a matrix a head that takes back what it had stored"),
    stack<kGriffin>("griffin", "gated linear recurrence, every third block local attention"),
    stack<kHawk>("hawk", "gated linear recurrence alone"),
    stack<kXlstm>("xlstm", "a matrix a head behind exponential gates (mLSTM)"),
    stack<kMlstmStack>("mlstm", "xlstm's cell between projections up and down, its first form"),
    stack<kSlstmStack>("slstm", "a cell a channel behind exponential gates, with a recurrence in each head"),
    stack<kLlama>("llama", "attention over a window, rotary positions, gated feed-forward"),
    stack<kMixtral>("mixtral", "llama with a choice of feed-forward experts"),
    stack<kGpt2>("gpt2", "attention over a window, learned positions"),
    stack<kJamba>("jamba", "mamba, attention in some blocks, a choice of feed-forward experts in others"),
    stack<kBamba>("bamba", "mamba2 and attention"),
    stack<kQwen3Next>("qwen3_next", "gated_deltanet and gated attention"),
    stack_of<kRetNetLayer>("retnet", "linear attention, heads of fixed memory from short to long"),
    stack_of<kGlaLayer>("gla", "linear attention, every key forgets as its gate says"),
    stack_of<kHgrnLayer>("hgrn", "one number a channel, gates whose memory grows with depth"),
    stack_of<kHgrn2Layer>("hgrn2", "hgrn with a matrix state per head"),
    stack_of<kDeltaNetLayer>("deltanet", "a matrix state that replaces what it had stored under a key"),
    stack_of<kGatedDeltaNetLayer>("gated_deltanet", "deltanet that can also forget: recall of what was seen"),
    stack<kWaveNet>("wavenet", "gated convolutions whose taps stand further and further apart: the last frames, exactly"),
});

// Widths, states and layers of the named sizes, the same for every architecture.
struct Size {
  std::string_view name;
  std::int64_t d_model, d_state, n_layers;
};
constexpr std::array kSizes = std::to_array<Size>(
    {{"tiny", 128, 8, 2}, {"small", 256, 16, 4}, {"base", 512, 16, 6}, {"large", 1024, 32, 12}, {"xlarge", 2048, 64, 24}});

template <typename Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table) names.emplace_back(row.name);
  return names;
}

tl::unexpected<Error> unknown(std::string_view kind, std::string_view name, const std::vector<std::string>& known) {
  std::string what = "there is no ", list;
  what.append(kind).append(" '").append(name).append("'");
  for (const std::string& each : known) list.append(list.empty() ? "one of " : ", ").append(each);
  return fail({Fault::kBadUse, std::move(what), "", std::move(list), did_you_mean(name, known)});
}

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

Result<const Architecture*> find_architecture(std::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
  }
  return unknown("architecture", name, names_of(kArchitectures));
}

std::size_t parameter_count(const BackboneConfig& config) {
  const auto architecture = find_architecture(config.architecture);
  if (!architecture) return 0;
  return (*architecture)->parameters(config);
}

Result<BackboneConfig> sized(std::string_view architecture, std::string_view size) {
  if (const auto known = find_architecture(architecture); !known) return fail(known.error());
  for (const Size& each : kSizes) {
    if (each.name != size) continue;
    BackboneConfig config;
    config.architecture = std::string(architecture);
    config.d_model = each.d_model;
    config.d_state = each.d_state;
    config.n_layers = each.n_layers;
    config.head_dim = std::min<std::int64_t>(architecture == "h3" ? 8 : 64, each.d_model / 4);  // H3 keeps head_dim states a channel
    if (architecture == "retnet") config.head_dim = config.inner() / 8;  // more heads would forget more slowly than ever needed
    return config;
  }
  return unknown("size", size, names_of(kSizes));
}

}  // namespace kizzasi
