#include "kizzasi/logic/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kizzasi/logic/bends.h"
#include "kizzasi/logic/channel_names.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi::logic {
namespace {

struct Symbol {
  std::string_view name;
  double numerator, denominator;
  std::string_view made_of;  // of base units, each one letter with its exponent: m, k (kg), s, A, K, n (mol), r (rad)
  bool prefixed = false;     // takes SI prefixes
  double offset = 0;
};

constexpr double kPi = 3.141592653589793;
// Factors are quotients of numbers that a double holds exactly, wherever they are rational.
constexpr Symbol kSymbols[] = {
    {"m", 1, 1, "m1", true},
    {"g", 1, 1000, "k1", true},
    {"s", 1, 1, "s1", true},
    {"A", 1, 1, "A1", true},
    {"K", 1, 1, "K1", true},
    {"mol", 1, 1, "n1", true},
    {"rad", 1, 1, "r1", true},
    {"deg", kPi, 180, "r1"},
    {"rev", 2 * kPi, 1, "r1"},
    {"rpm", 2 * kPi, 60, "r1s-1"},
    {"min", 60, 1, "s1"},
    {"h", 3600, 1, "s1"},
    {"d", 86400, 1, "s1"},
    {"day", 86400, 1, "s1"},
    {"week", 604800, 1, "s1"},
    {"Hz", 1, 1, "s-1", true},
    {"N", 1, 1, "k1m1s-2", true},
    {"Pa", 1, 1, "k1m-1s-2", true},
    {"bar", 100000, 1, "k1m-1s-2", true},
    {"atm", 101325, 1, "k1m-1s-2"},
    {"psi", 8896443230521, 1290320000, "k1m-1s-2"},
    {"J", 1, 1, "k1m2s-2", true},
    {"Wh", 3600, 1, "k1m2s-2", true},
    {"W", 1, 1, "k1m2s-3", true},
    {"V", 1, 1, "k1m2s-3A-1", true},
    {"VA", 1, 1, "k1m2s-3", true},
    {"Ohm", 1, 1, "k1m2s-3A-2", true},
    {"ohm", 1, 1, "k1m2s-3A-2", true},
    {"S", 1, 1, "k-1m-2s3A2", true},
    {"Ah", 3600, 1, "A1s1", true},
    {"Wb", 1, 1, "k1m2s-2A-1", true},
    {"l", 1, 1000, "m3", true},
    {"L", 1, 1000, "m3", true},
    {"t", 1000, 1, "k1", true},
    {"ha", 10000, 1, "m2"},
    {"ft", 3048, 10000, "m1"},
    {"mi", 1609344, 1000, "m1"},
    {"mph", 1609344, 3600000, "m1s-1"},
    {"lb", 45359237, 100000000, "k1"},
    {"degC", 1, 1, "K1", false, 273.15},
    {"\xC2\xB0"
     "C",
     1, 1, "K1", false, 273.15},
    {"degF", 5, 9, "K1", false, 459.67 * 5 / 9},
    {"\xC2\xB0"
     "F",
     5, 9, "K1", false, 459.67 * 5 / 9},
    {"\xC2\xB0", kPi, 180, "r1"},
    {"%", 1, 100, ""},
    {"ppm", 1, 1000000, ""},
};

struct Prefix {
  std::string_view name;
  double numerator, denominator;
};
constexpr std::array<Prefix, 13> kPrefixes{{{"k", 1e3, 1},
                                            {"M", 1e6, 1},
                                            {"G", 1e9, 1},
                                            {"T", 1e12, 1},
                                            {"h", 100, 1},
                                            {"da", 10, 1},
                                            {"d", 1, 10},
                                            {"c", 1, 100},
                                            {"m", 1, 1e3},
                                            {"u", 1, 1e6},
                                            {"\xC2\xB5", 1, 1e6},
                                            {"n", 1, 1e9},
                                            {"p", 1, 1e12}}};

// Reads one unit; every factor of it multiplies or divides.
class UnitReader {
 public:
  explicit UnitReader(std::string_view text) : text_(text) {}

