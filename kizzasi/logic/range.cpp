#include <algorithm>

#include "kizzasi/logic/compiled.h"

namespace kizzasi::logic {
namespace {

// Where the edge of a half lies over the real numbers. In no time at all: at the past value.
double edge_guess(const Half& half, std::size_t channel, double slope, const std::uint8_t* moves, const Moment& moment) {
  if (std::isfinite(slope)) return -half.difference.rest(moves, moment) / slope;
  for (const Term& term : half.difference.terms) {
    if (term.reading.channel == channel && term.reading.tense == Tense::kRate) return moment.past.value(channel, term.reading.from);
  }
  return 0;
}

}  // namespace

Range range_of(const Atom& atom, std::size_t channel, const std::uint8_t* moves, Moment moment, const Grid& grid) noexcept {
  Range range;
  moment.tried_channel = channel;
  moment.tried = 0;
  if (!atom.known(moment)) return range;
  for (std::size_t h = 0; h < atom.halves.size(); ++h) {
    const double slope = atom.halves[h].difference.slope(channel, moment);
    if (slope == 0 || std::isnan(slope)) continue;
    const double guess = edge_guess(atom.halves[h], channel, slope, moves, moment);
    const auto obeys = [&](bool from_above) {
      return [&atom, &moment, h, from_above](double x) {
        moment.tried = x;
        return atom.half_holds(h, from_above, moment);
      };
    };
    if (atom.comparison == Comparison::kEqual) {
      const double point = grid.nearest(guess);
      moment.tried = point;
      if (atom.holds(moment) == Truth::kTrue) return {point, point};
      range.high = largest(guess, obeys(slope > 0));
      range.low = smallest(guess, obeys(slope < 0));
    } else if (slope > 0) {
      range.high = std::min(range.high, largest(guess, obeys(true)));
    } else {
      range.low = std::max(range.low, smallest(guess, obeys(true)));
    }
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (range.high == -kInfinity || range.low == kInfinity) return {kInfinity, -kInfinity};  // no double at all obeys
  range.high = grid.floor(range.high);
  range.low = grid.ceil(range.low);
  return range;
}

void narrow(Range& range, const Range& by, const Grid& grid) noexcept {
  if (by.empty()) {  // a window that holds no number of the grid, or none at all: as near to it as possible
    const double middle = std::isfinite(by.low) && std::isfinite(by.high) ? grid.nearest(by.low / 2 + by.high / 2)
                                                                          : (std::isfinite(by.low) ? by.low : by.high);
    if (std::isfinite(middle)) range.low = range.high = std::clamp(middle, range.low, range.high);
    return;
  }
  const Range both{std::max(range.low, by.low), std::min(range.high, by.high)};
  if (!both.empty()) {
    range = both;
  } else if (by.low > range.high) {
    range.low = range.high;
  } else {
    range.high = range.low;
  }
}

}  // namespace kizzasi::logic
