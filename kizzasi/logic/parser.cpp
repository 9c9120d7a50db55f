#include "kizzasi/logic/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "kizzasi/base/suggest.h"
#include "kizzasi/logic/bends.h"
#include "kizzasi/logic/named_sets.h"

namespace kizzasi::logic {
namespace {

constexpr std::size_t kLongestText = 64 * 1024;
constexpr int kDeepestNesting = 60;  // of brackets and operators that recurse
constexpr int kDeepestTree = 500;    // of the tree; long sums lean to the left

struct FunctionRule {
  std::string_view name;
  std::size_t least, most;  // arguments
  bool looks_back = false;  // takes from = measured | commanded
  bool conditions = false;  // its arguments are conditions
};
constexpr std::array<FunctionRule, 20> kFunctions{
    {{"abs", 1, 1},        {"min", 2, 1024},     {"max", 2, 1024},     {"norm", 1, 1024},           {"norm1", 1, 1024},
     {"norminf", 1, 1024}, {"sum", 1, 1024},     {"mean", 1, 1024},    {"rate", 1, 1, true},        {"accel", 1, 1, true},
     {"prev", 1, 2, true}, {"derivative", 2, 2}, {"integral", 2, 2},   {"variance", 2, 2},          {"trend", 2, 2},
     {"hour", 0, 0},       {"weekday", 0, 0},    {"hysteresis", 3, 3}, {"rise", 1, 1, false, true}, {"fall", 1, 1, false, true}}};

struct TemporalWord {
  std::string_view word, letter;
  Op op;
};
// The words with an underscore are those of Breach; they bind an interval.
constexpr std::array<TemporalWord, 8> kUnary{{{"always", "G", Op::kAlways},
                                              {"eventually", "F", Op::kEventually},
                                              {"next", "X", Op::kNext},
                                              {"previous", "Y", Op::kPrevious},
                                              {"once", "O", Op::kOnce},
                                              {"historically", "H", Op::kHistorically},
                                              {"alw_", "alw_", Op::kAlways},
                                              {"ev_", "ev_", Op::kEventually}}};
constexpr std::array<TemporalWord, 5> kBinary{{{"until", "U", Op::kUntil},
                                               {"release", "R", Op::kRelease},
                                               {"since", "S", Op::kSince},
                                               {"unless", "W", Op::kUnless},
                                               {"until_", "until_", Op::kUntil}}};

// Recursive descent, one function a level of binding. A failure is remembered once and unwinds through empty results.
class Parser {
 public:
  Parser(const Source& source, std::vector<Token> tokens) : source_(source), tokens_(std::move(tokens)) {}

  Result<Formula> run() {
    auto formula = condition(iff());
    if (formula && now().kind != Token::Kind::kEnd) formula = unexpected_token("the end of the constraint, or an operator such as and");
    if (error_) return tl::unexpected(*error_);
    return *std::move(formula);
  }

 private:
  using Parsed = std::optional<Formula>;

  Parsed iff() {
    if (++nesting_ > kDeepestNesting) return bad(now().offset, "the constraint is nested too deeply", "at most 60 levels", "");
    Parsed left = joined(Op::kIff, &Parser::implies, {"<->", "iff"});
    --nesting_;
    return left;
  }

  Parsed implies() {
    Parsed left = joined(Op::kOr, &Parser::exclusive, {"|", "or"});
    if (!left || !accept("->", "implies")) return left;
    const std::size_t offset = tokens_[at_ - 1].offset;
    if (++nesting_ > kDeepestNesting) return bad(offset, "the constraint is nested too deeply", "at most 60 levels", "");
    left = condition(std::move(left));
    Parsed right = left ? condition(implies()) : Parsed{};
    --nesting_;
    return pair(Op::kImplies, offset, std::move(left), std::move(right));
  }

  Parsed exclusive() { return joined(Op::kXor, &Parser::conjunction, {"^", "xor"}); }
  Parsed conjunction() { return joined(Op::kAnd, &Parser::until, {"&", "and"}); }

  // Operators that bind to the left.
  Parsed joined(Op op, Parsed (Parser::*tighter)(), std::array<std::string_view, 2> names) {
    Parsed left = (this->*tighter)();
    while (left && accept(names[0], names[1])) {
      const std::size_t offset = tokens_[at_ - 1].offset;
      left = condition(std::move(left));
      if (!left) return {};
      left = pair(op, offset, std::move(left), condition((this->*tighter)()));
    }
    return left;
  }

