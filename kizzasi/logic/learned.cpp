#include "kizzasi/logic/learned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/learned_relations.h"

namespace kizzasi {
namespace {

using namespace logic;

constexpr std::size_t kFewestEpisodes = 10;
constexpr std::size_t kFewestRows = 10;
constexpr double kStart = 0.95, kBack = 0.80;  // quantiles of a template's levels

// P(Bin(n, e) < m).
double below(std::size_t n, std::size_t m, double e) {
  if (m > n) return 1;
  if (e <= 0) return 1;
  if (e >= 1) return 0;
  double total = 0;
  const double count = static_cast<double>(n);
  for (std::size_t k = 0; k < m; ++k) {
    const double i = static_cast<double>(k);
    total +=
        std::exp(std::lgamma(count + 1) - std::lgamma(i + 1) - std::lgamma(count - i + 1) + i * std::log(e) + (count - i) * std::log1p(-e));
  }
  return std::min(total, 1.0);
}

// The most rows that may be left out or lie on the edge for the share that is wanted; 0: too few rows.
std::size_t widest_edge(std::size_t n, const LearnOptions& options) {
  std::size_t low = 0, high = n;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (below(n, middle, 1 - options.share) <= 1 - options.confidence) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

struct Edges {
  double low = 0, high = 0;
  std::size_t edge = 0;
};

// Between which of the sorted values; edge 0: too few.
Edges edges_of(const std::vector<double>& sorted, const LearnOptions& options) {
  const std::size_t n = sorted.size();
  if (n < kFewestRows) return {};
  const std::size_t edge = options.share > 0 ? widest_edge(n, options) : 2;
  if (edge < 2) return {};
  const std::size_t under = edge / 2, over = edge - under;
  return {sorted[under - 1], sorted[n - over], edge};
}

double share_within(const std::vector<double>& values, double low, double high) {
  const auto inside = std::count_if(values.begin(), values.end(), [&](double v) { return v >= low && v <= high; });
  return static_cast<double>(inside) / static_cast<double>(values.size());
}

class Learner {
 public:
  Learner(const Schema& schema, const RecordedRows& rows, const LearnOptions& options)
      : schema_(schema),
        rows_(rows),
        options_(options),
        channels_(schema.size()),
        count_(channels_ == 0 ? 0 : rows.values.size() / channels_) {}

  std::vector<LearnedConstraint> run() {
    for (const std::size_t c : schema_.with_role(Role::kTarget)) range(c);
    for (const std::size_t c : schema_.with_role(Role::kTarget)) rate(c);
    relations();
    for (const std::size_t c : schema_.with_role(Role::kTarget)) settling(c);
    return std::move(out_);
  }

 private:
  double at(std::size_t row, std::size_t channel) const { return rows_.values[row * channels_ + channel]; }
  std::size_t series_of(std::size_t row) const { return rows_.series.empty() ? 0 : static_cast<std::size_t>(rows_.series[row]); }
  std::size_t series_count() const {
    std::int32_t most = 0;
    for (const std::int32_t s : rows_.series) most = std::max(most, s);
    return static_cast<std::size_t>(most) + 1;
  }

  void between(LearnedConstraint::Kind kind, std::string name, const std::string& what, const std::string& unit,
               std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const Edges edges = edges_of(values, options_);
    if (edges.edge == 0) return;
    constexpr double kRounding = 1e-9;  // of the size of the values: rates of an even slope differ by their rounding only
    const double size = std::max(std::abs(edges.low), std::abs(edges.high)), width = std::max(edges.high - edges.low, kRounding * size);
    const bool still = edges.low == edges.high;
    const double low = still ? edges.low : rounded(edges.low, width, false), high = still ? low : rounded(edges.high, width, true);
    LearnedConstraint learned{kind,
                              std::move(name),
                              "",
                              values.size(),
                              share_within(values, low, high),
                              promised_share(values.size(), edges.edge, options_.confidence)};
    learned.that = low == high ? fmt::format("{} == {}{}", what, number_text(low), unit)
                               : fmt::format("{} <= {} <= {}{}", number_text(low), what, number_text(high), unit);
    out_.push_back(std::move(learned));
  }

  std::string unit_of(std::size_t channel) const {
    const std::string& unit = schema_.channels[channel].unit;
    return unit.empty() || unit.find_first_of("[]\n\r\"\\") != unit.npos ? "" : fmt::format(" [{}]", unit);
  }

  void range(std::size_t c) {
    std::vector<double> values;
    for (std::size_t r = 0; r < count_; ++r) {
      if (std::isfinite(at(r, c))) values.push_back(at(r, c));
    }
    between(LearnedConstraint::Kind::kRange, schema_.channels[c].name + " range", quoted_name(schema_.channels[c].name), unit_of(c),
            std::move(values));
  }

  // As the guard sees it: from the last value that there was, over the time since then.
  void rate(std::size_t c) {
    struct Last {
      double value = std::numeric_limits<double>::quiet_NaN();
      std::int64_t time = 0;
    };
    std::vector<Last> last(series_count());
    std::vector<std::int64_t> seen(last.size(), 0);
    std::vector<double> values;
    for (std::size_t r = 0; r < count_; ++r) {
      Last& before = last[series_of(r)];
      const std::int64_t step = schema_.step_ns == 0 ? 1'000'000'000 : schema_.step_ns;
      const std::int64_t time = rows_.time_ns.empty() ? seen[series_of(r)]++ * step : rows_.time_ns[r];
      const double x = at(r, c);
      if (!std::isfinite(x)) continue;
      if (std::isfinite(before.value) && (schema_.step_ns == 0 || time > before.time)) {
        const double elapsed = schema_.step_ns == 0 ? 1 : static_cast<double>(time - before.time) / 1e9;
        values.push_back((x - before.value) / elapsed);
      }
      before = {x, time};
    }
    between(LearnedConstraint::Kind::kRate, schema_.channels[c].name + " rate",
            fmt::format("rate({})", quoted_name(schema_.channels[c].name)), "", std::move(values));
  }

  void relations() {
    const std::vector<std::size_t> targets = schema_.with_role(Role::kTarget);
    std::vector<double> finds, judges;  // complete rows, by turns
    std::size_t complete = 0;
    for (std::size_t r = 0; r < count_; ++r) {
      if (!std::all_of(targets.begin(), targets.end(), [&](std::size_t c) { return std::isfinite(at(r, c)); })) continue;
      std::vector<double>& half = complete++ % 2 == 0 ? finds : judges;
      for (const std::size_t c : targets) half.push_back(at(r, c));
    }
    const std::size_t n = targets.size(), rows = n == 0 ? 0 : judges.size() / n;
    if (n < 2 || rows < kFewestRows) return;
    for (const Relation& relation : find_relations(finds, n, options_.noise)) {
      bool exact = true;
      const auto gap_of = [&](const double* row) {
        double left = -relation.constant, size = std::abs(relation.constant);
        for (std::size_t i = 0; i < n; ++i) {
          left += relation.factors[i] * row[i];
          size += std::abs(relation.factors[i] * row[i]);
        }
        exact = exact && std::abs(left) <= std::numeric_limits<double>::epsilon() * size;
        return std::abs(left);
      };
      std::vector<double> gaps;
      for (std::size_t r = 0; r < rows; ++r) gaps.push_back(gap_of(judges.data() + r * n));
      double earlier = 0;
      for (std::size_t r = 0; r < finds.size() / n; ++r) earlier = std::max(earlier, gap_of(finds.data() + r * n));
      std::sort(gaps.begin(), gaps.end());
      const std::size_t edge = options_.share > 0 ? widest_edge(rows, options_) : 1;
      if (edge < 1) continue;
      std::string sum, names;
      for (std::size_t i = 0; i < n; ++i) {
        const double factor = relation.factors[i];
        if (factor == 0) continue;
        const std::string channel = quoted_name(schema_.channels[targets[i]].name),
                          size = std::abs(factor) == 1 ? "" : number_text(std::abs(factor)) + " * ";
        sum.append(sum.empty() ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ").append(size).append(channel);
        names.append(names.empty() ? "" : ", ").append(schema_.channels[targets[i]].name);
      }
      double widest = gaps[rows - edge];
      if (options_.share == 0) widest = std::max(widest, earlier);  // a wider promise is kept, too
      const double tolerance = exact ? 0 : rounded(widest, widest, true);
      LearnedConstraint learned{LearnedConstraint::Kind::kRelation,
                                "relation of " + names,
                                "",
                                rows,
                                exact ? 1 : share_within(gaps, 0, tolerance),
                                promised_share(rows, edge, options_.confidence)};
      learned.that = fmt::format("{} == {}", sum, number_text(relation.constant));
      if (!exact) learned.that += fmt::format(" +- {}", number_text(tolerance));
      out_.push_back(std::move(learned));
    }
  }

  void settling(std::size_t c) {
    const std::size_t half = count_ / 2;
    std::vector<double> first;
    for (std::size_t r = 0; r < half; ++r) {
      if (std::isfinite(at(r, c))) first.push_back(at(r, c));
    }
    if (first.size() < kFewestRows) return;
    std::sort(first.begin(), first.end());
    const auto quantile = [&](double q) { return first[static_cast<std::size_t>(q * static_cast<double>(first.size() - 1))]; };
    const double width = first.back() - first.front();
    const double start = rounded(quantile(kStart), width, true), back = rounded(quantile(kBack), width, true);
    if (!(start > back)) return;
    // Rows are counted, as in the formula; a missing value may have been anything.
    std::vector<std::int64_t> open(series_count(), -1);
    std::vector<double> lengths;
    std::int64_t unfinished = 0;
    double earlier = 0;  // the longest that began among the rows which chose the levels
    for (std::size_t r = 0; r < count_; ++r) {
      std::int64_t& since = open[series_of(r)];
      const double x = at(r, c);
      if (since >= 0) ++since;
      if (since >= 0 && x < back) {
        if (static_cast<std::int64_t>(r) - since >= static_cast<std::int64_t>(half)) {
          lengths.push_back(static_cast<double>(since));
        } else {
          earlier = std::max(earlier, static_cast<double>(since));
        }
        since = -1;
      }
      if (since < 0 && x > start) since = 0;
    }
    for (const std::int64_t since : open) unfinished = std::max(unfinished, since);
    if (lengths.size() < kFewestEpisodes) return;
    std::sort(lengths.begin(), lengths.end());
    const std::size_t edge = options_.share > 0 ? widest_edge(lengths.size(), options_) : 1;
    if (edge < 1) return;
    double longest = lengths[lengths.size() - edge];
    if (options_.share == 0) longest = std::max(longest, earlier);  // a wider promise is kept, too
    if (static_cast<double>(unfinished) > longest) return;          // one that has not ended yet is longer than all that did
    const std::string name = quoted_name(schema_.channels[c].name);
    LearnedConstraint learned{LearnedConstraint::Kind::kSettling,
                              schema_.channels[c].name + " settles",
                              "",
                              lengths.size(),
                              share_within(lengths, 0, longest),
                              promised_share(lengths.size(), edge, options_.confidence)};
    learned.that =
        fmt::format("{} > {} -> eventually[0, {}] {} < {}", name, number_text(start), number_text(longest), name, number_text(back));
    out_.push_back(std::move(learned));
  }

  const Schema& schema_;
  const RecordedRows& rows_;
  const LearnOptions& options_;
  std::size_t channels_, count_;
  std::vector<LearnedConstraint> out_;
};

}  // namespace

double promised_share(std::size_t rows, std::size_t edge, double confidence) {
  if (edge < 1 || edge > rows) return 0;
  double good = 0, bad = 1;  // shares
  if (below(rows, edge, 1) > 1 - confidence) return 0;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (good + bad) / 2;
    (below(rows, edge, 1 - middle) <= 1 - confidence ? good : bad) = middle;
  }
  return good;
}

Result<std::vector<LearnedConstraint>> learn_constraints(const Schema& schema, const RecordedRows& rows, const LearnOptions& options) {
  const auto wrong = [](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), "", std::move(expected), ""});
  };
  if (!(options.confidence > 0 && options.confidence < 1))
    return wrong(fmt::format("the confidence is {}", options.confidence), "above 0 and below 1");
  if (!(options.share >= 0 && options.share < 1)) return wrong(fmt::format("the share is {}", options.share), "0, or above 0 and below 1");
  if (!(options.noise > 0 && options.noise < 1)) return wrong(fmt::format("the noise is {}", options.noise), "above 0 and below 1");
  const std::size_t channels = schema.size(), count = channels == 0 ? 0 : rows.values.size() / channels;
  const bool fits = channels > 0 && rows.values.size() % channels == 0 && (rows.time_ns.empty() || rows.time_ns.size() == count) &&
                    (rows.series.empty() || rows.series.size() == count);
  if (!fits)
    return wrong("values, times and series do not fit together",
                 "a value for each row and channel; a time and a series for each row, or none");
  if (std::any_of(rows.series.begin(), rows.series.end(), [](std::int32_t s) { return s < 0; }))
    return wrong("a series is below 0", "numbers from 0");
  return Learner(schema, rows, options).run();
}

}  // namespace kizzasi
