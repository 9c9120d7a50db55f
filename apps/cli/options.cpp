#include "apps/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "apps/cli/verb.h"
#include "kizzasi/base/suggest.h"
#include "kizzasi/io/config_file.h"
#include "kizzasi/io/file.h"

namespace kizzasi::cli {
namespace {

constexpr std::size_t kHelpWidth = 110;

// "--d-model", "d_model" and "d-model" are one name.
std::string canonical(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

// "-o,--out FILE": names, and the value's name.
std::pair<std::string, std::string> split_value_name(std::string_view text, std::string_view otherwise) {
  const std::size_t space = text.find(' ');
  if (space == text.npos) return {std::string(text), std::string(otherwise)};
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

// "-o,--out" gives "out".
std::string key_of(std::string_view names) {
  const std::size_t comma = names.rfind(',');
  return canonical(comma == names.npos ? names : names.substr(comma + 1));
}

template <typename T>
bool read_number(std::string_view text, T& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc{} && end == text.data() + text.size();
}

tl::unexpected<Error> bad_use(std::string what, std::string where, std::string expected = "", std::string hint = "") {
  return fail({Fault::kBadUse, std::move(what), std::move(where), std::move(expected), std::move(hint)});
}

Result<void> read_whole(std::string_view name, const std::string& text, std::int64_t& value) {
  if (read_number(text, value)) return {};
  return bad_use(fmt::format("'{}' is no whole number", text), std::string(name), "a whole number, such as 24");
}

Result<void> read_real(std::string_view name, const std::string& text, double& value) {
  if (read_number(text, value) && std::isfinite(value)) return {};
  return bad_use(fmt::format("'{}' is no number", text), std::string(name), "a number with a decimal point, such as 0.5");
}

// Words of `text`, wrapped, with `indent` spaces before every line but the first.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    if (column + space > kHelpWidth && column > indent) {
      out.back() = '\n';
      out.append(indent, ' ');
      column = indent;
    }
    out += text.substr(0, space);
    out += ' ';
    column += space + 1;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  if (!out.empty()) out.pop_back();
  return out;
}

// A default as it would be typed; empty where there is none to show.
std::string plain_default(const FieldDoc& field) {
  if (field.kind == "yes/no") return "";
  std::string text;
  for (const char c : field.default_text) {
    if (c != '"' && c != '[' && c != ']' && c != ' ') text += c;
  }
  return text;
}

}  // namespace

struct Options::Parser {
  struct Entry {                        // one line of the help, one option of CLI11
    std::string key, left, help, name;  // name: as messages say it, "--out" or "FILE"
    CLI::Option* option = nullptr;
    std::function<Result<void>(const std::string& text)> take;  // called for each value given
    bool repeats = false, required = false, is_flag = false;
    std::string section{};  // of a field
    bool is_output = false;
  };
  struct Config {
    void* config;
    detail::Walk walk;
    std::vector<std::string> names;  // of its fields, as declared
  };

  std::string verb, summary, examples;
  std::vector<std::string> arguments;
  CLI::App app;
  std::vector<Entry> positionals, options, fields, common;
  std::deque<Config> configs;
  std::set<std::string> given;
  std::string config_file;
  bool help = false, shown = false;

  bool declared(const std::string& key) const {
    const auto same = [&](const Entry& entry) { return entry.key == key; };
    return std::any_of(options.begin(), options.end(), same) || std::any_of(fields.begin(), fields.end(), same) ||
           std::any_of(common.begin(), common.end(), same);
  }

  // An option with one value each time it is given.
  void value(std::vector<Entry>& group, std::string_view names_and_value, std::string_view value_name, std::string help_text,
             std::function<Result<void>(const std::string&)> take, bool repeats = false) {
    const auto [names, shown_value] = split_value_name(names_and_value, value_name);
    const std::string key = key_of(names);
    if (declared(key)) return;
    CLI::Option* option = app.add_option(names)->type_size(1)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    group.push_back({key, fmt::format("{} {}", fmt::join(option_names(names), ", "), shown_value), std::move(help_text),
                     fmt::format("--{}", key), option, std::move(take), repeats, false, false});
  }

  static std::vector<std::string> option_names(const std::string& names) { return CLI::detail::split(names, ','); }

  void flag(std::vector<Entry>& group, const std::string& names, std::string help_text,
            std::function<Result<void>(const std::string&)> take, std::string left = "") {
    const std::string key = key_of(names.substr(0, names.find(",!")));
    if (declared(key)) return;
    CLI::Option* option = app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (left.empty()) left = fmt::format("{}", fmt::join(option_names(names), ", "));
    group.push_back({key, std::move(left), std::move(help_text), fmt::format("--{}", key), option, std::move(take), false, false, true});
  }

