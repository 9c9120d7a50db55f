#include <cstdio>

#include "kizzasi/base/json.h"
#include "kizzasi/signal/duration.h"

int main() {
  const auto step = kizzasi::parse_duration("15min", "main.cpp");
  if (!step) return 1;
  kizzasi::Json answer = kizzasi::Json::object();
  answer["step"] = kizzasi::duration_text(*step);
  std::puts(answer.dump().c_str());
}