  Parsed until() {
    Parsed left = unary();
    if (!left || now().kind != Token::Kind::kWord) return left;
    for (const TemporalWord& temporal : kBinary) {
      if (!accept(temporal.word, temporal.letter)) continue;
      const std::size_t offset = tokens_[at_ - 1].offset;
      left = condition(std::move(left));
      Interval range;
      if (!left || !interval(range)) return {};
      if (++nesting_ > kDeepestNesting) return bad(offset, "the constraint is nested too deeply", "at most 60 levels", "");
      Parsed right = condition(until());
      --nesting_;
      Parsed both = pair(temporal.op, offset, std::move(left), std::move(right));
      if (both) both->interval = std::move(range);
      return both;
    }
    return left;
  }

  Parsed unary() {
    const std::size_t offset = now().offset;
    if (accept("!", "not") || accept("~", "~")) return prefixed(Op::kNot, offset, false, {});
    if (now().kind != Token::Kind::kWord) return comparison();
    for (const TemporalWord& temporal : kUnary) {
      if (!accept(temporal.word, temporal.letter)) continue;
      bool strong = false;
      if ((temporal.op == Op::kNext || temporal.op == Op::kPrevious) && now().text == "[" && ahead(1).text == "!" && ahead(2).text == "]") {
        strong = true;
        at_ += 3;
      }
      Interval range;
      if (!strong && !interval(range)) return {};
      return prefixed(temporal.op, offset, strong, std::move(range));
    }
    return comparison();
  }

  Parsed prefixed(Op op, std::size_t offset, bool strong, Interval range) {
    if (++nesting_ > kDeepestNesting) return bad(offset, "the constraint is nested too deeply", "at most 60 levels", "");
    Parsed inner = condition(unary());
    --nesting_;
    if (!inner) return {};
    Formula f = node(op, offset);
    f.strong = strong;
    f.interval = std::move(range);
    return grown(std::move(f), *std::move(inner));
  }

  Parsed comparison() {
    const std::size_t begin = now().offset;
    Parsed first = sum();
    if (!first) return {};
    if (is_word("in")) return membership(*std::move(first), begin);
    Formula chain = node(Op::kCompare, begin);
    chain.operands.push_back(*std::move(first));
    while (const auto sign = comparison_sign()) {
      const std::size_t offset = now().offset;
      if (!number(chain.operands.back())) return {};
      ++at_;
      if (!chain.comparisons.empty() && !goes_on(chain.comparisons.back(), *sign)) {
        return bad(offset, fmt::format("the chain turns: {} after {}", to_string(*sign), to_string(chain.comparisons.back())),
                   "one direction, such as a <= x <= b", "Join two constraints with and.");
      }
      chain.comparisons.push_back(*sign);
      Parsed next = sum();
      if (!next || !number(*next)) return {};
      chain.operands.push_back(*std::move(next));
      if (*sign == Comparison::kEqual && accept("+-", "+-")) return tolerance(std::move(chain));
    }
    if (error_) return {};
    if (chain.comparisons.empty()) return std::move(chain.operands.front());
    return measured_depth(std::move(chain));
  }

  Parsed tolerance(Formula chain) {
    Parsed size = sum();
    if (!size || !number(*size)) return {};
    chain.op = Op::kWithin;
    chain.comparisons.clear();
    chain.operands.push_back(*std::move(size));
    return measured_depth(std::move(chain));
  }

  Parsed membership(Formula value, std::size_t begin) {
    if (ahead(1).kind == Token::Kind::kWord && ahead(2).text == "(" && ahead(2).kind == Token::Kind::kSign)
      return set_membership(std::move(value));
    if (!number(value)) return {};
    ++at_;
    Formula f = node(Op::kIn, begin);
    f.operands.push_back(std::move(value));
    if (!expect("[", "[low, high] after in")) return {};
    for (int end = 0; end < 2; ++end) {
      Parsed bound = sum();
      if (!bound || !number(*bound)) return {};
      f.operands.push_back(*std::move(bound));
      if (!expect(end == 0 ? "," : "]", end == 0 ? ", between the two ends" : "] after the upper end")) return {};
    }
    return measured_depth(std::move(f));
  }

