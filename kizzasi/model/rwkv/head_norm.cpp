#include "kizzasi/model/rwkv/head_norm.h"

#include <fmt/format.h>

namespace kizzasi::rwkv {

Result<void> check_heads(const BackboneConfig& c, std::string_view where) {
  if (c.d_model % c.head_dim == 0) return {};
  return fail({Fault::kBadUse, fmt::format("d_model {} is no multiple of head_dim {}", c.d_model, c.head_dim), std::string(where),
               "whole heads", ""});
}

}  // namespace kizzasi::rwkv
