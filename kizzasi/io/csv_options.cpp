#include "kizzasi/io/csv_options.h"

namespace kizzasi::io {

void CsvOptions::fields(FieldVisitor& visit) {
  visit.field({"delimiter", "Between fields: auto, comma, semicolon, tab, pipe, blank (runs of blanks), or the character."}, delimiter);
  visit.field({.name = "decimal", .help = "The mark before the fraction of a number.", .choices = {"auto", "point", "comma"}}, decimal);
  visit.field({.name = "encoding",
               .help = "How the file encodes its text.",
               .choices = {"auto", "utf-8", "utf-16-le", "utf-16-be", "windows-1252"}},
              encoding);
  visit.field({.name = "header", .help = "Whether a line of names stands above the data.", .choices = {"auto", "yes", "no"}}, header);
  visit.field({"time_column", "Name (or number from 0) of the column with the times; none: rows are counted."}, time_column);
  visit.field({"id_column", "Name (or number from 0) of the column that says which series a row belongs to; none: one series."}, id_column);
  visit.field({"zone", "Time zone of stamps that name none: Europe/Berlin, UTC, +01:00."}, zone);
  visit.field({.name = "date_order",
               .help = "Order of day and month in dates such as 03/04/2024.",
               .choices = {"auto", "day_first", "month_first"}},
              date_order);
  visit.field({.name = "time_unit",
               .help = "Unit of times that are numbers; seconds count from the start, the others from 1970.",
               .choices = {"auto", "seconds", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns"}},
              time_unit);
  visit.field({"sentinels", "Numbers that stand for no value, such as -999."}, sentinels);
  visit.field({"missing_words", "Words that stand for no value, besides the usual ones."}, missing_words);
  visit.field({"lenient",
               "Set bad lines aside and count them instead of stopping at the first; take what is there of a sound file that was cut off."},
              lenient);
  visit.field({"strict", "Stop also at lines that look like a logger's remarks."}, strict);
}

}  // namespace kizzasi::io