  // (x, y) in ball([1, 2], 3)
  Parsed set_membership(Formula value) {
    const Token set = ahead(1);
    at_ += 3;
    std::vector<Formula> values = is_list(value) ? std::move(value.operands) : std::vector<Formula>{std::move(value)};
    for (const Formula& one : values) {
      if (!number(one)) return {};
      if (one.op == Op::kEveryChannel) return bad(one.offset, "* stands before a set", "the channels by name", "");
    }
    std::vector<SetArgument> arguments;
    while (!is_sign(")")) {
      SetArgument argument{is_sign("["), now().offset, {}};
      if (argument.list) ++at_;
      do {
        Parsed one = sum();
        if (!one || !number(*one)) return {};
        argument.numbers.push_back(*std::move(one));
      } while (argument.list && accept(",", ","));
      if (argument.list && !expect("]", ", between numbers, or a closing ]")) return {};
      arguments.push_back(std::move(argument));
      if (!is_sign(")") && !expect(",", ", between arguments, or )")) return {};
    }
    ++at_;
    auto made = set_condition(set.text, set.offset, values, arguments, source_);
    if (made) return measured_all(*std::move(made));
    if (!error_) error_ = std::move(made.error());
    return {};
  }

  // A list of numbers in brackets: only sets take one.
  static bool is_list(const Formula& f) { return f.op == Op::kCall && f.text.empty(); }

  std::optional<Comparison> comparison_sign() {
    const Token& token = now();
    if (token.kind != Token::Kind::kSign) return {};
    if (token.text == "<") return Comparison::kLess;
    if (token.text == "<=") return Comparison::kLessEqual;
    if (token.text == ">") return Comparison::kGreater;
    if (token.text == ">=") return Comparison::kGreaterEqual;
    if (token.text == "==") return Comparison::kEqual;
    if (token.text == "=") (void)bad(token.offset, "a single = stands here", "== for equality, or <= or >=", "");
    if (token.text == "=>") (void)bad(token.offset, "=> stands here", ">= for 'at least', -> for 'implies'", "");
    if (token.text == "!=") (void)bad(token.offset, "!= cannot be held: every number but one obeys it", "< <= > >= or ==", "");
    return {};
  }

  static bool goes_on(Comparison before, Comparison after) {
    const auto rising = [](Comparison c) { return c == Comparison::kLess || c == Comparison::kLessEqual; };
    const auto falling = [](Comparison c) { return c == Comparison::kGreater || c == Comparison::kGreaterEqual; };
    return (rising(before) && rising(after)) || (falling(before) && falling(after));
  }

  Parsed sum() {
    Parsed left = product();
    for (;;) {
      if (!left) return {};
      const bool plus = is_sign("+"), minus = is_sign("-");
      if (!plus && !minus) return left;
      const std::size_t offset = now().offset;
      ++at_;
      left = arithmetic(plus ? Op::kAdd : Op::kSubtract, offset, std::move(left), product());
    }
  }

  Parsed product() {
    Parsed left = sign();
    for (;;) {
      if (!left) return {};
      const bool times = is_sign("*"), over = is_sign("/");
      if (!times && !over) return left;
      const std::size_t offset = now().offset;
      ++at_;
      left = arithmetic(times ? Op::kMultiply : Op::kDivide, offset, std::move(left), sign());
    }
  }

  Parsed sign() {
    const std::size_t offset = now().offset;
    if (is_sign("+")) {
      ++at_;
      return bounded_sign();
    }
    if (!is_sign("-")) return primary();
    ++at_;
    Parsed inner = bounded_sign();
    if (!inner || !number(*inner)) return {};
    if (inner->op == Op::kNumber) {  // -3 is a number
      inner->number = -inner->number;
      inner->offset = offset;
      return inner;
    }
    return grown(node(Op::kNegate, offset), *std::move(inner));
  }

  Parsed bounded_sign() {
    if (++nesting_ > kDeepestNesting) return bad(now().offset, "the constraint is nested too deeply", "at most 60 levels", "");
    Parsed inner = sign();
    --nesting_;
    return inner;
  }

