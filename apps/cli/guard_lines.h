// How frames leave `kizzasi guard`: in the form in which they came, with what was done to each.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "apps/cli/print.h"
#include "kizzasi/io/frame_reader.h"
#include "kizzasi/logic/explanation.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi::cli {

// Which words stand beside the values.
struct GuardWords {
  std::int64_t decimals = -1;
  bool json = false, why = false, what_if = false;
  bool whole = false;
};

// What is said of a frame that was moved.
struct MovedWords {
  MoveCost cost;
  std::string why, what_if;
};

class GuardLines {
 public:
  GuardLines(const Schema& schema, const Guard& guard, const GuardWords& words) : schema_(schema), guard_(guard), words_(words) {}

  std::string head(bool timed) const;
  std::string line(const io::StreamFrame& frame, std::span<const double> value, const GuardReport& report,
                   const MovedWords& said = {}) const;

 private:
  std::string number(double x) const;
  Json json(const std::string& time, bool refused, std::span<const double> value, const GuardReport& report, const MovedWords& said) const;

  const Schema& schema_;
  const Guard& guard_;
  GuardWords words_;
};

}  // namespace kizzasi::cli
