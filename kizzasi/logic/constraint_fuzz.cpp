// libFuzzer target: any text must end in a tree that prints and reads back, or in an error; never in a crash.
#include <cstdint>
#include <cstdlib>
#include <string_view>

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
  for (std::int64_t t = 0; t < 3; ++t) {
    (*guard)->propose(state, t * 1'000'000, value, report, scratch);
    (*guard)->accept(state, t * 1'000'000, {}, value);
  }
  return 0;
}