  std::vector<Entry*> all() {
    std::vector<Entry*> entries;
    for (auto* group : {&positionals, &options, &fields, &common}) {
      for (Entry& entry : *group) entries.push_back(&entry);
    }
    return entries;
  }

  std::string usage() const {
    std::string line = fmt::format("kizzasi {}", verb);
    for (const Entry& entry : positionals)
      line += entry.required || entry.repeats ? fmt::format(" {}", entry.left) : fmt::format(" [{}]", entry.left);
    line += " [options]";
    return line;
  }

  std::string help_text() const {
    std::size_t left = 8;
    for (const auto* group : {&positionals, &options, &fields, &common}) {
      for (const Entry& entry : *group) left = std::max(left, std::min<std::size_t>(entry.left.size(), 30));
    }
    std::string out = fmt::format("{}\n\nUsage: {}\n", wrapped(summary, 0), usage());
    const auto section = [&](std::string_view title, const std::vector<Entry>& group) {
      if (group.empty()) return;
      out += fmt::format("\n{}:\n", title);
      for (const Entry& entry : group) {
        const bool own_line = entry.left.size() > left;
        out += own_line ? fmt::format("  {}\n{:{}}", entry.left, "", left + 4) : fmt::format("  {:<{}}  ", entry.left, left);
        out += wrapped(entry.help, left + 4);
        out += '\n';
      }
    };
    section("Arguments", positionals);
    section("Options", options);
    for (std::size_t begin = 0; begin < fields.size();) {
      const auto same = [&](const Entry& entry) { return entry.section == fields[begin].section; };
      const auto end = std::find_if_not(fields.begin() + static_cast<std::ptrdiff_t>(begin), fields.end(), same);
      section(fmt::format("{} (also as keys of --config FILE)", fields[begin].section),
              {fields.begin() + static_cast<std::ptrdiff_t>(begin), end});
      begin = static_cast<std::size_t>(end - fields.begin());
    }
    section("Common options", common);
    out += fmt::format("\nExamples:\n");
    std::string_view rest = examples;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      out += fmt::format("  {}\n", rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out;
  }

  std::string see_help() const { return fmt::format("'kizzasi {} --help' says more.", verb); }

  Result<void> run_parser() {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    try {
      app.parse(std::move(reversed));
    } catch (const CLI::ArgumentMismatch& mismatch) {
      const std::string text = mismatch.what();
      return bad_use("this option needs a value", text.substr(0, text.find(':')), "", see_help());
    } catch (const CLI::Error& other) {
      return bad_use(other.what(), "", "", see_help());
    }
    return {};
  }

  Result<void> refuse_surplus() {
    std::vector<std::string> surplus = app.remaining();
    const auto dashes = std::find(surplus.begin(), surplus.end(), "--");  // what follows it are arguments, whatever they look like
    for (auto word_at = surplus.begin(); word_at != dashes; ++word_at) {
      const std::string& word = *word_at;
      if (word.size() < 2 || word.front() != '-') continue;
      const std::string name = word.substr(0, word.find('='));
      std::vector<std::string> known;
      for (const Entry* entry : all()) {
        if (entry->option == nullptr || entry->option->get_positional()) continue;
        for (const std::string& each : entry->option->get_lnames()) known.push_back(fmt::format("--{}", each));
      }
      std::string hint = did_you_mean(name, known);
      return bad_use("there is no such option", name, "", hint.empty() ? see_help() : std::move(hint));
    }
    if (dashes != surplus.end()) surplus.erase(dashes);
    if (surplus.empty()) return {};
    return bad_use("one argument too many", fmt::format("'{}'", surplus.front()), usage(), "Quote a name that holds spaces.");
  }

  Result<void> take_values() {
    for (Entry* entry : all()) {
      if (entry->option == nullptr) continue;
      const auto& values = entry->option->results();
      if (values.empty()) continue;
      if (values.size() > 1 && !entry->repeats && !entry->is_flag) return bad_use("given more than once", entry->name, "one value");
      given.insert(entry->key);
      for (const std::string& text : values) {
        if (!entry->option->get_positional() && !entry->is_flag && text.starts_with("--")) {
          return bad_use("this option needs a value", entry->name, "", fmt::format("'{}' is an option of its own.", text));
        }
        if (entry->is_flag && text != "true" && text != "false") return bad_use("this option takes no value", entry->name);
        if (auto taken = entry->take(text); !taken) return taken;
      }
    }
    for (const Entry& entry : positionals) {
      if (entry.required && !given.contains(entry.key)) {
        return bad_use(fmt::format("{} is missing", entry.name), "", usage(), see_help());
      }
    }
    return {};
  }

  // Each key of the file goes to every configuration that has such a field.
  Result<void> take_config_file() {
    const auto file = io::read_config_file(config_file);
    if (!file) return fail(file.error());
    std::vector<std::string> names;
    for (const Config& config : configs) names.insert(names.end(), config.names.begin(), config.names.end());
    for (const auto& [key, value] : file->values.members()) {
      if (std::find(names.begin(), names.end(), key) == names.end()) {
        return bad_use(fmt::format("there is no field '{}'", key), file->place(fmt::format("/{}", key)), "", did_you_mean(key, names));
      }
      given.insert(canonical(key));
    }
    for (Config& config : configs) {
      Json mine = Json::object();
      for (const auto& [key, value] : file->values.members()) {
        if (std::find(config.names.begin(), config.names.end(), key) != config.names.end()) mine[key] = value;
      }
      if (auto applied = detail::apply(config.config, config.walk, mine, config_file); !applied) return applied;
    }
    return {};
  }

  // What the command line gave for fields, after the file.
  Result<void> take_fields() {
    for (const Config& config : configs) {
      for (const std::string& name : config.names) {
        const Entry* entry = find(canonical(name));
        if (entry == nullptr || entry->option == nullptr || entry->option->results().empty()) continue;
        const std::string& text = entry->option->results().back();
        if (auto set = detail::assign(config.config, config.walk, name, text, entry->name); !set) return set;
      }
    }
    return {};
  }

  // What is written has a place, and takes nobody else's.
  Result<void> check_outputs() {
    const std::vector<Entry*> entries = all();
    const auto names_file = [](const Entry& entry) {
      return entry.option->get_positional() || entry.left.ends_with(" FILE") || entry.left.ends_with(" MODEL");
    };
    for (const Entry* output : entries) {
      if (!output->is_output || output->option->results().empty()) continue;
      const std::string& path = output->option->results().front();
      if (auto good = io::check_writable(path); !good) return good;
      for (const Entry* other : entries) {
        if (other == output || other->option == nullptr || !names_file(*other)) continue;
        for (const std::string& text : other->option->results()) {
          if (auto good = io::check_apart(path, text); !good) return good;
        }
      }
    }
    return {};
  }

  const Entry* find(const std::string& key) const {
    for (const auto* group : {&options, &fields, &common}) {
      for (const Entry& entry : *group) {
        if (entry.key == key) return &entry;
      }
    }
    return nullptr;
  }
};

Options::Options(std::string_view verb, std::string_view summary, std::string_view examples, std::vector<std::string> arguments)
    : parser_(std::make_unique<Parser>()) {
  parser_->verb = std::string(verb);
  parser_->summary = std::string(summary);
  parser_->examples = std::string(examples);
  parser_->arguments = std::move(arguments);
  parser_->app.set_help_flag("");
  parser_->app.allow_extras();
}

Options::~Options() = default;

void Options::positional(std::string_view name, std::string& value, std::string_view help, bool required) {
  CLI::Option* option = parser_->app.add_option(std::string(name))->type_size(1)->expected(1);
  parser_->positionals.push_back({canonical(name), std::string(name), std::string(help), std::string(name), option,
                                  [&value](const std::string& text) -> Result<void> {
                                    value = text;
                                    return {};
                                  },
                                  false, required, false});
}

void Options::positionals(std::string_view name, std::vector<std::string>& values, std::string_view help) {
  CLI::Option* option = parser_->app.add_option(std::string(name))->type_size(1)->expected(1, 1 << 20)->allow_extra_args()->take_all();
  parser_->positionals.push_back({canonical(name), std::string(name), std::string(help), std::string(name), option,
                                  [&values](const std::string& text) -> Result<void> {
                                    values.push_back(text);
                                    return {};
                                  },
                                  true, false, false});
}

void Options::flag(std::string_view name, bool& value, std::string_view help) {
  parser_->flag(parser_->options, std::string(name), std::string(help), [&value](const std::string& text) -> Result<void> {
    value = text == "true";
    return {};
  });
}

void Options::option(std::string_view name, std::string& value, std::string_view help) {
  std::string shown = value.empty() ? std::string(help) : fmt::format("{} [{}]", help, value);
  parser_->value(parser_->options, name, "TEXT", std::move(shown), [&value](const std::string& text) -> Result<void> {
    value = text;
    return {};
  });
}

void Options::output(std::string_view name, std::string& value, std::string_view help) {
  option(name, value, help);
  parser_->options.back().is_output = true;
}

void Options::option(std::string_view name, std::int64_t& value, std::string_view help) {
  const std::string shown = fmt::format("--{}", key_of(split_value_name(name, "").first));
  parser_->value(parser_->options, name, "N", fmt::format("{} [{}]", help, value),
                 [&value, shown](const std::string& text) { return read_whole(shown, text, value); });
}

void Options::option(std::string_view name, double& value, std::string_view help) {
  const std::string shown = fmt::format("--{}", key_of(split_value_name(name, "").first));
  parser_->value(parser_->options, name, "X", fmt::format("{} [{}]", help, value),
                 [&value, shown](const std::string& text) { return read_real(shown, text, value); });
}

void Options::option(std::string_view name, std::vector<std::string>& values, std::string_view help) {
  parser_->value(
      parser_->options, name, "TEXT", std::string(help),
      [&values](const std::string& text) -> Result<void> {
        values.push_back(text);
        return {};
      },
      true);
}

void Options::option(std::string_view name, std::optional<double>& value, std::string_view help) {
  const std::string shown = fmt::format("--{}", key_of(split_value_name(name, "").first));
  parser_->value(parser_->options, name, "X", std::string(help), [&value, shown](const std::string& text) -> Result<void> {
    double number = 0;
    if (auto read = read_real(shown, text, number); !read) return read;
    value = number;
    return {};
  });
}

void Options::add_fields(void* config, detail::Walk walk, std::string_view section) {
  Parser& parser = *parser_;
  if (parser.configs.empty()) {
    parser.value(parser.options, "--config FILE", "FILE", "A TOML, YAML or JSON file of fields; options given beside it win.",
                 [&parser](const std::string& text) -> Result<void> {
                   parser.config_file = text;
                   return {};
                 });
  }
  Parser::Config& added = parser.configs.emplace_back(Parser::Config{config, walk, {}});
  for (const FieldDoc& field : detail::describe(config, walk)) {
    added.names.push_back(field.name);
    const std::string option = fmt::format("--{}", canonical(field.name));
    std::string help = field.help;
    if (!field.allowed.empty()) help += fmt::format(" ({})", field.allowed);
    if (const std::string usual = plain_default(field); !usual.empty()) help += fmt::format(" [{}]", usual);
    const auto later = [](const std::string&) -> Result<void> { return {}; };  // take_fields reads it, once the file is in
    if (field.kind == "yes/no") {
      const bool on = field.default_text == "true";
      const std::string off = fmt::format("--no-{}", canonical(field.name));
      if (on) help = fmt::format("Turns off: {}", help);
      parser.flag(parser.fields, fmt::format("{},!{}", option, off), std::move(help), later, on ? off : option);
    } else {
      const char* value_name = field.kind == "whole number" ? "N"
                               : field.kind == "number"     ? "X"
                               : field.kind == "text"       ? "TEXT"
                                                            : "A,B,...";
      parser.value(parser.fields, option, value_name, std::move(help), later);
    }
    if (!parser.fields.empty() && parser.fields.back().section.empty()) parser.fields.back().section = section;
  }
}

void Options::common(Context& context) {
  Parser& parser = *parser_;
  const auto set = [](bool& value) {
    return [&value](const std::string& text) -> Result<void> {
      value = text == "true";
      return {};
    };
  };
  parser.flag(parser.common, "--json",
              "One JSON object on standard output, and nothing else there (stream, guard, monitor: one object a line).", set(context.json));
  parser.flag(parser.common, "--quiet", "No progress, no remarks.", set(context.quiet));
  parser.value(parser.common, "--seed", "N", fmt::format("Where every random draw begins. [{}]", context.seed),
               [&context](const std::string& text) -> Result<void> {
                 if (read_number(text, context.seed)) return {};
                 return bad_use(fmt::format("'{}' is no seed", text), "--seed", "a whole number, 0 or more");
               });
  parser.value(parser.common, "--threads", "N", "How many threads; results do not depend on it. [as many as cores]",
               [&context](const std::string& text) -> Result<void> {
                 if (read_number(text, context.threads) && context.threads <= 1024) return {};
                 return bad_use(fmt::format("'{}' is no number of threads", text), "--threads",
                                "a whole number from 0 to 1024 (0: all cores)");
               });
  parser.flag(parser.common, "--help", "This page.", set(parser.help));
}

Result<void> Options::parse() {
  if (auto parsed = parser_->run_parser(); !parsed) return parsed;
  const auto& words = parser_->arguments;
  const bool short_help = std::find(words.begin(), words.end(), "-h") != words.end() && parser_->app.get_option_no_throw("-h") == nullptr;
  const Parser::Entry* help = parser_->find("help");
  if (short_help || (help != nullptr && !help->option->results().empty())) {
    std::fputs(parser_->help_text().c_str(), stdout);
    parser_->shown = true;
    return {};
  }
  if (auto known = parser_->refuse_surplus(); !known) return known;
  if (auto taken = parser_->take_values(); !taken) return taken;
  if (!parser_->config_file.empty()) {
    if (auto read = parser_->take_config_file(); !read) return read;
  }
  if (auto taken = parser_->take_fields(); !taken) return taken;
  return parser_->check_outputs();
}

bool Options::help_shown() const { return parser_->shown; }

bool Options::given(std::string_view name) const { return parser_->given.contains(canonical(name)); }

}  // namespace kizzasi::cli
