#include "kizzasi/logic/monitor/online.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kizzasi/logic/monitor/numbers.h"
#include "kizzasi/logic/monitor/offline.h"
#include "kizzasi/logic/monitor/residual.h"
#include "kizzasi/logic/monitor/stage.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi {
namespace {

using namespace logic;

constexpr std::size_t kMostObligations = 6;  // of one endless formula: its table has 2^k entries, a sample costs 4^k
constexpr double kUnevenShare = 0.1;         // of a step that a time may be off the grid

struct Watched {
  std::string name;
  std::uint32_t root = 0;
  std::int64_t horizon = 0;
  Residual residual;      // where the horizon is endless
  std::size_t table = 0;  // of the residual, among the tables
};

// The state: header, counters of both lattices, numbers, values, tables. Every part begins on a multiple of 16 bytes.
struct Header {
  std::int64_t samples = 0, last_ns = 0;
};
constexpr std::size_t kAlign = 16;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// A comparison of channels and constants, read from the frame itself.
struct Quick {
  std::uint32_t node = 0;
  NodeKind kind = NodeKind::kLessEqual;
  std::uint32_t a = 0, b = 0;  // channels, or kNoChannel
  double a_constant = 0, b_constant = 0;
};
constexpr std::uint32_t kNoChannel = ~std::uint32_t{0};

bool is_plain(const Node& node) { return node.kind == NodeKind::kChannel || node.kind == NodeKind::kConstant; }
bool is_comparison(NodeKind kind) { return kind == NodeKind::kLess || kind == NodeKind::kLessEqual || kind == NodeKind::kEqual; }

// Numbers that only such comparisons read.
std::vector<bool> read_from_the_frame(const NodeGraph& graph) {
  std::vector<bool> skipped(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) skipped[i] = is_plain(graph.nodes[i]);
  for (const Node& node : graph.nodes) {
    const bool quick =
        is_comparison(node.kind) && node.kind != NodeKind::kEqual && is_plain(graph.nodes[node.a]) && is_plain(graph.nodes[node.b]);
    const bool reads = (!is_condition(node.kind) && !is_plain(node) && node.kind != NodeKind::kHour && node.kind != NodeKind::kWeekday) ||
                       is_comparison(node.kind);
    if (!reads || quick) continue;
    // An equality weighs its terms, down to the last of them.
    skipped[node.a] = false;
    skipped[node.b] = false;
  }
  return skipped;
}

template <typename V>
struct Track {  // one lattice
  Track(const NodeGraph& graph, std::span<const typename Stage<V>::Reader> readers) : stage(graph, readers) {}
  Stage<V> stage;
  std::size_t counters_at = 0, values_at = 0, tables_at = 0, tables = 0;  // bytes; entries
};

class CompiledMonitor final : public Monitor {
 public:
  CompiledMonitor(NodeGraph graph, std::vector<Watched> formulas, MonitorKind kind)
      : graph_(std::move(graph)),
        formulas_(std::move(formulas)),
        kind_(kind),
        numbers_(graph_, read_from_the_frame(graph_)),
        readers_(readers_of(graph_, formulas_)),
        truth_(graph_, readers_),
        robust_(graph_, robust_readers(readers_)) {
    std::size_t tables = 0;
    for (std::size_t i = 0; i < formulas_.size(); ++i) {
      Watched& formula = formulas_[i];
      if (formula.horizon != kEndless) continue;
      endless_.push_back(i);
      formula.table = tables;
      tables += formula.residual.table_size();
    }
    bytes_ = aligned(sizeof(Header));
    numbers_at_ = bytes_;
    bytes_ += aligned(numbers_.state_doubles() * sizeof(double));
    lay(truth_, tables);
    if (kind_ == MonitorKind::kRobustness) lay(robust_, tables);
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!is_comparison(node.kind)) continue;
      const Node &left = graph_.nodes[node.a], &right = graph_.nodes[node.b];
      if (node.kind == NodeKind::kEqual || !is_plain(left) || !is_plain(right)) {
        comparisons_.push_back(i);
        continue;
      }
      const auto channel = [](const Node& side) { return side.kind == NodeKind::kChannel ? side.a : kNoChannel; };
      quick_.push_back({i, node.kind, channel(left), channel(right), left.number, right.number});
    }
    memory_ = numbers_.memory() + truth_.stage.memory() + 1;
  }

  std::size_t formulas() const noexcept override { return formulas_.size(); }
  std::string_view name(std::size_t formula) const noexcept override { return formulas_[formula].name; }
  std::int64_t horizon(std::size_t formula) const noexcept override { return formulas_[formula].horizon; }
  std::size_t state_bytes() const noexcept override { return bytes_; }
  std::size_t scratch_doubles() const noexcept override { return graph_.nodes.size() + graph_.schema.size(); }

  void reset(std::span<std::byte> state) const noexcept override {
    std::fill(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(bytes_), std::byte{0});
    numbers_.reset(at<double>(state, numbers_at_, numbers_.state_doubles()));
  }

  MonitorStatus step(std::span<std::byte> state, std::int64_t time_ns, std::span<const double> frame, std::span<MonitorVerdict> verdicts,
                     std::span<double> scratch) const noexcept override {
    Header& header = *reinterpret_cast<Header*>(state.data());
    MonitorStatus status = MonitorStatus::kTaken;
    const std::int64_t step = graph_.schema.step_ns;
    if (header.samples > 0 && step > 0 &&
        static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(header.last_ns) != static_cast<std::uint64_t>(step)) {
      if (time_ns <= header.last_ns) {
        report(state, header.samples - 1, verdicts);
        return MonitorStatus::kOutOfOrder;
      }
      const double passed = (static_cast<double>(time_ns) - static_cast<double>(header.last_ns)) / static_cast<double>(step);
      const double steps = std::max(std::round(passed), 1.0);
      if (std::abs(passed - steps) > kUnevenShare) status = MonitorStatus::kUneven;
      if (steps > 1) {
        skip(state, header, static_cast<std::int64_t>(std::min(steps, 1e15)) - 1, time_ns, scratch);
        if (status == MonitorStatus::kTaken) status = MonitorStatus::kGap;
      }
    }
    take(state, header, time_ns, frame, scratch);
    report(state, header.samples - 1, verdicts);
    return status;
  }

 private:
  template <typename T>
  static std::span<T> at(std::span<std::byte> state, std::size_t offset, std::size_t count) noexcept {
    return {reinterpret_cast<T*>(state.data() + offset), count};
  }

  static std::vector<Stage<Verdict>::Reader> readers_of(const NodeGraph& graph, const std::vector<Watched>& formulas) {
    std::vector<Stage<Verdict>::Reader> readers;
    for (const Watched& formula : formulas) {
      if (formula.horizon != kEndless) continue;
      for (const std::uint32_t leaf : formula.residual.leaves()) {
        readers.push_back({leaf, formula.residual.horizon() - graph.nodes[leaf].horizon});
      }
    }
    return readers;
  }
  static std::vector<Stage<Robustness>::Reader> robust_readers(const std::vector<Stage<Verdict>::Reader>& readers) {
    std::vector<Stage<Robustness>::Reader> out;
    for (const auto& reader : readers) out.push_back({reader.node, reader.lag});
    return out;
  }

  template <typename V>
  void lay(Track<V>& track, std::size_t tables) {
    track.counters_at = bytes_;
    bytes_ += aligned(track.stage.state_counters() * sizeof(std::int64_t));
    track.values_at = bytes_;
    bytes_ += aligned(track.stage.state_values() * sizeof(V));
    track.tables_at = bytes_;
    track.tables = tables;
    bytes_ += aligned(tables * sizeof(V));
  }

  // Samples that did not come are unknown. After as many as the formulas remember, all of them look alike.
  void skip(std::span<std::byte> state, Header& header, std::int64_t missing, std::int64_t time_ns,
            std::span<double> scratch) const noexcept {
    const std::span<double> none = scratch.subspan(graph_.nodes.size(), graph_.schema.size());
    std::fill(none.begin(), none.end(), std::numeric_limits<double>::quiet_NaN());
    const std::int64_t taken = std::min(missing, memory_), step = graph_.schema.step_ns;
    header.samples += missing - taken;
    for (std::int64_t i = taken; i >= 1; --i) take(state, header, time_ns - i * step, none, scratch);
  }

  void take(std::span<std::byte> state, Header& header, std::int64_t time_ns, std::span<const double> frame,
            std::span<double> scratch) const noexcept {
    const std::size_t nodes = graph_.nodes.size();
    const std::span<double> values = scratch.subspan(0, nodes);
    numbers_.step(graph_, at<double>(state, numbers_at_, numbers_.state_doubles()), time_ns, frame, values);
    const std::int64_t n = header.samples++;
    header.last_ns = time_ns;
    const std::span<Verdict> truths = at<Verdict>(state, truth_.values_at, truth_.stage.state_values());
    for (const std::uint32_t i : comparisons_) truth_.stage.slot(i, n, truths) = truth_of(graph_, i, values);
    for (const Quick& quick : quick_) {
      const double a = quick.a == kNoChannel ? quick.a_constant : frame[quick.a],
                   b = quick.b == kNoChannel ? quick.b_constant : frame[quick.b];
      const int truth = quick.kind == NodeKind::kLess ? (a < b) - (a >= b) : (a <= b) - (a > b);  // NaN: 0
      truth_.stage.slot(quick.node, n, truths) = static_cast<Verdict>(truth);
    }
    advance<Verdict>(truth_, n, state);
    if (kind_ != MonitorKind::kRobustness) return;
    const std::span<Robustness> margins = at<Robustness>(state, robust_.values_at, robust_.stage.state_values());
    for (const std::uint32_t i : comparisons_) robust_.stage.slot(i, n, margins) = robustness_of(graph_, i, values);
    for (const Quick& quick : quick_) {
      const double a = quick.a == kNoChannel ? quick.a_constant : frame[quick.a],
                   b = quick.b == kNoChannel ? quick.b_constant : frame[quick.b];
      const double margin = b - a;
      robust_.stage.slot(quick.node, n, margins) = std::isnan(margin) ? Lattice<Robustness>::unknown() : Robustness{margin, margin};
    }
    advance<Robustness>(robust_, n, state);
  }

  template <typename V>
  void advance(const Track<V>& track, std::int64_t n, std::span<std::byte> state) const noexcept {
    const std::span<V> held = at<V>(state, track.values_at, track.stage.state_values());
    track.stage.step(n, held, at<std::int64_t>(state, track.counters_at, track.stage.state_counters()));
    const std::span<V> tables = at<V>(state, track.tables_at, track.tables);
    for (const std::size_t i : endless_) {
      const Watched& formula = formulas_[i];
      if (n < formula.residual.horizon()) continue;
      progress<V>(formula.residual, track.stage, n - formula.residual.horizon(), held,
                  tables.subspan(formula.table, formula.residual.table_size()));
    }
  }

  // The value at the start as a function of the obligations at position q becomes one of those at q + 1.
  template <typename V>
  static void progress(const Residual& residual, const Stage<V>& stage, std::int64_t q, std::span<const V> held,
                       std::span<V> table) noexcept {
    using L = Lattice<V>;
    constexpr std::size_t kLargest = std::size_t{1} << kMostObligations;
    const std::size_t size = residual.table_size(), count = residual.obligations().size();
    const auto leaf = [&](std::uint32_t node) { return stage.at(node, q, held); };
    V made[kLargest];
    for (std::size_t corner = 0; corner < size; ++corner) {
      const auto next = [&](std::uint32_t i) { return (corner >> i & 1U) != 0 ? L::top() : L::bottom(); };
      if (q == 0) {
        made[corner] = residual.value<V>(residual.root(), leaf, next);
        continue;
      }
      V now[kMostObligations];
      for (std::size_t i = 0; i < count; ++i) now[i] = residual.value<V>(residual.obligations()[i].part, leaf, next);
      V out = L::bottom();
      for (std::size_t chosen = 0; chosen < size; ++chosen) {
        V part = table[chosen];
        for (std::size_t i = 0; i < count; ++i) {
          if ((chosen >> i & 1U) != 0) part = L::meet(part, now[i]);
        }
        out = L::join(out, part);
      }
      made[corner] = out;
    }
    std::copy(made, made + size, table.begin());
  }

  void report(std::span<std::byte> state, std::int64_t n, std::span<MonitorVerdict> verdicts) const noexcept {
    for (std::size_t i = 0; i < formulas_.size(); ++i) {
      const Watched& formula = formulas_[i];
      MonitorVerdict& out = verdicts[i];
      out = {};
      const bool robust = kind_ == MonitorKind::kRobustness;
      if (robust) out.low = -std::numeric_limits<double>::infinity(), out.high = -out.low;
      const bool endless = formula.horizon == kEndless;
      const std::int64_t late = endless ? formula.residual.horizon() : formula.horizon;
      if (n < late) {
        if (endless && n >= 0) out.position = 0;
        continue;
      }
      if (!endless) {
        out.position = n - late;
        out.final = true;
        out.truth = truth_.stage.at(formula.root, out.position, at<Verdict>(state, truth_.values_at, truth_.stage.state_values()));
        if (!robust) continue;
        const Robustness& r =
            robust_.stage.at(formula.root, out.position, at<Robustness>(state, robust_.values_at, robust_.stage.state_values()));
        out.low = r.low;
        out.high = r.high;
        continue;
      }
      out.position = 0;
      const std::size_t last = formula.residual.table_size() - 1;
      const auto truths = at<Verdict>(state, truth_.tables_at, truth_.tables).subspan(formula.table);
      out.truth = truths[0] == 1 ? Verdict{1} : truths[last] == -1 ? Verdict{-1} : Verdict{0};
      out.final = out.truth != 0;
      if (!robust) continue;
      const auto margins = at<Robustness>(state, robust_.tables_at, robust_.tables).subspan(formula.table);
      out.low = margins[0].low;
      out.high = margins[last].high;
    }
  }

  NodeGraph graph_;
  std::vector<Watched> formulas_;
  MonitorKind kind_;
  Numbers numbers_;
  std::vector<Stage<Verdict>::Reader> readers_;
  Track<Verdict> truth_;
  Track<Robustness> robust_;
  std::vector<std::uint32_t> comparisons_;
  std::vector<Quick> quick_;
  std::vector<std::size_t> endless_;  // formulas
  std::size_t bytes_ = 0, numbers_at_ = 0;
  std::int64_t memory_ = 0;
};

}  // namespace

