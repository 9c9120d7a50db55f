// Small dense quadratic programs, solved to the last digits by a dual active-set method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kizzasi/solve/active_factor.h"

namespace kizzasi::solve {

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

enum class Status : std::uint8_t {
  kOptimal,
  kInfeasible,      // no point obeys all hard rows and bounds; the certificate says why
  kUnbounded,       // the objective falls without end (a curvature that is only semidefinite)
  kIterationLimit,  // rounding or a broken problem kept it from an answer that holds; never reported as optimal
  kBadInput,        // a NaN, an infinite coefficient, wrong sizes, or a curvature that is not convex
};
const char* name(Status status) noexcept;  // "ok", "infeasible", ...

enum class Curvature : std::uint8_t { kPositive, kSemidefinite, kNotConvex, kNotFinite };

// How a row or bound stands in an answer. A list of these, rows first and then bounds, is what a warm start is made of.
enum Activity : std::uint8_t {
  kInactive = 0,
  kAtLow = 1,
  kAtHigh = 2,
  kEquality = 3,
  kOpen = 4,       // added to the side: a soft row that is broken, at a quadratic price
  kSaturated = 8,  // added to the side: a soft row whose linear price is spent
};

// What changes from one solve to the next. Spans are read during `solve` only.
struct LinearTerms {
  std::span<const double> g;             // (n)
  std::span<const double> centre;        // (n) instead of g: the objective is 1/2 (x - centre)'H(x - centre)
  std::span<const double> lo, hi;        // (m); infinite: no bound on that side; equal: an equality
  std::span<const double> lower, upper;  // (n), or empty: no bounds on x
};

// Minimises  1/2 x'Hx + g'x + sum_i (l1_i s_i + l2_i s_i^2)  over  lo - s <= A x <= hi + s,  s >= 0,  lower <= x <= upper,
// where s_i = 0 for hard rows (the default).
//
// Method: Goldfarb and Idnani 1983 with Householder updates; soft rows by multipliers with a ceiling, and one more dimension for each row
// that is broken at a quadratic price; refinement of x and multipliers against the original data at the end. Rows are scaled by powers of
// two, so repeated, scaled, zero and nearly parallel rows change nothing. A semidefinite H is solved by proximal steps (Rockafellar 1976).
//
// A `centre` that obeys everything to rounding is returned bit for bit.
// The answer depends on the problem and the warm start only, not on what was solved before.
// Thread: one at a time. Real-time: every noexcept member.
class QuadraticProgram {
 public:
  // Takes all the memory that is ever needed for n variables, m rows, and up to `soft_rows` rows with a quadratic price. n >= 1.
  void prepare(std::size_t variables, std::size_t rows, std::size_t soft_rows = 0);

  // H, n x n, symmetric (the lower triangle is read), or its diagonal.
  Curvature set_hessian(std::span<const double> h) noexcept;
  Curvature set_diagonal(std::span<const double> h) noexcept;
  // A, m x n, row-major; m may be below what was prepared. All rows become hard. False: a size or a number is wrong, and `solve` will say
  // so.
  bool set_rows(std::span<const double> a, std::size_t rows) noexcept;
  // l1, l2: (m) each, >= 0. A row is hard where l1 is infinite; l2 may be 0 where l1 > 0. Call after set_rows.
  bool set_softness(std::span<const double> l1, std::span<const double> l2) noexcept;

  // `active`, if not empty: (m + n) values of Activity, read as a warm start and written with the answer's. All kInactive is a cold start.
  // Where no answer is found they become kInactive.
  Status solve(const LinearTerms& terms, std::span<std::uint8_t> active = {}) noexcept;

  std::size_t variables() const noexcept { return n_; }
  std::size_t rows() const noexcept { return m_; }

  // Of the last solve, while it was kOptimal. Multipliers: Hx + g + A' rows + box = 0; > 0 pushes from hi, < 0 from lo.
  std::span<const double> x() const noexcept { return {x_.data(), n_}; }
  std::span<const double> row_multipliers() const noexcept { return {row_multipliers_.data(), m_}; }
  std::span<const double> box_multipliers() const noexcept { return {box_multipliers_.data(), n_}; }
  std::span<const std::uint8_t> activity() const noexcept { return {activity_.data(), m_ + n_}; }
  std::span<const double> slack() const noexcept { return {slack_.data(), m_}; }  // a.x - hi or lo - a.x of broken soft rows, else 0
  double objective() const noexcept { return objective_; }                        // with the price of slack; with `centre`, from there
  // Largest of |Hx + g + A' rows + box|, relative to the largest term in it.
  double residual() const noexcept { return residual_; }
  std::size_t iterations() const noexcept { return iterations_; }

  // While kInfeasible: A' rows + box = 0 and sum (rows+ hi - rows- lo) + the same for the box < 0 (Farkas). All 0 where one row or
  // bound has lo > hi by itself: then `inverted` names it (rows first, then bounds).
  std::span<const double> certificate_rows() const noexcept { return {row_multipliers_.data(), m_}; }
  std::span<const double> certificate_box() const noexcept { return {box_multipliers_.data(), n_}; }
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t inverted() const noexcept { return inverted_; }

