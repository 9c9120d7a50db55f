#include "kizzasi/logic/formula.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "kizzasi/base/json.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi::logic {
namespace {

std::vector<Json> golden(const std::string& file) {
  std::ifstream in(fmt::format("{}/tests/golden/logic/{}", KIZZASI_SOURCE_DIR, file));
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(*Json::parse(line, file));
  EXPECT_FALSE(lines.empty()) << file;
  return lines;
}

Result<Formula> parse(const std::string& text) { return parse_formula({text, "test"}); }

TEST(Formula, BindsAsTheReferenceSays) {
  for (const Json& line : golden("parse.jsonl")) {
    const std::string& text = line.find("text")->string();
    const auto formula = parse(text);
    ASSERT_TRUE(formula) << text << ": " << formula.error().text();
    EXPECT_EQ(bracketed(*formula), line.find("bracketed")->string()) << text;
    const auto again = parse(bracketed(*formula));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *formula);
  }
}

TEST(Formula, CountsTheSamplesOfAnInterval) {
  for (const Json& line : golden("intervals.jsonl")) {
    const std::string& text = line.find("formula")->string();
    const auto formula = parse(text);
    ASSERT_TRUE(formula) << text << ": " << formula.error().text();
    const std::string& period = line.find("period")->string();
    const std::size_t unit = period.find_first_not_of("0123456789");
    const double scale = period.substr(unit) == "ns" ? 1 : period.substr(unit) == "us" ? 1e3 : period.substr(unit) == "ms" ? 1e6 : 1e9;
    const auto period_ns = static_cast<std::int64_t>(std::stod(period) * scale);
    const auto samples = sample_interval(formula->interval, period_ns, {text, "test"});
    const Json& expected = *line.find("samples");
    if (expected.is_null()) {
      EXPECT_FALSE(samples) << text;
    } else {
      ASSERT_TRUE(samples) << text << ": " << samples.error().text();
      EXPECT_EQ(samples->low, expected.items()[0].integer()) << text;
      EXPECT_EQ(samples->high, expected.items()[1].integer()) << text;
    }
  }
}

// Any formula at all, by chance.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : rng_(seed) {}

  Formula condition(int depth) {
    constexpr Op kUnary[] = {Op::kNot, Op::kNext, Op::kPrevious, Op::kAlways, Op::kEventually, Op::kHistorically, Op::kOnce};
    constexpr Op kBinary[] = {Op::kAnd, Op::kXor, Op::kOr, Op::kImplies, Op::kIff, Op::kUntil, Op::kRelease, Op::kSince, Op::kUnless};
    Formula f;
    const std::uint64_t kind = depth == 0 ? 0 : rng_.below(4);
    if (kind == 1) {
      f.op = kUnary[rng_.below(7)];
      f.operands = {condition(depth - 1)};
      f.strong = (f.op == Op::kNext || f.op == Op::kPrevious) && rng_.below(2) == 0;
      if (f.op != Op::kNot && !f.strong) f.interval = interval();
    } else if (kind == 2) {
      f.op = kBinary[rng_.below(9)];
      f.operands = {condition(depth - 1), condition(depth - 1)};
      if (f.op >= Op::kUntil) f.interval = interval();
    } else {
      comparison(f, depth);
    }
    return f;
  }

 private:
  void comparison(Formula& f, int depth) {
    switch (rng_.below(6)) {
      case 0:
        f.op = Op::kIn;
        f.operands = {number(depth), number(depth), number(depth)};
        break;
      case 1:
        f.op = Op::kWithin;
        f.operands = {number(depth), number(depth), number(depth)};
        break;
      case 2:
        f.op = Op::kCompare;
        f.comparisons = {Comparison::kLessEqual, Comparison::kLess};
        f.operands = {number(depth), number(depth), number(depth)};
        break;
      default:
        f.op = Op::kCompare;
        f.comparisons = {static_cast<Comparison>(rng_.below(5))};
        f.operands = {number(depth), number(depth)};
    }
  }

  Formula number(int depth) {
    constexpr const char* kNames[] = {"x", "joint1.angle", "room temp", "G", "c3", "always", "a\"b", "temp\xC3\xA9rature", "2nd", "in"};
    constexpr const char* kUnits[] = {"", "", "V", "m/s", "degC"};
    Formula f;
    switch (depth == 0 ? rng_.below(2) : rng_.below(6)) {
      case 0:
        f.op = Op::kNumber;
        f.number = (rng_.below(2) == 0 ? 1 : -1) * (rng_.below(2) == 0 ? static_cast<double>(rng_.below(100)) : rng_.uniform() * 1e-7);
        f.text = kUnits[rng_.below(5)];
        return f;
      case 1:
        f.op = rng_.below(8) == 0 ? Op::kEveryChannel : Op::kChannel;
        if (f.op == Op::kChannel) f.text = kNames[rng_.below(10)];
        return f;
      case 2: {
        f.op = Op::kNegate;
        f.operands = {number(depth - 1)};
        if (f.operands[0].op == Op::kNumber) return f.operands[0];  // -3 is a number
        return f;
      }
      case 3:
        return call(depth - 1);
      default:
        f.op = static_cast<Op>(static_cast<std::uint64_t>(Op::kAdd) + rng_.below(4));
        f.operands = {number(depth - 1), number(depth - 1)};
        return f;
    }
  }

  Formula call(int depth) {
    constexpr const char* kOne[] = {"abs", "rate", "accel", "norm"};
    constexpr const char* kMany[] = {"min", "max", "sum", "mean", "norm1", "norminf"};
    Formula f;
    f.op = Op::kCall;
    if (rng_.below(2) == 0) {
      f.text = kMany[rng_.below(6)];
      f.operands = {number(depth), number(depth)};
    } else {
      f.text = kOne[rng_.below(4)];
      f.operands = {number(depth)};
      if (f.text == "rate" || f.text == "accel") f.from = static_cast<From>(rng_.below(3));
    }
    return f;
  }

  Interval interval() {
    Interval i;
    i.given = rng_.below(2) == 0;
    if (!i.given) return i;
    i.low = static_cast<double>(rng_.below(10));
    i.high = i.low + static_cast<double>(rng_.below(10)) / 2;
    if (rng_.below(2) == 0) i.low_unit = i.high_unit = "ms";
    return i;
  }

  Rng rng_;
};

