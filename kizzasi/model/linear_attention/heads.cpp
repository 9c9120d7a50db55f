#include "kizzasi/model/linear_attention/heads.h"

#include <fmt/format.h>

namespace kizzasi::matrix_heads {

Result<void> check_heads(const BackboneConfig& c, std::string_view where) {
  if (c.inner() % c.head_dim == 0) return {};
  return fail({Fault::kBadUse, fmt::format("an inner width of {} does not divide into heads of head_dim {}", c.inner(), c.head_dim),
               std::string(where), "head_dim dividing the inner width", ""});
}

}  // namespace kizzasi::matrix_heads
