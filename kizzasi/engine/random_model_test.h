// Random models and signals for the tests of this room.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kizzasi/base/rng.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/signal/series.h"

namespace kizzasi {

// Number of cases: the environment's KIZZASI_CASES where it is set, else `usual`.
std::size_t cases(std::size_t usual);

// A small model of random architecture, sizes, head, channel mode and channels; `wild` scales its weights up so that its predictions go
// anywhere.
ModelFile random_model(Rng& rng, double wild = 1);

// Gives the model weights of zero (and scales of one), to be set by hand.
void still(ModelFile& model);

// Rows of a random walk around the normaliser's centres; `odd` is the share of values that are missing, infinite or huge.
Series random_series(const ModelFile& model, std::size_t rows, double odd, Rng& rng);

// The model with those constraints, or a failed test.
std::shared_ptr<const Predictor> predictor_of(ModelFile model, std::vector<ConstraintText> constraints = {}, PredictorOptions options = {});

// The values' bits, so that NaN equals itself and 0 is not -0.
std::vector<std::uint64_t> bits(std::span<const double> values);

// What decides about a model, for messages.
std::string text_of(const ModelFile& model);

}  // namespace kizzasi
