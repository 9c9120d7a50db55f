// Arrays as NumPy saves them: .npy (format 1 to 3) and .npz (stored or deflated members).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/io/table.h"

namespace kizzasi::io {

struct NpyArray {
  std::string name;                // of a member of an .npz; empty for an .npy
  std::string dtype;               // "f4", "i8", "b1", "c8", ...
  std::vector<std::size_t> shape;  // as in the file; empty for a scalar
  bool complex = false;            // then the values have one more axis: real and imaginary part
  std::vector<double> values;      // C order
  std::size_t rounded = 0;         // integers beyond 2^53 that no double holds
};

// Policy for what may not be what it seems. Accepted: bool, integers of 1 to 8 bytes, floats of 2, 4 and 8, complex of 8 and 16, either
// byte order, C and Fortran order. Refused: every other kind (objects, records, text, dates), a header that is more than the three literals
// that belong there, bytes missing or left over, more than 32 axes. Nothing is allocated before the size is checked against the bytes.
// `where` names the bytes for messages. Thread: any.
Result<NpyArray> parse_npy(std::string_view bytes, std::string_view where);

// Policy: members must be .npy, with names that occur once and hold no folder, checked by their CRC-32; at most 4 GiB unpacked, and none
// more than 200 times its packed size above 16 MiB (a bomb). Encrypted, split or otherwise packed archives are refused.
Result<std::vector<NpyArray>> parse_npz(std::string_view bytes, std::string_view where);

// A recording: (rows) or (rows, channels); of an .npz every member, with as many rows each, its name before the channels' numbers.
// A one-dimensional member called time, t, ts, timestamp or ds gives the stamps: seconds since the start, or since 1970 where its size
// says so (then also ms, us, ns). Values that are not finite become missing.
Result<Table> read_npy(const std::string& path);
Result<Table> npy_table(std::vector<NpyArray> arrays, const std::string& where);

}  // namespace kizzasi::io