  std::optional<UnitMeasure> run() {
    bool over = false, first = true;
    while (skip_spaces(), at_ < text_.size()) {
      if (!first) {
        const char sign = text_[at_];
        if (sign == '/' || sign == '*') {
          over = sign == '/';
          ++at_;
          skip_spaces();
        } else {
          over = false;
        }
      }
      if (!factor(over)) return {};
      first = false;
    }
    if (first) return {};
    std::erase_if(measure_.dimensions, [](const auto& entry) { return entry.second == 0; });
    if (parts_ > 1) measure_.offset = 0;  // a rate of degrees has no zero of its own
    return measure_;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool factor(bool over) {
    ++parts_;
    if (text_[at_] == '1' && (at_ + 1 == text_.size() || !is_digit(text_[at_ + 1]))) {
      ++at_;
      return true;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '%')) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) return false;
    int exponent = 1;
    if (!power(exponent)) return false;
    if (exponent != 1) measure_.offset = 0, ++parts_;
    add(name, over ? -exponent : exponent);
    return true;
  }

  // m2, m^2, s^-1.
  bool power(int& exponent) {
    const bool caret = at_ < text_.size() && text_[at_] == '^';
    if (caret) ++at_;
    const bool minus = at_ < text_.size() && text_[at_] == '-';
    if (minus) ++at_;
    if (at_ == text_.size() || !is_digit(text_[at_])) return !caret && !minus;
    exponent = text_[at_++] - '0';
    if (minus) exponent = -exponent;
    return at_ == text_.size() || !is_digit(text_[at_]);
  }

  void add(std::string_view name, int exponent) {
    const auto symbol = [](std::string_view word) {
      return std::find_if(std::begin(kSymbols), std::end(kSymbols), [&](const Symbol& s) { return s.name == word; });
    };
    if (const auto* known = symbol(name); known != std::end(kSymbols)) return add(*known, 1, 1, exponent);
    for (const Prefix& prefix : kPrefixes) {
      if (!name.starts_with(prefix.name)) continue;
      const auto* known = symbol(name.substr(prefix.name.size()));
      if (known != std::end(kSymbols) && known->prefixed) return add(*known, prefix.numerator, prefix.denominator, exponent);
    }
    measure_.dimensions[std::string(name)] += exponent;
  }