  Parsed primary() {
    const Token token = now();
    if (token.kind == Token::Kind::kNumber) {
      ++at_;
      Formula f = node(Op::kNumber, token.offset);
      f.number = token.number;
      f.text = token.unit;
      return f;
    }
    if (token.kind == Token::Kind::kQuoted) return channel(token);
    if (token.kind == Token::Kind::kWord) {
      if (ahead(1).text == "(" && ahead(1).kind == Token::Kind::kSign && !is_reserved(token.text)) return call(token);
      if (!is_reserved(token.text)) return channel(token);
      if (token.text == "true" || token.text == "false") {
        ++at_;
        return node(token.text == "true" ? Op::kTrue : Op::kFalse, token.offset);
      }
      if (token.text == "inf" || token.text == "nan" || token.text == "infinity") {
        return bad(token.offset, fmt::format("'{}' is no limit", token.text), "a number, such as 3.5",
                   "Leave the limit out where there is none.");
      }
      return bad(token.offset, fmt::format("the word '{}' stands where a number or a channel should", token.text), "a number or a channel",
                 fmt::format("A channel of that name goes in quotes: \"{}\".", token.text));
    }
    if (is_sign("*")) {
      ++at_;
      return node(Op::kEveryChannel, token.offset);
    }
    if (is_sign("(")) {
      ++at_;
      Parsed inner = iff();
      if (inner && is_sign(",")) return list(token.offset, *std::move(inner));
      if (!inner || !expect(")", "a closing )")) return {};
      return inner;
    }
    return unexpected_token("a number or a channel");
  }

  Parsed list(std::size_t offset, Formula first) {
    Formula f = node(Op::kCall, offset);
    f.operands.push_back(std::move(first));
    while (accept(",", ",")) {
      Parsed next = sum();
      if (!next) return {};
      f.operands.push_back(*std::move(next));
    }
    if (!expect(")", "a closing )")) return {};
    if (!is_word("in")) return unexpected_token("in and a set, such as ball(2), after a list");
    return measured_depth(std::move(f));
  }

  Parsed channel(const Token& token) {
    ++at_;
    if (is_sign("[") && ahead(1).text == "t" && ahead(2).text == "]") at_ += 3;  // x[t], as in Breach
    Formula f = node(Op::kChannel, token.offset);
    f.text = token.text;
    return f;
  }

  Parsed call(const Token& token) {
    const auto* rule = std::find_if(kFunctions.begin(), kFunctions.end(), [&](const FunctionRule& r) { return r.name == token.text; });
    if (rule == kFunctions.end()) {
      for (const std::shared_ptr<const UserFunction>& own : source_.functions) {
        if (own->name == token.text) return own_call(token, own);
      }
      std::vector<std::string> names;
      for (const std::shared_ptr<const UserFunction>& own : source_.functions) names.push_back(own->name);
      for (const FunctionRule& known : kFunctions) names.emplace_back(known.name);
      return bad(token.offset, fmt::format("there is no function '{}'", token.text), fmt::format("one of {}", fmt::join(names, ", ")),
                 did_you_mean(token.text, names));
    }
    at_ += 2;
    Formula f = node(Op::kCall, token.offset);
    f.text = token.text;
    while (!is_sign(")")) {
      if (is_word("from")) {
        if (!source_word(f, *rule)) return {};
        break;
      }
      Parsed argument = iff();
      if (!argument) return {};
      if (rule->conditions) {
        argument = condition(std::move(argument));
        if (!argument) return {};
      } else if (!number(*argument)) {
        return {};
      }
      f.operands.push_back(*std::move(argument));
      if (is_sign(")")) break;
      if (!expect(",", ", between arguments, or )")) return {};
    }
    if (!expect(")", "a closing )")) return {};
    if (f.operands.size() < rule->least || f.operands.size() > rule->most) {
      const std::string wanted = rule->least == rule->most ? fmt::format("{}", rule->least)
                                 : rule->most > 9          ? fmt::format("{} or more", rule->least)
                                                           : fmt::format("{} or {}", rule->least, rule->most);
      return bad(token.offset, fmt::format("{} takes {} argument{}, not {}", f.text, wanted, wanted == "1" ? "" : "s", f.operands.size()),
                 fmt::format("{} argument{}", wanted, wanted == "1" ? "" : "s"), "");
    }
    const Op op = f.text == "rise" ? Op::kRise : f.text == "fall" ? Op::kFall : f.text == "hysteresis" ? Op::kHysteresis : Op::kCall;
    if (op != Op::kCall) f.text.clear();
    f.op = op;
    return measured_depth(std::move(f));
  }

