#include "kizzasi/engine/session_layout.h"

namespace kizzasi {

SessionLayout::SessionLayout(const StateLayout& model, std::size_t guard_state_bytes, std::size_t monitor_state_bytes, std::size_t channels,
                             std::size_t targets, std::size_t levels) {
  for (const StateField& field : model.fields()) {
    std::string name = "model.";
    name += field.name;
    fields.add(std::move(name), field.type, field.shape, field.may_quantise);
  }
  model_bytes = model.bytes();
  guard_bytes = guard_state_bytes;
  guard_at = fields.add("guard", FieldType::kU8, {guard_state_bytes});
  monitor_bytes = monitor_state_bytes;
  if (monitor_bytes > 0) monitor_at = fields.add("monitor", FieldType::kU8, {monitor_bytes});
  identity_at = fields.add("identity", FieldType::kU64, {1});
  clock_at = fields.add("clock", FieldType::kU64, {3});
  counts_at = fields.add("counts", FieldType::kU64, {kSessionCounts});
  distance_at = fields.add("distance", FieldType::kF64, {1});
  measured_at = fields.add("measured", FieldType::kF64, {channels});
  emitted_at = fields.add("emitted", FieldType::kF64, {targets});
  expected_at = fields.add("expected", FieldType::kF64, {targets, levels});
  adaptation_at = fields.add("adaptation", FieldType::kF64, {targets, levels});
}

}  // namespace kizzasi
