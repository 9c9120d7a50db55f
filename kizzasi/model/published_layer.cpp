#include "kizzasi/model/published_layer.h"

#include <fmt/format.h>

#include <array>

#include "kizzasi/model/gated/published.h"
#include "kizzasi/model/griffin/published.h"
#include "kizzasi/model/linear_attention/published.h"
#include "kizzasi/model/published_s4d.h"
#include "kizzasi/model/state_space/published_h3.h"
#include "kizzasi/model/state_space/published_lru.h"
#include "kizzasi/model/state_space/published_s4.h"
#include "kizzasi/model/state_space/published_s5.h"
#include "kizzasi/model/xlstm/published.h"

namespace kizzasi {
namespace {

constexpr std::array kFormats = std::to_array<LayerFormat>({
    {"s4", is_published_s4, published_s4},  // before s4d, whose names it has, too
    {"s4d, dss", is_published_s4d, published_s4d},
    {"h3", is_published_h3, published_h3},
    {"mingru", is_published_mingru, published_mingru},
    {"minlstm", is_published_minlstm, published_minlstm},
    {"lstm", is_published_lstm, published_lstm},
    {"gru", is_published_gru, published_gru},
    {"mlstm", is_published_mlstm, published_mlstm},
    {"slstm", is_published_slstm, published_slstm},
    {"rg_lru", is_published_rglru, published_rglru},
    {"lru", is_published_lru, published_lru},
    {"s5", is_published_s5, published_s5},
    {"retnet", is_published_retnet, published_retnet},
    {"gla", is_published_gla, published_gla},
    {"hgrn", is_published_hgrn, published_hgrn},
    {"hgrn2", is_published_hgrn2, published_hgrn2},
    {"deltanet", is_published_deltanet, published_deltanet},
    {"gated_deltanet", is_published_gated_deltanet, published_gated_deltanet},
});

}  // namespace

std::span<const LayerFormat> layer_formats() { return kFormats; }

Result<void> check_published(const NamedTensors& tensors, std::map<std::string, Shape> wanted, std::string_view format,
                             std::string_view where) {
  const auto refused = [](std::string what, std::string at, std::string expected = "") {
    return fail({Fault::kBadInput, std::move(what), std::move(at), std::move(expected), ""});
  };
  for (const auto& [name, tensor] : tensors) {
    const std::string at = fmt::format("{}: '{}'", where, name);
    const auto found = wanted.find(name);
    if (found == wanted.end()) return refused(fmt::format("{} has no such tensor", format), at);
    if (found->second != tensor.shape) {
      return refused(fmt::format("the shape is {}", shape_text(tensor.shape)), at, shape_text(found->second));
    }
    wanted.erase(found);
  }
  if (!wanted.empty()) return refused(fmt::format("tensor '{}' is missing", wanted.begin()->first), std::string(where));
  return {};
}

}  // namespace kizzasi
