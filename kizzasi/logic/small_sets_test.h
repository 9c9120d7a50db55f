// Channels and constraints for tests, from their names and texts alone.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

// Targets without units, one frame a second.
inline Schema channels(std::initializer_list<const char*> names) {
  Schema schema;
  for (const char* name : names) schema.channels.push_back({name, "", Role::kTarget});
  schema.step_ns = 1'000'000'000;
  return schema;
}

// Each named by its own text.
inline std::vector<ConstraintText> texts(const std::vector<std::string>& list) {
  std::vector<ConstraintText> out;
  for (const std::string& that : list) out.push_back({.name = that, .that = that});
  return out;
}

}  // namespace kizzasi
