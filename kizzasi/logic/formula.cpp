#include "kizzasi/logic/formula.h"

#include <fmt/format.h>

#include <algorithm>

#include "kizzasi/logic/lexer.h"

namespace kizzasi::logic {
namespace {

constexpr int kClosed = 12;  // names, numbers and calls: they need no brackets

// How tightly an operator binds; higher binds tighter.
int binding(Op op) {
  switch (op) {
    case Op::kIff:
      return 1;
    case Op::kImplies:
      return 2;
    case Op::kOr:
      return 3;
    case Op::kXor:
      return 4;
    case Op::kAnd:
      return 5;
    case Op::kUntil:
    case Op::kRelease:
    case Op::kSince:
    case Op::kUnless:
      return 6;
    case Op::kNot:
    case Op::kNext:
    case Op::kPrevious:
    case Op::kAlways:
    case Op::kEventually:
    case Op::kHistorically:
    case Op::kOnce:
      return 7;
    case Op::kCompare:
    case Op::kWithin:
    case Op::kIn:
      return 8;
    case Op::kAdd:
    case Op::kSubtract:
      return 9;
    case Op::kMultiply:
    case Op::kDivide:
      return 10;
    case Op::kNegate:
      return 11;
    case Op::kNumber:
    case Op::kChannel:
    case Op::kEveryChannel:
    case Op::kCall:
    case Op::kUser:
    case Op::kProposition:
    case Op::kTrue:
    case Op::kFalse:
    case Op::kRise:
    case Op::kFall:
    case Op::kHysteresis:
      return kClosed;
  }
  return kClosed;
}

class Printer {
 public:
  explicit Printer(bool all_brackets) : all_brackets_(all_brackets) {}

  // `least`: what binds less tightly than this needs brackets here.
  std::string show(const Formula& f, int least) const {
    const int binds = binding(f.op);
    const bool own = all_brackets_ && is_condition(f.op) && binds < kClosed;
    std::string inner = body(f, own ? 0 : binds);
    if (own || binds < least) inner.insert(inner.begin(), '('), inner.push_back(')');
    return inner;
  }

 private:
  std::string body(const Formula& f, int binds) const {
    const int tighter = binds + 1;
    switch (f.op) {
      case Op::kNumber: {
        std::string text = number_text(f.number);
        if (!f.text.empty()) text.append(" [").append(f.text).append("]");
        return text;
      }
      case Op::kChannel:
        return quoted_name(f.text);
      case Op::kEveryChannel:
        return "*";
      case Op::kNegate:
        return fmt::format("-{}", show(f.operands[0], 11));
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
      case Op::kDivide: {  // these bind to the left
        const int here = binding(f.op);
        return fmt::format("{} {} {}", show(f.operands[0], here), word(f.op), show(f.operands[1], here + 1));
      }
      case Op::kCall:
      case Op::kUser:
        return call(f, f.text);
      case Op::kRise:
      case Op::kFall:
      case Op::kHysteresis:
        return call(f, word(f.op));
      case Op::kProposition:
        return quoted_name(f.text);
      case Op::kTrue:
      case Op::kFalse:
        return word(f.op);
      case Op::kCompare: {
        std::string text = show(f.operands[0], 9);
        for (std::size_t i = 0; i < f.comparisons.size(); ++i) {
          text.append(" ").append(to_string(f.comparisons[i])).append(" ").append(show(f.operands[i + 1], 9));
        }
        return text;
      }
      case Op::kWithin:
        return fmt::format("{} == {} +- {}", show(f.operands[0], 9), show(f.operands[1], 9), show(f.operands[2], 9));
      case Op::kIn:
        return fmt::format("{} in [{}, {}]", show(f.operands[0], 9), show(f.operands[1], 9), show(f.operands[2], 9));
      case Op::kNot:
      case Op::kNext:
      case Op::kPrevious:
      case Op::kAlways:
      case Op::kEventually:
      case Op::kHistorically:
      case Op::kOnce:
        return fmt::format("{}{}{} {}", word(f.op), f.strong ? "[!]" : "", interval(f.interval), show(f.operands[0], 7));
      case Op::kImplies:
      case Op::kUntil:
      case Op::kRelease:
      case Op::kSince:
      case Op::kUnless:  // these bind to the right
        return fmt::format("{} {}{} {}", show(f.operands[0], tighter), word(f.op), interval(f.interval), show(f.operands[1], binds));
      case Op::kAnd:
      case Op::kXor:
      case Op::kOr:
      case Op::kIff:
        return fmt::format("{} {} {}", show(f.operands[0], binds), word(f.op), show(f.operands[1], tighter));
    }
    return {};
  }

  std::string call(const Formula& f, std::string text) const {
    text.push_back('(');
    for (std::size_t i = 0; i < f.operands.size(); ++i) text.append(i == 0 ? "" : ", ").append(show(f.operands[i], 0));
    if (f.from != From::kDefault) text.append(f.from == From::kMeasured ? ", from = measured" : ", from = commanded");
    text.push_back(')');
    return text;
  }

  static std::string interval(const Interval& i) {
    if (!i.given) return {};
    return fmt::format("[{}{},{}{}]", number_text(i.low), time_unit(i.low_unit), number_text(i.high), time_unit(i.high_unit));
  }

  // Right behind the number where it is made of letters, else in brackets.
  static std::string time_unit(const std::string& unit) {
    const auto plain = [](char c) { return is_letter(c) && static_cast<unsigned char>(c) < 0x80; };
    return std::all_of(unit.begin(), unit.end(), plain) ? unit : fmt::format(" [{}]", unit);
  }

  bool all_brackets_;
};

}  // namespace

bool is_condition(Op op) { return op >= Op::kCompare; }

const char* to_string(Comparison comparison) {
  switch (comparison) {
    case Comparison::kLess:
      return "<";
    case Comparison::kLessEqual:
      return "<=";
    case Comparison::kGreater:
      return ">";
    case Comparison::kGreaterEqual:
      return ">=";
    case Comparison::kEqual:
      return "==";
  }
  return "";
}

const char* word(Op op) {
  constexpr const char* kWords[] = {"a number",   "a channel",
                                    "*",          "-",
                                    "+",          "-",
                                    "*",          "/",
                                    "a function", "a function of the caller's own",
                                    "<=",         "== +-",
                                    "in",         "not",
                                    "and",        "xor",
                                    "or",         "->",
                                    "<->",        "next",
                                    "previous",   "always",
                                    "eventually", "historically",
                                    "once",       "until",
                                    "release",    "since",
                                    "unless",     "a channel",
                                    "true",       "false",
                                    "rise",       "fall",
                                    "hysteresis"};
  return kWords[static_cast<std::size_t>(op)];
}

std::string print(const Formula& formula) { return Printer(false).show(formula, 0); }
std::string bracketed(const Formula& formula) { return Printer(true).show(formula, 0); }

std::string quoted_name(std::string_view name) {
  const auto plain = [](char c) { return is_letter(c) || is_digit(c) || c == '.'; };
  bool quotes = name.empty() || !is_letter(name.front()) || !std::all_of(name.begin(), name.end(), plain) || is_reserved(name) ||
                name.back() == '.' || name.find("..") != name.npos;
  // Bytes beyond ASCII may spell a sign such as the one for "at most".
  quotes = quotes || std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (!quotes) return std::string(name);
  const char quote = name.find('"') == name.npos ? '"' : '`';
  return fmt::format("{}{}{}", quote, name, quote);
}

std::string number_text(double number) { return fmt::format("{}", number); }

}  // namespace kizzasi::logic
