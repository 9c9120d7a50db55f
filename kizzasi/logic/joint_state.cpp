// The state of constraints that are enforced together: what was, what is open, and how one frame moves it on.
#include <algorithm>
#include <cmath>
#include <thread>

#include "kizzasi/logic/joint.h"
#include "kizzasi/logic/monitor/numbers.h"

namespace kizzasi::logic {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

JointWorkspace& Joint::take() const noexcept {
  for (;;) {
    for (const auto& w : pool_) {
      bool free = false;
      if (w->busy.compare_exchange_strong(free, true, std::memory_order_acquire)) return *w;
    }
    std::this_thread::yield();
  }
}

void Joint::reset(std::span<std::byte> state) const noexcept {
  std::fill(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(state_bytes_), std::byte{0});
}

std::span<const double> Joint::numbers(std::span<const std::byte> state) const noexcept {
  return {reinterpret_cast<const double*>(state.data() + numbers_at_), present_.state_doubles()};
}

Truth Joint::known(const JointLiteral& literal, std::span<const std::byte> state) const noexcept {
  std::int64_t frames = 0;
  std::memcpy(&frames, state.data(), sizeof frames);
  Verdict verdict = literal.weak ? 1 : -1;
  if (frames > 0) {
    verdict = stage_->at(literal.node, frames - 1, {reinterpret_cast<const Verdict*>(state.data() + verdicts_at_), stage_->state_values()});
  }
  if (literal.negated) verdict = static_cast<Verdict>(-verdict);
  return verdict > 0 ? Truth::kTrue : verdict < 0 ? Truth::kFalse : Truth::kUnknown;
}

Verdict Joint::relation(const JointLiteral& literal, std::span<const double> values) const noexcept {
  const double a = values[literal.left], b = values[literal.right];
  if (std::isnan(a) || std::isnan(b)) return 0;
  const auto equal = [&] {
    if (a == b) return true;
    const double distance = std::abs(a - b);
    return std::isfinite(distance) &&
           distance <= kEqualityEps * (present_.magnitude(literal.left, values) + present_.magnitude(literal.right, values));
  };
  switch (literal.relation) {
    case NodeKind::kLess:
      return a < b && !(literal.apart && equal()) ? 1 : -1;
    case NodeKind::kLessEqual:
      return a <= b ? 1 : -1;
    default:
      return equal() ? 1 : -1;
  }
}

// --- Promises
// -----------------------------------------------------------------------------------------------------------------------------

Joint::Open Joint::open(const JointPromise& p, std::span<const std::byte> state) const noexcept {
  std::int64_t frames = 0;
  std::memcpy(&frames, state.data(), sizeof frames);
  const std::byte* ring = state.data() + p.at;
  Open out;
  out.any = out.now = ring[p.ring] != std::byte{0};
  std::int64_t oldest = 0, waiting = -1;  // frames ago; of those whose interval has not begun
  for (std::int64_t ago = 1; ago <= std::min(p.ring - 1, frames); ++ago) {
    if (ring[(frames - ago) % p.ring] == std::byte{0}) continue;
    out.any = true;
    oldest = ago;
    if (ago >= p.low) out.now = true;
    if (ago < p.low) waiting = ago;
  }
  if (p.kind == Promise::Kind::kReach) {
    out.left = p.high - oldest;
    out.now = out.any && oldest >= p.low;
  } else if (!out.now) {
    out.left = p.low - waiting;
  }
  return out;
}

bool Joint::is_live(const Open& open, const JointPromise& p, Deed deed) const noexcept {
  if (p.kind == Promise::Kind::kReach) return deed == Deed::kMeets ? open.now : open.left > 0;
  return deed == Deed::kStaysNear ? !open.now : open.now;
}

Truth Joint::sent_truth(const JointLiteral& literal, std::span<const std::byte> state, std::span<const double> values) const noexcept {
  if (literal.kind == Literal::Kind::kKnown) return known(literal, state);
  if (literal.ahead > 0 || literal.ahead_of >= 0) return Truth::kTrue;
  const Verdict verdict = relation(literal, values);
  return verdict > 0 ? Truth::kTrue : verdict < 0 ? Truth::kFalse : Truth::kUnknown;
}

// What the frame that was emitted meets, and what it takes on: of the branches that hold, the one that takes on least.
void Joint::keep_promises(JointWorkspace& w, std::span<std::byte> state) const noexcept {
  std::int64_t frames = 0;
  std::memcpy(&frames, state.data(), sizeof frames);
  const auto holds = [&](const std::vector<std::uint32_t>& branch) {
    return std::all_of(branch.begin(), branch.end(),
                       [&](std::uint32_t literal) { return sent_truth(literals_[literal], state, w.sent_values) == Truth::kTrue; });
  };
  // What was open before is looked at first; `taken` collects what begins now.
  std::fill(w.taken.begin(), w.taken.end(), std::uint8_t{0});
  for (const JointClause& clause : clauses_) {
    Open before;
    if (clause.promise >= 0) {
      before = open(promises_[static_cast<std::size_t>(clause.promise)], state);
      if (!before.any) continue;
    }
    std::size_t best = clause.branches.size();
    bool met = false;
    for (std::size_t b = 0; b < clause.branches.size(); ++b) {
      if (clause.promise >= 0 && !is_live(before, promises_[static_cast<std::size_t>(clause.promise)], clause.deeds[b])) continue;
      if (!holds(clause.branches[b])) continue;
      const bool meets = clause.deeds[b] == Deed::kMeets;
      const bool better =
          best == clause.branches.size() || (meets && !met) || (meets == met && clause.takes[b].size() < clause.takes[best].size());
      if (!better || (met && !meets)) continue;
      best = b;
      met = meets;
    }
    if (best == clause.branches.size()) continue;
    for (const std::uint32_t promise : clause.takes[best]) w.taken[promise] = 1;
    if (clause.promise < 0 || !met) continue;
    const JointPromise& p = promises_[static_cast<std::size_t>(clause.promise)];
    if (p.kind != Promise::Kind::kReach) continue;
    for (std::int64_t ago = std::max<std::int64_t>(1, p.low); ago <= std::min(p.ring - 1, frames); ++ago) {
      state[p.at + static_cast<std::size_t>((frames - ago) % p.ring)] = std::byte{0};
    }
  }
  for (std::size_t i = 0; i < promises_.size(); ++i) {
    const JointPromise& p = promises_[i];
    std::byte* ring = state.data() + p.at;
    const bool freed = std::any_of(p.free.begin(), p.free.end(), holds);
    const bool endless = p.high == kEndless;
    if (endless && p.low > 0 && frames >= p.low && ring[(frames - p.low) % p.ring] != std::byte{0}) ring[p.ring] = std::byte{1};
    ring[frames % p.ring] = w.taken[i] != 0 ? std::byte{1} : std::byte{0};
    if (endless && p.low == 0 && w.taken[i] != 0) ring[p.ring] = std::byte{1};
    if (freed) std::fill_n(ring, p.ring + 1, std::byte{0});
  }
}

void Joint::accept(std::span<std::byte> state, const Past& past, std::int64_t time_ns, std::span<const double> measured,
                   std::span<const double> emitted) const noexcept {
  JointWorkspace& w = take();
  const std::size_t channels = schema_.size();
  const bool rollout = std::none_of(measured.begin(), measured.end(), [](double x) { return std::isfinite(x); });
  for (std::size_t c = 0; c < channels; ++c) {
    const double seen = c < measured.size() && std::isfinite(measured[c]) ? measured[c] : kNaN;
    const double sent = c < emitted.size() && std::isfinite(emitted[c]) ? emitted[c] : kNaN;
    w.frame[c] = rollout ? sent : seen;
    w.sent[c] = std::isnan(sent) ? seen : sent;
  }
  const std::span<double> numbers{reinterpret_cast<double*>(state.data() + numbers_at_), present_.state_doubles()};
  present_.recall(numbers, past, time_ns, w.recalled);
  present_.evaluate(all_numbers_, w.recalled, w.frame, w.seen_values);
  present_.evaluate(all_numbers_, w.recalled, w.sent, w.sent_values);
  std::int64_t frames = 0;
  std::memcpy(&frames, state.data(), sizeof frames);
  if (promises()) keep_promises(w, state);
  if (stage_) {
    const std::span<Verdict> verdicts{reinterpret_cast<Verdict*>(state.data() + verdicts_at_), stage_->state_values()};
    for (const std::uint32_t i : comparisons_) stage_->slot(i, frames, verdicts) = truth_of(present_.graph(), i, w.sent_values);
    stage_->step(frames, verdicts, {reinterpret_cast<std::int64_t*>(state.data() + counters_at_), stage_->state_counters()});
  }
  present_.accept(numbers, time_ns, w.seen_values, w.sent_values);
  ++frames;
  std::memcpy(state.data(), &frames, sizeof frames);
  w.busy.store(false, std::memory_order_release);
}

}  // namespace kizzasi::logic