  Parsed own_call(const Token& token, const std::shared_ptr<const UserFunction>& function) {
    at_ += 2;
    Formula f = node(Op::kUser, token.offset);
    f.text = token.text;
    f.function = function;
    const std::size_t wanted = function->arguments;
    if (wanted == 0 || wanted > kMostUserArguments || !function->value) {
      return bad(token.offset, fmt::format("{} has {} arguments{}", f.text, wanted, function->value ? "" : " and no value"),
                 fmt::format("a function of 1 to {} arguments", kMostUserArguments), "");
    }
    while (!is_sign(")")) {
      Parsed argument = iff();
      if (!argument || !number(*argument)) return {};
      f.operands.push_back(*std::move(argument));
      if (!is_sign(")") && !expect(",", ", between arguments, or )")) return {};
    }
    if (!expect(")", "a closing )")) return {};
    if (f.operands.size() != wanted) {
      const char* s = wanted == 1 ? "" : "s";
      return bad(token.offset, fmt::format("{} takes {} argument{}, not {}", f.text, wanted, s, f.operands.size()),
                 fmt::format("{} argument{}", wanted, s), "");
    }
    return measured_depth(std::move(f));
  }

  // from = measured | commanded
  bool source_word(Formula& f, const FunctionRule& rule) {
    if (!rule.looks_back) {
      (void)bad(now().offset, fmt::format("{} does not look back, so it takes no from", f.text), "from only in rate, accel and prev", "");
      return false;
    }
    ++at_;
    if (!expect("=", "from = measured or from = commanded")) return false;
    if (!is_word("measured") && !is_word("commanded")) {
      (void)unexpected_token("measured or commanded");
      return false;
    }
    f.from = is_word("measured") ? From::kMeasured : From::kCommanded;
    ++at_;
    return true;
  }

  // [a, b] or [a:b] after a temporal word; nothing is fine too.
  bool interval(Interval& range) {
    if (!is_sign("[")) return true;
    range.given = true;
    range.offset = now().offset;
    ++at_;
    const bool from_now = is_sign(":");  // [:b]
    if (!from_now && !interval_end(range.low, range.low_unit)) return false;
    if (!is_sign(",") && !is_sign(":")) {
      (void)unexpected_token(", between the two ends of the interval");
      return false;
    }
    const bool open_end = is_sign(":") && ahead(1).text == "]";  // [a:]
    ++at_;
    if (is_word("inf") || open_end) {
      if (!open_end) ++at_;
      range.high = std::numeric_limits<double>::infinity();
    } else if (!interval_end(range.high, range.high_unit)) {
      return false;
    }
    return expect("]", "] after the interval");
  }

  bool interval_end(double& value, std::string& unit) {
    const bool minus = is_sign("-");
    if (minus) ++at_;
    if (now().kind != Token::Kind::kNumber) {
      (void)unexpected_token("a whole number of samples or a time such as 10s");
      return false;
    }
    value = minus ? -now().number : now().number;
    unit = now().unit;
    ++at_;
    return true;
  }

  // Sorts: conditions are true or false, the rest are numbers. A channel that stands where a condition should is a proposition.
  Parsed condition(Parsed f) {
    if (!f || is_condition(f->op)) return f;
    if (f->op == Op::kChannel) {
      f->op = Op::kProposition;
      return f;
    }
    if (is_list(*f)) return bad(f->offset, "a list is no condition", "in and a set after it, such as (x, y) in ball(2)", "");
    return bad(f->offset, fmt::format("'{}' is a number, not a condition", print(*f)), "a comparison, such as x <= 3", "");
  }

  bool number(const Formula& f) {
    if (is_list(f)) {
      (void)bad(f.offset, "a list stands where one number should", "a number", "Lists stand in front of a set alone: (x, y) in ball(2).");
      return false;
    }
    if (!is_condition(f.op)) return true;
    (void)bad(f.offset, fmt::format("'{}' is true or false, not a number", print(f)), "a number", "Join conditions with and, or, not.");
    return false;
  }