  void add(const Symbol& symbol, double numerator, double denominator, int exponent) {
    for (int i = 0; i < std::abs(exponent); ++i) {
      (exponent > 0 ? measure_.numerator : measure_.denominator) *= numerator * symbol.numerator;
      (exponent > 0 ? measure_.denominator : measure_.numerator) *= denominator * symbol.denominator;
    }
    measure_.offset = symbol.offset;
    for (std::size_t i = 0; i + 1 < symbol.made_of.size();) {
      const char base = symbol.made_of[i++];
      const bool minus = symbol.made_of[i] == '-';
      if (minus) ++i;
      const int power = symbol.made_of[i++] - '0';
      const std::string name = base == 'k' ? "kg" : base == 'n' ? "mol" : base == 'r' ? "rad" : std::string(1, base);
      measure_.dimensions[name] += (minus ? -power : power) * exponent;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int parts_ = 0;
  UnitMeasure measure_;
};

// A factor as numerator over denominator; nothing where the two do not measure the same.
struct Ratio {
  double numerator = 1, denominator = 1;
  double zero = 0;  // value * numerator / denominator + zero
};
std::optional<Ratio> ratio(const std::string& from, const std::string& to) {
  const auto a = measure_of(from), b = measure_of(to);
  if (!a || !b || a->dimensions != b->dimensions) return {};
  Ratio r{a->numerator * b->denominator, a->denominator * b->numerator, 0};
  if (a->offset != b->offset) r.zero = (a->offset - b->offset) * b->denominator / b->numerator;
  if (!std::isfinite(r.numerator) || !std::isfinite(r.denominator)) return {};
  return r;
}

// What an expression measures.
struct Measured {
  enum class Kind { kValue, kDifference, kUnclear };
  std::string unit;  // empty: fits any
  Kind kind = Kind::kValue;
  bool number = false;
};

class Converter {
 public:
  explicit Converter(const Schema& schema) : schema_(schema) {}

  void condition(Formula& f) {
    switch (f.op) {
      case Op::kCompare:
      case Op::kIn:
      case Op::kHysteresis:
        (void)together(f.operands);
        return;
      case Op::kWithin: {
        std::vector<Formula> sides{f.operands[0], f.operands[1]};
        Measured both = together(sides);
        f.operands[0] = std::move(sides[0]);
        f.operands[1] = std::move(sides[1]);
        both.kind = Measured::Kind::kDifference;
        Measured size = number(f.operands[2]);
        bring(f.operands[2], size, both);
        return;
      }
      default:
        for (Formula& operand : f.operands) condition(operand);
    }
  }

 private:
  Measured number(Formula& f) {
    switch (f.op) {
      case Op::kNumber:
        return {f.text, Measured::Kind::kValue, true};
      case Op::kChannel: {
        const auto channel = channel_named(f.text, schema_, {}, 0);
        return {channel ? schema_.channels[*channel].unit : "", Measured::Kind::kValue, false};
      }
      case Op::kEveryChannel:
        return {shared_unit(), Measured::Kind::kValue, false};
      case Op::kNegate: {
        Measured m = number(f.operands[0]);
        if (m.kind == Measured::Kind::kValue) m.kind = Measured::Kind::kUnclear;
        return m;
      }
      case Op::kAdd:
      case Op::kSubtract: {
        const std::vector<Measured> parts = sides(f.operands);
        Measured sum = common(parts, true);
        for (std::size_t i = 0; i < parts.size(); ++i) bring(f.operands[i], parts[i], sum);
        sum.kind = Measured::Kind::kUnclear;
        const bool values = parts[0].kind == Measured::Kind::kValue && parts[1].kind == Measured::Kind::kValue;
        if (f.op == Op::kSubtract && values && !parts[0].number && !parts[1].number) sum.kind = Measured::Kind::kDifference;
        return sum;
      }
      case Op::kMultiply:
      case Op::kDivide: {
        const std::vector<Measured> parts = sides(f.operands);
        const std::string &a = parts[0].unit, &b = parts[1].unit;
        const bool times = f.op == Op::kMultiply;
        Measured m{b.empty() ? a : times && a.empty() ? b : "", Measured::Kind::kUnclear, parts[0].number && parts[1].number};
        const bool difference = parts[0].kind == Measured::Kind::kDifference || parts[1].kind == Measured::Kind::kDifference;
        if (difference) m.kind = Measured::Kind::kDifference;
        return m;
      }
      case Op::kCall:
        return call(f);
      case Op::kUser:  // each argument by itself, as it is written; the result in the function's own unit
        (void)sides(f.operands);
        return {f.function->unit, Measured::Kind::kUnclear, false};
      default:
        return {};
    }
  }

  Measured call(Formula& f) {
    if (f.text == "hour" || f.text == "weekday") return {};
    const char* per = schema_.step_ns == 0 ? "row" : "s";
    const bool window =
        f.operands.size() == 2 && f.operands[1].op == Op::kNumber && (nanoseconds(f.operands[1].text) || f.operands[1].text == "samples");
    const auto over_time = [&](const std::string& unit, int order) {
      return fmt::format("{}/{}{}", unit.empty() ? "*" : unit, per, order > 1 ? fmt::format("{}", order) : "");
    };
    if (f.text == "rate" || f.text == "accel" || f.text == "derivative" || f.text == "trend") {
      Measured m = number(f.operands[0]);
      const bool given =
          f.text == "derivative" && f.operands[1].op == Op::kNumber && f.operands[1].number >= 1 && f.operands[1].number <= 8;
      const int order = f.text == "accel" ? 2 : given ? static_cast<int>(f.operands[1].number) : 1;
      return {over_time(m.unit, order), Measured::Kind::kDifference, false};
    }
    if (f.text == "integral" || f.text == "variance") {
      (void)number(f.operands[0]);
      return {};
    }
    if (f.text == "prev" || (window && (f.text == "mean" || f.text == "min" || f.text == "max"))) return number(f.operands[0]);
    Measured m = together(f.operands);
    const bool keeps = f.text == "min" || f.text == "max" || f.text == "mean";
    if (!keeps && m.kind == Measured::Kind::kValue) m.kind = Measured::Kind::kUnclear;
    return m;
  }

  std::vector<Measured> sides(std::vector<Formula>& list) {
    std::vector<Measured> parts;
    for (Formula& f : list) parts.push_back(number(f));
    return parts;
  }

  // Brings a list to the unit of its first channel, else of its first number.
  Measured together(std::vector<Formula>& list) {
    const std::vector<Measured> parts = sides(list);
    const Measured all = common(parts, false);
    for (std::size_t i = 0; i < parts.size(); ++i) bring(list[i], parts[i], all);
    return all;
  }

  static Measured common(const std::vector<Measured>& parts, bool sum) {
    const Measured* first = nullptr;
    bool unclear = sum, difference = false, numbers = true;
    for (const Measured& part : parts) {
      numbers = numbers && part.number;
      unclear = unclear || (part.kind == Measured::Kind::kUnclear && !part.unit.empty());
      difference = difference || part.kind == Measured::Kind::kDifference;
      if (!part.unit.empty() && (first == nullptr || (first->number && !part.number))) first = &part;
    }
    Measured m{first == nullptr ? "" : first->unit, unclear ? Measured::Kind::kUnclear : Measured::Kind::kValue, numbers};
    if (difference && !sum) m.kind = Measured::Kind::kDifference;
    return m;
  }

  static void bring(Formula& f, const Measured& is, const Measured& to) {
    if (units_fit(is.unit, to.unit)) return;
    const auto by = ratio(is.unit, to.unit);
    if (!by) return;
    double zero = by->zero;
    if (zero != 0 && to.kind == Measured::Kind::kUnclear) return;
    if (to.kind == Measured::Kind::kDifference || is.kind == Measured::Kind::kDifference) zero = 0;
    if (f.op == Op::kNumber) {
      f.number = f.number * by->numerator / by->denominator + zero;
      f.text = to.unit;
      return;
    }
    // A product of two units fits any, so the factor carries the one that is left.
    const std::string unit = fmt::format("{} per {}", to.unit, is.unit);
    f = joined(Op::kMultiply, f, plain_number(by->numerator / by->denominator, unit, f.offset), f.offset);
    if (zero != 0) f = joined(Op::kAdd, f, plain_number(zero, to.unit, f.offset), f.offset);
  }

  // Of all predicted channels, where they have one.
  std::string shared_unit() const {
    std::string unit;
    for (const std::size_t channel : schema_.with_role(Role::kTarget)) {
      const std::string& own = schema_.channels[channel].unit;
      if (!unit.empty() && !own.empty() && own != unit) return "";
      if (unit.empty()) unit = own;
    }
    return unit;
  }

  const Schema& schema_;
};

}  // namespace

std::optional<UnitMeasure> measure_of(std::string_view unit) { return UnitReader(unit).run(); }

std::optional<double> converted(double value, const std::string& from, const std::string& to, bool difference) {
  const auto by = ratio(from, to);
  if (!by) return {};
  return value * by->numerator / by->denominator + (difference ? 0 : by->zero);
}

Formula in_common_units(const Formula& formula, const Schema& schema) {
  Formula out = formula;
  Converter(schema).condition(out);
  return out;
}

}  // namespace kizzasi::logic
