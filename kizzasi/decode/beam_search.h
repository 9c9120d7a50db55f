// Beam search: the most likely sequences of tokens, a few kept at a time; under rules, in groups that differ, with an end token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

struct BeamOptions {
  std::size_t width = 4;   // sequences kept at a time, over all groups
  std::size_t length = 1;  // tokens at most
  // A sequence that ended is worth log p / tokens^length_penalty, its end token counted. 0: log p itself.
  double length_penalty = 0;
  std::optional<std::uint32_t> end{};
  // With `end`: stop as soon as `width` sequences have ended; false: go on while one that runs may still become better.
  bool early_stopping = true;
  // Groups choose one after another; a token that groups before chose at this step costs `diversity` each time (Hamming diversity,
  // Vijayakumar et al. 2016). Scores are told without that.
  std::size_t groups = 1;
  double diversity = 0;
};

struct BeamRules {
  // Hard: a sequence that it does not allow is dropped before the beams are cut, so none is ever among them. Called with every beginning.
  std::function<bool(std::span<const std::uint32_t> sequence)> allowed;
  // Soft: what the newest token costs, taken off the score.
  std::function<double(std::span<const std::uint32_t> sequence)> cost;
};

struct Beam {
  std::vector<std::uint32_t> tokens;
  double score = 0;
  bool ended = false;  // by the end token
};

// Writes log p of each next token after `sequence` (vocabulary); -inf for what cannot come.
using NextLogProbabilities = std::function<Result<void>(std::span<const std::uint32_t> sequence, std::span<double> log_p)>;

// For each group its sequences, the best first (in a later group: with what diversity cost the last token); of equal ones the smaller
// tokens first. Wide beams find the best of all; narrow ones may miss it. Errors: options that do not fit (width 0, length 0, groups that
// do not divide the width, an end token beyond the vocabulary); the model's; a log p that is no number; no allowed sequence was found
// (never a sequence that breaks a rule).
Result<std::vector<std::vector<Beam>>> beam_search(const BeamOptions& options, std::size_t vocabulary, const NextLogProbabilities& next,
                                                   const BeamRules& rules = {});

}  // namespace kizzasi
