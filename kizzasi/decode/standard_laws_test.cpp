#include "kizzasi/decode/standard_laws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kizzasi {
namespace {

// Values from mpmath 1.4.1 with 40 digits: erfinv, betainc and loggamma of the arguments as doubles.
struct Pair {
  double x, y;
};
struct Triple {
  double freedom, x, y;
};

TEST(StandardLaws, NormalQuantilesEqualFortyDigitValues) {
  for (const auto& [p, z] : {Pair{1e-300, -37.047096299361199},
                             {1e-20, -9.2623400897984076},
                             {1e-10, -6.3613409024040562},
                             {0.001, -3.0902323061678135},
                             {0.025, -1.9599639845400542},
                             {0.3, -0.52440051270804082},
                             {0.5, 0.0},
                             {0.7, 0.52440051270804066},
                             {0.975, 1.9599639845400539},
                             {0.999999, 4.7534243088170878}}) {
    EXPECT_NEAR(normal_quantile(p), z, 1e-13 * std::abs(z)) << p;
  }
  EXPECT_EQ(normal_quantile(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(normal_quantile(1), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(normal_quantile(1.5)));
  EXPECT_TRUE(std::isnan(normal_quantile(std::nan(""))));
}

TEST(StandardLaws, NormalCdfUndoesItsQuantile) {
  for (double z = -30; z <= 8; z += 0.037) {
    if (std::abs(z) > 1e-9 && z < 5) {
      EXPECT_NEAR(normal_quantile(normal_cdf(z)), z, 1e-9 * std::abs(z)) << z;
    }
    const double h = 1e-4, slope = (normal_cdf(z + h) - normal_cdf(z - h)) / (2 * h);
    EXPECT_NEAR(slope, std::exp(normal_log_density(z)), 1e-7) << z;
  }
}

TEST(StandardLaws, StudentCdfEqualsFortyDigitValues) {
  for (const auto& [v, x, p] :
       {Triple{0.5, -30, 0.058546841490053445}, {0.5, 0.7, 0.65729966873961673},     {2, -30, 0.00055463134097982946},
        {2, -2.5, 0.064805860110755405},        {2, -0.1, 0.46473271920707008},      {2, 6, 0.98666426339228761},
        {2.5, -30, 0.00014553235457869771},     {2.5, -2.5, 0.052284981539077694},   {2.5, -0.1, 0.46390327203124479},
        {2.5, 0.7, 0.72829752840522596},        {4, -30, 3.6764280488306611e-6},     {4, -2.5, 0.033383272405994073},
        {4, 0.7, 0.73874991720327488},          {10, -30, 1.9808961710156621e-11},   {10, -2.5, 0.015723422118304402},
        {10, 6, 0.99993394556982261},           {77.7, -30, 8.8142025127278125e-45}, {77.7, -2.5, 0.0072631105120463078},
        {1000, -30, 7.6873437220217411e-142},   {1000, -2.5, 0.0062892839005453984}, {1000, 0.7, 0.75795494300369882},
        {1e5, -2.5, 0.0062104595962795227},     {1e5, 0.7, 0.75803553357633892},     {1e7, -2.5, 0.0062096732682892351},
        {1e7, 0.7, 0.75803633963490581}}) {
    EXPECT_NEAR(student_t_cdf(x, v), p, 1e-11 * p) << "freedom " << v << " x " << x;
  }
  EXPECT_EQ(student_t_cdf(-std::numeric_limits<double>::infinity(), 3), 0);
  EXPECT_EQ(student_t_cdf(std::numeric_limits<double>::infinity(), 3), 1);
}

TEST(StandardLaws, StudentQuantilesEqualFortyDigitValues) {
  for (const auto& [v, p, x] : {Triple{2, 1e-12, -707106.78118548687},
                                {2, 0.001, -22.327124770119875},
                                {2, 0.025, -4.3026527297494637},
                                {2, 0.4, -0.28867513459481282},
                                {2, 0.975, 4.3026527297494618},
                                {2.5, 1e-12, -55306.174076515816},
                                {2.5, 0.001, -13.822193110865965},
                                {2.5, 0.4, -0.28145951274854759},
                                {10, 1e-12, -40.532096178662597},
                                {10, 0.025, -2.2281388519862747},
                                {10, 0.9999, 5.6938201014575926},
                                {1000, 1e-12, -7.1242289253144091},
                                {1000, 0.001, -3.0984021639129229},
                                {1000, 0.975, 1.9623390808264081},
                                {1000, 0.9999, 3.7328516045753962}}) {
    EXPECT_NEAR(student_t_quantile(p, v), x, 1e-10 * std::abs(x)) << "freedom " << v << " p " << p;
  }
  EXPECT_EQ(student_t_quantile(0.5, 3), 0);
}

TEST(StandardLaws, StudentQuantileUndoesTheCdfEverywhere) {
  for (const double v : {2.0, 2.01, 3.3, 17.0, 400.0, 3e6}) {
    for (double p = 1e-9; p < 0.5; p = p * 1.37 + 1e-10) {
      EXPECT_NEAR(student_t_cdf(student_t_quantile(p, v), v), p, 1e-9 * p) << v;
      EXPECT_DOUBLE_EQ(student_t_quantile(1 - p, v), -student_t_quantile(1 - (1 - p), v));
    }
    for (double p : {0.5 - 1e-9, 0.5 + 1e-9, 0.5 - 1e-15}) EXPECT_NEAR(student_t_cdf(student_t_quantile(p, v), v), p, 1e-15) << v;
  }
}

TEST(StandardLaws, StudentDensityIsTheSlopeOfTheCdf) {
  for (const double v : {2.0, 5.5, 60.0}) {
    for (double x = -9; x < 9; x += 0.31) {
      const double h = 1e-4;
      EXPECT_NEAR((student_t_cdf(x + h, v) - student_t_cdf(x - h, v)) / (2 * h), std::exp(student_t_log_density(x, v)), 1e-7);
    }
  }
}

TEST(StandardLaws, LogGammaEqualsFortyDigitValues) {
  for (const auto& [x, y] : {Pair{1e-3, 6.9071788853838537},
                             {0.5, 0.57236494292470009},
                             {1, 0.0},
                             {1.5, -0.12078223763524522},
                             {3, 0.69314718055994531},
                             {11.9, 17.258477450595522},
                             {12, 17.502307845873886},
                             {100.25, 360.28455963776423},
                             {1e6, 12815504.569147612}}) {
    EXPECT_NEAR(log_gamma(x), y, 1e-14 * std::max(20.0, std::abs(y))) << x;
  }
}

}  // namespace
}  // namespace kizzasi