  Parsed arithmetic(Op op, std::size_t offset, Parsed left, Parsed right) {
    if (!left || !right || !number(*left) || !number(*right)) return {};
    const std::size_t begin = left->offset;
    const bool by_zero = op == Op::kDivide && constant_of(*right) == 0.0;  // told where it is enforced: a monitor finds it unknown
    Parsed f = pair(op, offset, std::move(left), std::move(right));
    if (!f || by_zero || std::isfinite(constant_of(*f).value_or(0))) return f;
    return bad(begin, fmt::format("'{}' is outside what a double holds", print(*f)), "a number up to 1.7e308 in size",
               "Leave the limit out where there is none.");
  }

  Parsed pair(Op op, std::size_t offset, Parsed left, Parsed right) {
    if (!left || !right) return {};
    Formula f = node(op, offset);
    f.operands.push_back(*std::move(left));
    f.operands.push_back(*std::move(right));
    return measured_depth(std::move(f));
  }

  Parsed grown(Formula f, Formula inner) {
    f.operands.push_back(std::move(inner));
    return measured_depth(std::move(f));
  }

  // Of a tree that was put together elsewhere.
  Parsed measured_all(Formula f) {
    for (Formula& operand : f.operands) {
      Parsed inner = measured_all(std::move(operand));
      if (!inner) return {};
      operand = *std::move(inner);
    }
    f.depth = 1;
    return measured_depth(std::move(f));
  }

  Parsed measured_depth(Formula f) {
    for (const Formula& operand : f.operands) f.depth = std::max(f.depth, operand.depth + 1);
    if (f.depth > kDeepestTree) {
      return bad(f.offset, "the constraint is too long", fmt::format("at most {} operators in a row", kDeepestTree),
                 "sum(...) adds many channels at once.");
    }
    return f;
  }

  static Formula node(Op op, std::size_t offset) {
    Formula f;
    f.op = op;
    f.offset = offset;
    return f;
  }

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(std::size_t count) const { return tokens_[std::min(at_ + count, tokens_.size() - 1)]; }
  bool is_sign(std::string_view sign) const { return now().kind == Token::Kind::kSign && now().text == sign; }
  bool is_word(std::string_view word) const { return now().kind == Token::Kind::kWord && now().text == word; }

  bool accept(std::string_view a, std::string_view b) {
    if (now().kind != Token::Kind::kSign && now().kind != Token::Kind::kWord) return false;
    if (now().text != a && now().text != b) return false;
    ++at_;
    return true;
  }

  bool expect(std::string_view sign, std::string_view expected) {
    if (is_sign(sign)) {
      ++at_;
      return true;
    }
    (void)unexpected_token(std::string(expected));
    return false;
  }

  Parsed unexpected_token(std::string expected) {
    const Token& token = now();
    if (token.kind == Token::Kind::kEnd) return bad(token.offset, "the constraint ends too early", std::move(expected), "");
    std::string hint;
    if (token.text == "," && at_ > 0 && tokens_[at_ - 1].kind == Token::Kind::kNumber) hint = "Numbers take a decimal point: 3.5.";
    const std::string_view found = source_.text.substr(token.offset, token.end - token.offset);
    return bad(token.offset, fmt::format("'{}' stands here", found), std::move(expected), std::move(hint));
  }

  Parsed bad(std::size_t offset, std::string what, std::string expected, std::string hint) {
    if (!error_) error_ = Error{Fault::kBadInput, std::move(what), source_.place(offset), std::move(expected), std::move(hint)};
    return {};
  }

  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Formula> parse_formula(const Source& source) {
  if (source.text.size() > kLongestText) {
    return fail(
        {Fault::kBadInput, fmt::format("the constraint is {} bytes long", source.text.size()), source.place(0), "at most 65536 bytes", ""});
  }
  auto tokens = tokenize(source);
  if (!tokens) return tl::unexpected(tokens.error());
  if (tokens->size() == 1) return fail({Fault::kBadInput, "the constraint is empty", source.place(0), "a condition, such as x <= 3", ""});
  return Parser(source, *std::move(tokens)).run();
}

}  // namespace kizzasi::logic
