// libFuzzer target: any text must end in a tree that prints and reads back, or in an error; never in a crash. What compiles is enforced
// under hostile frames: what goes out obeys, or is said not to.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kizzasi;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto formula = logic::parse_formula({text, "fuzz", 1, 1});
  if (formula) {
    const std::string printed = logic::print(*formula);
    const auto again = logic::parse_formula({printed, "printed"});
    // Printing adds brackets and spaces: only the limit on length or depth may refuse what it gives.
    if (again ? !(*again == *formula) : printed.size() < 1024 && formula->depth < 20) std::abort();
  }
  Schema schema;
  schema.channels = {{"x", "V", Role::kTarget}, {"y", "", Role::kTarget}, {"z.w", "m", Role::kKnownFuture}};
  schema.step_ns = 1'000'000;
  const ConstraintText one{.name = "one", .that = std::string(text), .where = "fuzz"};
  const auto guard = compile_guard(schema, {&one, 1}, {size % 3 == 0 ? 2 : -1});
  if (!guard) return 0;
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles()), value{1e9, -3, 0.5};
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  constexpr double kHostile[] = {
      0.5, -3, 1e9, -1e30, 5e-324, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  for (std::int64_t t = 0; t < 6; ++t) {
    for (std::size_t c = 0; c < 3; ++c) value[c] = kHostile[(size + 3 * static_cast<std::size_t>(t) + 2 * c) % std::size(kHostile)];
    value[2] = static_cast<double>(t) - 2;
    const std::vector<std::byte> before = state;
    const GuardStatus status = (*guard)->propose(state, t * 1'000'000, value, report, scratch);
    if (state != before) std::abort();
    const bool said = status == GuardStatus::kInfeasible || report.broken[0] != 0;
    (*guard)->check(state, t * 1'000'000, value, report);
    if (!said && report.broken[0] != 0) std::abort();
    if (!std::isfinite(value[0]) || !std::isfinite(value[1])) std::abort();
    (*guard)->accept(state, t * 1'000'000, {}, value);
  }
  return 0;
}
