#include "kizzasi/signal/series.h"

#include <fmt/format.h>

#include "kizzasi/base/suggest.h"

namespace kizzasi {

Series Series::slice(std::size_t begin, std::size_t end) const {
  const auto at = [&](std::size_t r) { return values.begin() + static_cast<std::ptrdiff_t>(r * channels()); };
  return {id, schema, time_ns(begin), std::vector<double>(at(begin), at(end))};
}

Result<Series> Series::select(std::span<const std::string> names) const {
  Series out{id, {{}, schema.step_ns, schema.zone}, start_ns, {}};
  std::vector<std::size_t> columns;
  for (const std::string& name : names) {
    const auto column = schema.index_of(name);
    if (!column) {
      const auto all = schema.names();
      return fail({Fault::kBadInput, fmt::format("there is no channel '{}'", name), id, fmt::to_string(fmt::join(all, ", ")),
                   did_you_mean(name, all)});
    }
    columns.push_back(*column);
    out.schema.channels.push_back(schema.channels[*column]);
  }
  out.values.reserve(rows() * columns.size());
  for (std::size_t r = 0; r < rows(); ++r) {
    for (const std::size_t column : columns) out.values.push_back(at(r, column));
  }
  return out;
}

}  // namespace kizzasi