Result<std::unique_ptr<Monitor>> Monitor::create(const Schema& schema, std::span<const ConstraintText> texts, MonitorKind kind) {
  GraphBuilder builder(schema);
  std::vector<Watched> formulas;
  for (const ConstraintText& text : texts) {
    const Source source = source_of(text);
    const auto parsed = parse_formula(source);
    if (!parsed) return tl::unexpected(parsed.error());
    if (auto added = builder.add(*parsed, source); !added) return tl::unexpected(added.error());
    formulas.emplace_back().name = text.name.empty() ? text.that : text.name;
  }
  NodeGraph graph = builder.take();
  for (std::size_t i = 0; i < formulas.size(); ++i) {
    formulas[i].root = graph.roots[i];
    formulas[i].horizon = graph.nodes[graph.roots[i]].horizon;
    if (formulas[i].horizon != kEndless) continue;
    const Source source = source_of(texts[i]);
    auto residual = Residual::build(graph, graph.roots[i], Residual::Leaves::kBounded, kMostObligations, source.place(0));
    if (!residual) return tl::unexpected(residual.error());
    formulas[i].residual = *std::move(residual);
  }
  return std::unique_ptr<Monitor>(std::make_unique<CompiledMonitor>(std::move(graph), std::move(formulas), kind));
}

}  // namespace kizzasi
