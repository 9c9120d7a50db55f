// Prints docs/configuration.md from the declarations of the fields.
#include <cstdio>
#include <string>

#include "kizzasi/data/prepare.h"
#include "kizzasi/io/csv_options.h"
#include "kizzasi/model/config.h"
#include "kizzasi/penalty/config.h"
#include "kizzasi/train/config.h"

namespace {

using namespace kizzasi;

// A cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '_') out += '\\';
    out += c;
  }
  return out;
}

std::string option_of(const FieldDoc& field) {
  std::string name = field.name;
  for (char& c : name) c = c == '_' ? '-' : c;
  const bool switched_on = field.kind == "yes/no" && field.default_text == "true";
  return (switched_on ? "--no-" : "--") + name;
}

template <Declared C>
void section(const char* title, const char* about) {
  std::printf("\n## %s\n\n%s\n\n| key | option | kind | default | allowed | meaning |\n|---|---|---|---|---|---|\n", title, about);
  for (const FieldDoc& field : describe<C>()) {
    std::printf("| `%s` | `%s` | %s | `%s` | %s | %s |\n", field.name.c_str(), option_of(field).c_str(), field.kind.c_str(),
                field.default_text.c_str(), cell(field.allowed).c_str(), cell(field.help).c_str());
  }
}

}  // namespace

int main() {
  std::puts(
      "# Configuration\n\n"
      "Every field is declared once, in the room that uses it; this page is printed from those declarations (`make features`). A field is "
      "a\n"
      "key of a `--config` file (TOML, YAML or JSON) and an option of the verbs that use it; an option wins over the file.");
  section<io::CsvOptions>("Reading CSV", "`io/csv_options.h`; for every verb that reads a recording.");
  section<data::PrepareOptions>("Preparing", "`data/prepare.h`; what stands between a recording and a model.");
  section<ModelConfig>("Model",
                       "`model/config.h`; the predictor, its backbone and its head. `kizzasi train --preset NAME` sets many of them.");
  section<TrainConfig>("Training", "`train/config.h`; the loop, the optimiser and the schedule.");
  section<PenaltyConfig>("Price of broken limits", "`penalty/config.h`; what `kizzasi train` pays where predictions leave the limits.");
}
