#include "kizzasi/penalty/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "kizzasi/autograd/rowwise.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi {
namespace {

using autograd::Tape;
using autograd::Var;

// One program for all points of a batch: the limits are the same, only the centre moves.
class NearestPoint {
 public:
  template <typename T>
  NearestPoint(std::span<const T> rows, std::span<const T> lo, std::span<const T> hi, std::span<const double> weight, std::size_t n)
      : rows_(rows.begin(), rows.end()),
        lo_(lo.begin(), lo.end()),
        hi_(hi.begin(), hi.end()),
        weight_(weight.begin(), weight.end()),
        centre_(n) {
    if (weight_.empty()) weight_.assign(n, 1.0);
    program_.prepare(n, lo_.size());
    good_ = program_.set_diagonal(weight_) == solve::Curvature::kPositive && program_.set_rows(rows_, lo_.size());
  }

  // Cold each time, so that a point does not depend on the others of its batch.
  template <typename T>
  solve::Status at(const T* y) {
    if (!good_) return solve::Status::kBadInput;
    std::copy_n(y, centre_.size(), centre_.begin());
    return program_.solve({.g = {}, .centre = centre_, .lo = lo_, .hi = hi_, .lower = {}, .upper = {}});
  }
  std::span<const double> x() const { return program_.x(); }
  std::span<const double> weight() const { return weight_; }
  solve::QuadraticProgram& program() { return program_; }

 private:
  std::vector<double> rows_, lo_, hi_, weight_, centre_;
  solve::QuadraticProgram program_;
  bool good_ = false;
};

Error no_nearest(solve::Status status, std::size_t point) {
  const bool empty = status == solve::Status::kInfeasible;
  return {Fault::kBadInput, empty ? "no point obeys all limits" : fmt::format("the solver says: {}", solve::name(status)),
          fmt::format("nearest point {}", point), empty ? "limits that agree" : "finite numbers and weights above 0", ""};
}

// The adjoint of `nearest`: every point is solved again, and the conditions of its optimum differentiated.
template <typename T>
void nearest_adjoint(Tape<T>& t, std::size_t id, std::size_t y, std::size_t rows, std::size_t lo, std::size_t hi,
                     std::span<const double> weight) {
  const std::size_t n = t.dims(y).back(), m = t.value(lo).size(), points = n == 0 ? 0 : t.value(y).size() / n;
  NearestPoint nearest(t.value(rows), t.value(lo), t.value(hi), weight, n);
  std::vector<double> dx(n), by_g(n), by_bound(m), by_box(n), by_rows(m * n), rows_sum(m * n), lo_sum(m), hi_sum(m);
  std::vector<T> dy(points * n);
  for (std::size_t p = 0; p < points; ++p) {
    std::copy_n(t.grad(id).data() + p * n, n, dx.begin());
    if (nearest.at(t.value(y).data() + p * n) != solve::Status::kOptimal) continue;  // the forward pass solved it: cannot happen
    solve::QuadraticProgram& program = nearest.program();
    program.gradient(dx, by_g, by_bound, by_box);
    program.gradient_of_rows(by_g, by_bound, by_rows);
    for (std::size_t i = 0; i < n; ++i) dy[p * n + i] = static_cast<T>(-nearest.weight()[i] * by_g[i]);
    for (std::size_t i = 0; i < m * n; ++i) rows_sum[i] += by_rows[i];
    for (std::size_t i = 0; i < m; ++i) (program.row_multipliers()[i] < 0 ? lo_sum : hi_sum)[i] += by_bound[i];
  }
  t.add_to_grad(y, [&](std::size_t i) { return dy[i]; });
  t.add_to_grad(rows, [&](std::size_t i) { return static_cast<T>(rows_sum[i]); });
  t.add_to_grad(lo, [&](std::size_t i) { return static_cast<T>(lo_sum[i]); });
  t.add_to_grad(hi, [&](std::size_t i) { return static_cast<T>(hi_sum[i]); });
}

}  // namespace

template <typename T>
Var<T> penalty(const PenaltyConfig& config, Var<T> violation) {
  const PenaltyKind kind = config.kind();
  const auto price = [kind, margin = config.penalty_margin, width = config.penalty_width](const auto& in, const auto& out) {
    double slope = 0;
    const double cost = price_of(kind, width, 1, 1, static_cast<double>(*in[0]) + margin, slope);
    *out[0] = static_cast<T>(slope);
    return cost;
  };
  return rowwise<T, 1>(violation.dims(), {violation}, price);
}

