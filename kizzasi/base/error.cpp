#include "kizzasi/base/error.h"

namespace kizzasi {

std::string Error::text() const {
  std::string line = where.empty() ? what : where;
  if (!where.empty()) line.append(": ").append(what);
  if (!expected.empty()) line.append(" (expected ").append(expected).append(")");
  line.push_back('.');
  if (!hint.empty()) line.append(" ").append(hint);
  return line;
}

}  // namespace kizzasi
