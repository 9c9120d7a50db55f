#include <cstdio>

#include "kizzasi/io/config_file.h"
#include "kizzasi/signal/duration.h"

int main() {
  const auto file = kizzasi::io::parse_config("step = '15min'\n", kizzasi::io::ConfigFormat::kToml, "here.toml");
  if (!file) return 1;
  const auto step = kizzasi::parse_duration(file->values.find("step")->string(), file->place("/step"));
  if (!step || kizzasi::duration_text(*step) != "15min") return 1;
  std::puts(file->values.dump().c_str());
}
