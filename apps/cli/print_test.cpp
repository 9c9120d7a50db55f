#include "apps/cli/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kizzasi::cli {
namespace {

TEST(NumberText, FourDigitsWherePlain) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(-12345.6), "-12346");
  EXPECT_EQ(number_text(211.94), "211.9");
  EXPECT_EQ(number_text(0.012344), "0.01234");
  EXPECT_EQ(number_text(1.25e-7), "1.25e-07");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-");
}

// The number read back is within half a unit of the fourth digit.
TEST(NumberText, KeepsFourDigits) {
  for (double value = 1.3e-9; value < 1e12; value *= 1.37) {
    const double back = std::stod(number_text(value));
    const double share = value > 1e-4 && value < 1e7 ? 0.51e-3 : 0.51e-2;
    EXPECT_LE(std::abs(back - value), share * value) << value;
  }
}

TEST(Columns, AlignsByWhatIsSeen) {
  EXPECT_EQ(columns({{"method", "MAE"}, {"naïve", "212.4"}, {"x"}}),
            "method    MAE\n"
            "-------------\n"
            "naïve   212.4\n"
            "x\n");
}

}  // namespace
}  // namespace kizzasi::cli
