// Any bytes as a CSV file and as lines of a stream: read or refused, never a crash; what is read has as many values as it says.
#include <cstdint>
#include <cstdlib>

#include "kizzasi/io/csv.h"
#include "kizzasi/io/frame_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kizzasi;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool lenient : {false, true}) {
    io::CsvOptions options;
    options.lenient = lenient;
    if (lenient) options.zone = "Europe/Berlin";
    io::CsvReport report;
    std::vector<io::TextColumn> texts;
    const auto table = io::read_csv(io::memory_source(bytes, "fuzz"), options, report, &texts);
    if (table && table->columns.size() * report.rows != table->values.size()) std::abort();
    (void)report.to_json(options).dump();
    for (const auto& warning : report.warnings) (void)io::warning_text(warning);
  }
  Schema schema;
  schema.channels = {{"a", "", Role::kTarget}, {"b", "", Role::kTarget}};
  io::FrameReader reader(schema);
  io::StreamFrame frame;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    (void)reader.read(bytes.substr(begin, end - begin), frame);
    begin = end + 1;
  }
  return 0;
}
