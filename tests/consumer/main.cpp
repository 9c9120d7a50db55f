// Loads a model that is not there, and reads the message; then a configuration, and uses it.
#include <cstdio>

#include "kizzasi/io/config_file.h"
#include "kizzasi/kizzasi.h"
#include "kizzasi/signal/duration.h"

int main() {
  const auto predictor = kizzasi::Predictor::load("no-such-model.kz");
  if (predictor || predictor.error().fault != kizzasi::Fault::kUnavailable) return 1;
  std::puts(predictor.error().text().c_str());
  const auto file = kizzasi::io::parse_config("step = '15min'\n", kizzasi::io::ConfigFormat::kToml, "here.toml");
  if (!file) return 1;
  const auto step = kizzasi::parse_duration(file->values.find("step")->string(), file->place("/step"));
  return step && kizzasi::duration_text(*step) == "15min" ? 0 : 1;
}
