// Conditions as programs: the user's own arithmetic, in the user's own order, in double. What decides whether a value obeys is this code
// alone.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "kizzasi/logic/formula.h"

namespace kizzasi::logic {

// The past of a stream: for every channel the last measured and the last emitted value with their times, as plain bytes.
constexpr std::size_t kPastBytes = 32;  // of one channel: measured value, its time, emitted value, its time

struct Past {
  const std::byte* bytes = nullptr;  // (channels, kPastBytes); null: no past

  double value(std::size_t channel, From from) const noexcept {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (bytes != nullptr) std::memcpy(&value, bytes + channel * kPastBytes + (from == From::kMeasured ? 0 : 16), sizeof value);
    return value;
  }
  std::int64_t time(std::size_t channel, From from) const noexcept {
    std::int64_t time = 0;
    if (bytes != nullptr) std::memcpy(&time, bytes + channel * kPastBytes + (from == From::kMeasured ? 8 : 24), sizeof time);
    return time;
  }
};

// What a condition looks at: one frame, its time and the past. `tried` stands for `tried_channel` in place of the frame's own value.
struct Moment {
  const double* value = nullptr;  // (channels); null: nothing is known of the frame
  Past past;
  std::int64_t time_ns = 0;
  bool timed = true;  // false: rows are counted, and a rate is the change from row to row
  std::size_t tried_channel = static_cast<std::size_t>(-1);
  double tried = 0;

  double now(std::size_t channel) const noexcept {
    if (channel == tried_channel) return tried;
    return value == nullptr ? std::numeric_limits<double>::quiet_NaN() : value[channel];
  }
  // Seconds (rows) since the past value of this channel; 0 where no time has passed.
  double elapsed(std::size_t channel, From from) const noexcept {
    if (!timed) return 1;
    const std::int64_t then = past.time(channel, from);
    if (time_ns <= then) return 0;
    return static_cast<double>(static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(then)) / 1e9;
  }
};

// What a condition reads: a channel's value now, its previous value, or its rate.
enum class Tense : std::uint8_t { kNow, kPrevious, kRate };
struct Reading {
  std::uint32_t channel = 0;
  Tense tense = Tense::kNow;
  From from = From::kMeasured;
  friend bool operator==(const Reading&, const Reading&) = default;
};

double read(const Reading& reading, const Moment& moment) noexcept;

// A stack program of one expression.
struct Program {
  enum class Code : std::uint8_t { kConstant, kRead, kNegate, kAdd, kSubtract, kMultiply, kDivide, kAbs };
  struct Step {
    Code code = Code::kConstant;
    Reading reading;
    double constant = 0;
  };
  static constexpr int kDeepest = 64;  // entries on the stack

  std::vector<Step> steps;
  double evaluate(const Moment& moment) const noexcept;  // Real-time: yes
};

// sum of coefficient * reading, plus a constant: what a condition says over the real numbers.
struct Term {
  Reading reading;
  double coefficient = 0;
};
struct Linear {
  std::vector<Term> terms;
  double constant = 0;

  void add(const Linear& other, double factor);
  // What `channel` is multiplied by at this moment: plain coefficient plus that of its rate over the time passed.
  double slope(std::size_t channel, const Moment& moment) const noexcept;
  // All that does not move with the channels in `free` (a mask over channels; null: none is free): constants, past values, given channels.
  double rest(const std::uint8_t* free, const Moment& moment) const noexcept;
  // sum of |coefficient * reading| + |constant|: the scale on which an equality is exact.
  double magnitude(const Moment& moment) const noexcept;
};

enum class Truth : std::uint8_t { kFalse, kTrue, kUnknown };

// One half of a condition: left <= right, or left < right, where |u| has been replaced by u or by -u.
struct Half {
  Program left, right;
  Linear difference;  // left - right
};

// One comparison that must hold.
struct Atom {
  std::uint32_t constraint = 0;
  std::size_t offset = 0;                          // in the constraint's text
  Comparison comparison = Comparison::kLessEqual;  // kLess, kLessEqual or kEqual
  Program left, right;                             // as written
  std::vector<Half> halves;                        // one; two where an absolute value stands on the left. For kEqual: one, difference == 0
  std::vector<Reading> readings;                   // all of them, each once
  bool repeats = false;                            // a channel stands in it more than once, so that rounding may bend the edge

  // kUnknown where something that it reads is missing. Real-time: yes.
  Truth holds(const Moment& moment) const noexcept;
  // One half alone, with the tolerance of equalities where it is one: from above (true) or below.
  bool half_holds(std::size_t half, bool from_above, const Moment& moment) const noexcept;
  // By how much it is broken: 0 where it holds, in the units of its two sides.
  double excess(const Moment& moment) const noexcept;
  bool known(const Moment& moment) const noexcept;
};

// An equality without tolerance holds when |left - right| <= kEqualityEps * Linear::magnitude.
constexpr double kEqualityEps = 8 * 2.220446049250313e-16;

}  // namespace kizzasi::logic