template <typename T>
Var<T> bound_penalty(const PenaltyConfig& config, Var<T> value, std::span<const double> low, std::span<const double> high) {
  const std::size_t channels = value.dims().back();
  assert(low.size() == channels && high.size() == channels);
  const PenaltyKind kind = config.kind();
  const double width = config.penalty_width, margin = config.penalty_margin;
  return rowwise<T, 1>(leading(value.dims()), {value}, [&](const auto& in, const auto& out) {
    double total = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const double x = static_cast<double>(in[0][c]);
      double up = 0, down = 0;
      if (std::isfinite(high[c])) total += price_of(kind, width, 1, 1, x - high[c] + margin, up);
      if (std::isfinite(low[c])) total += price_of(kind, width, 1, 1, low[c] - x + margin, down);
      out[0][c] = static_cast<T>(up - down);
    }
    return total;
  });
}

template <typename T>
Result<Var<T>> nearest(Var<T> y, Var<T> rows, Var<T> lo, Var<T> hi, std::span<const double> weight) {
  Tape<T>& tape = *y.tape;
  const std::size_t n = y.dims().empty() ? 0 : y.dims().back(), m = lo.value().size();
  if (n == 0 || rows.value().size() != m * n || hi.value().size() != m || (!weight.empty() && weight.size() != n)) {
    return fail({Fault::kBadUse,
                 fmt::format("{} numbers a point, {} in the rows, {} and {} limits", n, rows.value().size(), m, hi.value().size()),
                 "nearest point", "rows (m, n), lo and hi (m), weight (n)", ""});
  }
  const std::size_t points = y.value().size() / n;
  NearestPoint nearest(rows.value(), lo.value(), hi.value(), weight, n);
  std::vector<T> x(points * n);
  for (std::size_t p = 0; p < points; ++p) {
    if (const auto status = nearest.at(y.value().data() + p * n); status != solve::Status::kOptimal) return fail(no_nearest(status, p));
    std::transform(nearest.x().begin(), nearest.x().end(), x.begin() + static_cast<std::ptrdiff_t>(p * n),
                   [](double v) { return static_cast<T>(v); });
  }
  const auto adjoint = [y = y.id, rows = rows.id, lo = lo.id, hi = hi.id, own = std::vector<double>(weight.begin(), weight.end())](
                           Tape<T>& t, std::size_t id) { nearest_adjoint<T>(t, id, y, rows, lo, hi, own); };
  const Var<T> out = tape.record(y.dims(), {y, rows, lo, hi}, adjoint);
  std::copy(x.begin(), x.end(), tape.mutable_value(out.id).begin());
  return out;
}

template <typename T>
Result<Var<T>> robustness(const logic::NodeGraph& graph, Var<T> frames, std::size_t position, logic::SmoothKind kind, double k) {
  const autograd::Dims& dims = frames.dims();
  const std::size_t channels = graph.schema.size();
  if (dims.size() < 2 || dims.back() != channels) {
    return fail({Fault::kBadUse, fmt::format("{} dimensions, the last of {}", dims.size(), dims.empty() ? 0 : dims.back()), "robustness",
                 fmt::format("frames (..., rows, {} channels)", channels), ""});
  }
  const autograd::Dims out = leading(leading(dims));
  const std::size_t traces = elements(out), size = traces == 0 ? 0 : frames.value().size() / traces;
  std::vector<double> values(traces), gradients(traces * size), trace(size);
  for (std::size_t i = 0; i < traces; ++i) {
    std::copy_n(frames.value().data() + i * size, size, trace.begin());
    auto value = logic::smooth_robustness(graph, trace, position, kind, k, std::span(gradients).subspan(i * size, size));
    if (!value) return fail(value.error());
    values[i] = *value;
  }
  std::size_t next = 0;
  return rowwise<T, 1>(out, {frames}, [&](const auto&, const auto& partial) {
    for (std::size_t j = 0; j < size; ++j) partial[0][j] = static_cast<T>(gradients[next * size + j]);
    return values[next++];
  });
}

template Var<float> penalty(const PenaltyConfig&, Var<float>);
template Var<double> penalty(const PenaltyConfig&, Var<double>);
template Var<float> bound_penalty(const PenaltyConfig&, Var<float>, std::span<const double>, std::span<const double>);
template Var<double> bound_penalty(const PenaltyConfig&, Var<double>, std::span<const double>, std::span<const double>);
template Result<Var<float>> nearest(Var<float>, Var<float>, Var<float>, Var<float>, std::span<const double>);
template Result<Var<double>> nearest(Var<double>, Var<double>, Var<double>, Var<double>, std::span<const double>);
template Result<Var<float>> robustness(const logic::NodeGraph&, Var<float>, std::size_t, logic::SmoothKind, double);
template Result<Var<double>> robustness(const logic::NodeGraph&, Var<double>, std::size_t, logic::SmoothKind, double);

}  // namespace kizzasi
