// What a user may say about a CSV file; everything is found in the file where nothing is said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kizzasi/base/fields.h"

namespace kizzasi::io {

struct CsvOptions {
  std::string delimiter = "auto";   // auto, comma, semicolon, tab, pipe, blank, or the character itself
  std::string decimal = "auto";     // auto, point, comma
  std::string encoding = "auto";    // auto, utf-8, utf-16-le, utf-16-be, windows-1252
  std::string header = "auto";      // auto, yes, no
  std::string time_column;          // its name, or its number from 0; empty: found; "none": rows are counted
  std::string id_column;            // the name of the series of each row; empty: found; "none": a wide file
  std::string zone;                 // of stamps that name none: "Europe/Berlin", "UTC", "+01:00"; empty: a wall clock
  std::string date_order = "auto";  // auto, day_first, month_first
  std::string time_unit = "auto";   // of stamps that are numbers: auto, seconds (since the start), epoch_s, epoch_ms, epoch_us, epoch_ns
  std::vector<double> sentinels;    // numbers that stand for "no value", such as -999
  std::vector<std::string> missing_words;  // further words for "no value"
  bool lenient = false;                    // set bad lines aside and count them, instead of stopping at the first
  bool strict = false;                     // stop also at lines that look like a logger's remarks

  bool keep_infinite = false;  // infinite cells stay what they are (they are counted all the same): for what judges values, no option

  void fields(FieldVisitor& visit);
};

}  // namespace kizzasi::io