  // Derivatives after kOptimal, for a loss whose derivative by x is `dx` (n): by g, and by the bound at which each row and variable
  // stands (implicit differentiation of the optimality conditions; where an active multiplier is 0, the side of "active" is taken).
  // `by_bound`: (m), derivative by the active side of the row; `by_box`: (n). All are written.
  void gradient(std::span<const double> dx, std::span<double> by_g, std::span<double> by_bound, std::span<double> by_box) noexcept;
  // d loss / d A (m x n), from what `gradient` gave.
  void gradient_of_rows(std::span<const double> by_g, std::span<const double> by_bound, std::span<double> by_a) const noexcept;

 private:
  struct Active {  // a row of the working set, as sign * a . x >= sign * bound, and its multiplier
    std::size_t row = 0;
    double sign = 1;
    double u = 0, low = 0, up = kNoBound;  // low <= u <= up
    std::size_t dimension = kNone;         // of its slack; kNone where it is held
    bool at_high = false;                  // which bound it is
  };

  // quadratic_setup.cpp
  Status load(const LinearTerms& terms, std::span<const std::uint8_t> active) noexcept;
  // quadratic_program.cpp
  const double* row_of(std::size_t row) const noexcept { return rows_.data() + row * n_; }
  bool is_equality(std::size_t row) const noexcept { return low_of(row) == high_of(row); }
  double low_of(std::size_t row) const noexcept { return row < m_ ? lo_[row] : lower_[row - m_]; }
  double high_of(std::size_t row) const noexcept { return row < m_ ? hi_[row] : upper_[row - m_]; }
  double bound_of(const Active& a) const noexcept { return a.at_high ? high_of(a.row) : low_of(a.row); }
  double value(std::size_t row) const noexcept;
  double missing(const Active& a) const noexcept;
  double rounding(std::size_t row, double bound) const noexcept;
  void rotated_normal(const Active& a, double* d) noexcept;
  void add_normal(const Active& a, double factor, double* v) const noexcept;
  std::size_t dimension_of(std::size_t row) noexcept;
  Active held(std::size_t row, double sign) const noexcept;
  Active opened(std::size_t row, double sign) noexcept;
  std::uint8_t wanted(std::size_t row, std::uint8_t code) const noexcept;
  bool start(std::span<const std::uint8_t> warm) noexcept;
  void build() noexcept;
  void keep_ranges() noexcept;
  Status run() noexcept;
  void set_state(std::size_t row, std::uint8_t state) noexcept;
  double broken_by(std::size_t row, double at, Active& candidate) noexcept;
  bool pick(Active& candidate, double& gap) noexcept;
  Status enter(Active candidate, double gap) noexcept;
  void leave(std::size_t k, double at) noexcept;
  double residuals() noexcept;
  void add_multipliers() noexcept;
  void correct() noexcept;
  enum class Polish : std::uint8_t { kStill, kMoved, kChanged };
  Polish polish() noexcept;
  // quadratic_answer.cpp
  Status solve_once(std::span<const std::uint8_t> warm) noexcept;
  Status solve_proximal(std::span<std::uint8_t> active) noexcept;
  bool falls_without_end(std::span<const double> from) noexcept;
  bool certify(const Active& broken) noexcept;
  void publish() noexcept;

  std::size_t n_ = 0, m_ = 0, most_rows_ = 0, most_soft_ = 0, stride_ = 0;
  bool diagonal_ = false, ready_ = false, rows_ready_ = false, soft_ = false, boxed_ = false, semidefinite_ = false, centred_ = false;
  double dependence_ = 0, proximity_ = 0;

  std::vector<double> h_, j0_, root_;            // H (with the proximal term) and L^-T where H = LL'
  std::vector<double> rows_, columns_;           // A by rows and by columns, each row times its power of two
  std::vector<double> scale_, l1_, l2_;          // that power, and softness in that scale
  std::vector<double> lo_, hi_, lower_, upper_;  // in that scale
  std::vector<double> g_, centre_, true_g_, before_;

  ActiveFactor factor_;
  std::vector<Active> working_;
  std::vector<std::uint8_t> state_;  // of each row and bound: kInactive, kInWorkingSet, or the side of a saturated one
  std::vector<double> weight_;       // 0 for rows that cannot enter as they are
  std::vector<std::size_t> slack_dimension_;
  std::vector<std::uint8_t> built_from_, wanted_;  // the warm start that `factor_` stands for while `built_`
  bool built_ = false, met_ = false;

  std::vector<double> x_, values_, d_, z_, r_, normal_, rx_, rb_;
  std::vector<double> row_multipliers_, box_multipliers_, slack_;
  std::vector<std::uint8_t> activity_, activity_copy_;
  double objective_ = 0, residual_ = 0;
  std::size_t iterations_ = 0, inverted_ = kNone;
};

}  // namespace kizzasi::solve
