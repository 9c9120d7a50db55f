// kizzasi VERB [arguments]: finds the verb, hands it its options, and turns what comes back into an exit code and at most one line.
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "apps/cli/options.h"
#include "apps/cli/print.h"
#include "apps/cli/verb.h"
#include "kizzasi/base/suggest.h"

namespace kizzasi::cli {
namespace {

constexpr int kDone = 0, kRefused = 1, kWrongUse = 2;

std::string help_page() {
  std::string out =
      "Kizzasi learns a recorded signal, predicts it live, and keeps every prediction inside its limits.\n\n"
      "Usage: kizzasi VERB [arguments] [options]\n"
      "       kizzasi FILE                 the same as 'kizzasi check FILE'\n\nVerbs:\n";
  for (const Verb& verb : verbs()) out += fmt::format("  {:<12} {}\n", verb.name, verb.summary);
  out +=
      "\n'kizzasi VERB --help' explains a verb, with examples. Every verb takes --json (one object on standard output; stream, guard and "
      "monitor: "
      "one a line),\n"
      "--quiet, --seed N and --threads N.\n"
      "Exit codes: 0 done, 1 the data or the model says no, 2 wrong usage, 130 interrupted.\n";
  return out;
}

int complain(std::string_view verb, const Error& error) {
  std::string text = error.text();
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::fflush(stdout);
  std::fprintf(stderr, "kizzasi%s%.*s: %s\n", verb.empty() ? "" : " ", static_cast<int>(verb.size()), verb.data(), text.c_str());
  return error.fault == Fault::kBadUse ? kWrongUse : kRefused;
}

bool exists(const std::string& path) {
  struct stat found{};
  return stat(path.c_str(), &found) == 0;
}

const Verb* find_verb(std::string_view name) {
  const auto table = verbs();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Verb& verb) { return verb.name == name; });
  return found == table.end() ? nullptr : &*found;
}

int run_verb(const Verb& verb, std::vector<std::string> arguments) {
  Context context;
  Options options(verb.name, verb.summary, verb.examples, std::move(arguments));
  options.common(context);
  const Result<int> code = verb.run(options, context);
  return code ? *code : complain(verb.name, code.error());
}

int unknown(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const bool is_option = word.starts_with("-");
  std::string hint = is_option ? "The verb comes first." : did_you_mean(word, names);
  if (hint.empty()) hint = "'kizzasi --help' lists the verbs.";
  const char* what = is_option ? "there is no such option before a verb" : "there is no such verb, and no such file";
  return complain("", {Fault::kBadUse, what, fmt::format("'{}'", word), "", std::move(hint)});
}

int dispatch(std::vector<std::string> words) {
  // Options without a value may stand before the verb.
  const auto is_common = [](const std::string& word) { return word == "--json" || word == "--quiet"; };
  const auto first = std::find_if_not(words.begin(), words.end(), is_common);
  std::rotate(words.begin(), first, words.end());
  if (words.empty() || is_common(words.front())) {
    std::fputs(help_page().c_str(), stderr);
    return kWrongUse;
  }
  const std::string word = words.front();
  if (word == "--help" || word == "-h" || (word == "help" && words.size() == 1)) return print(help_page()) ? kDone : kRefused;
  if (word == "--version") return print("kizzasi " KIZZASI_VERSION "\n") ? kDone : kRefused;
  words.erase(words.begin());
  if (word == "help") {
    const Verb* verb = find_verb(words.front());
    return verb == nullptr ? unknown(words.front()) : run_verb(*verb, {"--help"});
  }
  if (const Verb* verb = find_verb(word)) return run_verb(*verb, std::move(words));
  const Verb* check = find_verb("check");
  const bool looks_like_file = word.find_first_of("./") != word.npos && !word.starts_with("-");
  if (check != nullptr && (exists(word) || looks_like_file)) {
    words.insert(words.begin(), word);
    return run_verb(*check, std::move(words));
  }
  return unknown(word);
}

// A reader that went away is no error; a full disk is.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0) return code;
  return complain("", {Fault::kUnavailable, "could not write everything", "standard output", "room for the answer", "Is the disk full?"});
}

}  // namespace
}  // namespace kizzasi::cli

int main(int count, char** words) {
  using namespace kizzasi;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is an error of its write
  int code = cli::kRefused;
  try {
    code = cli::dispatch(std::vector<std::string>(words + std::min(count, 1), words + count));
  } catch (const std::bad_alloc&) {
    code = cli::complain(
        "", {Fault::kUnavailable, "not enough memory", "", "", "Take a smaller model, fewer channels or a shorter recording."});
  } catch (const std::exception& error) {
    code = cli::complain("", {Fault::kBroken, error.what(), "", "", "This is an error in kizzasi itself; please report it."});
  }
  return cli::finish_output(code);
}