TEST(Formula, PrintedTextReadsBackToTheSameTree) {
  Chance chance(7);
  for (int i = 0; i < 4'000; ++i) {
    const Formula f = chance.condition(static_cast<int>(i % 5));
    for (const std::string& text : {print(f), bracketed(f)}) {
      const auto again = parse(text);
      ASSERT_TRUE(again) << text << ": " << again.error().text();
      ASSERT_EQ(*again, f) << text << "\n" << print(*again);
    }
  }
}

TEST(Formula, WordsLettersAndSignsMeanTheSame) {
  const std::pair<const char*, const char*> kSame[] = {
      {"G x > 0", "always x > 0"},
      {"F[1, 2] x > 0", "eventually[1:2] x > 0"},
      {"x > 0 U y > 0", "x > 0 until y > 0"},
      {"!(x > 0) & y > 0", "not (x > 0) and y > 0"},
      {"x > 0 || y > 0", "x > 0 or y > 0"},
      {"x > 0 implies y > 0", "x > 0 -> y > 0"},
      {"x \xE2\x89\xA4 3", "x <= 3"},
      {"x == 3 \xC2\xB1 1", "x == 3 +- 1"},
      {"x <= 5V", "x <= 5 [V]"},
      {"`x` <= +5", "x <= 5"},
      {"((x)) <= (5)", "x <= 5"},
      {"x+-3<=5", "x + -3 <= 5"},
  };
  for (const auto& [one, other] : kSame) {
    const auto a = parse(one), b = parse(other);
    if (std::string(one) == "x+-3<=5") {  // +- is one sign; apart they are two
      EXPECT_FALSE(a);
      continue;
    }
    ASSERT_TRUE(a) << one << ": " << a.error().text();
    ASSERT_TRUE(b) << other;
    EXPECT_EQ(*a, *b) << one;
  }
}

TEST(Formula, DeepAndLongTextsEndInAnErrorNotInACrash) {
  for (const std::string_view piece : {"(", "-", "not ", "G ", "x <= 1 -> ", "abs(", "x > 0 U ", "x + "}) {
    std::string text;
    while (text.size() < 60'000) text.append(piece);
    EXPECT_FALSE(parse(text)) << piece;
  }
  EXPECT_FALSE(parse(std::string(70'000, ' ')));
}

}  // namespace
}  // namespace kizzasi::logic
