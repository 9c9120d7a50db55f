// Time, as a thing that callers hand in: tests use one of their own.
#pragma once

#include <chrono>

namespace kizzasi {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since some fixed moment, never falling.
  virtual double seconds() const = 0;
};

class SteadyClock final : public Clock {
 public:
  double seconds() const override { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
};

}  // namespace kizzasi
