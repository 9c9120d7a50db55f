// Any bytes as a sound file: read or refused, never a crash.
#include <cstdint>

#include "kizzasi/io/sound.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kizzasi;
  auto reader = io::SoundReader::open(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!reader) return 0;
  std::vector<double> block(1024 * reader->info().channels);
  // A header may promise more frames than a run has time for.
  for (int blocks = 0; blocks < 200; ++blocks) {
    const auto got = reader->read(block);
    if (!got || *got < 1024) break;
  }
  return 0;
}
