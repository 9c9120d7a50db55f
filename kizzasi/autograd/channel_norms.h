// Norms of (batch, channels, ...) as convolutional networks have them: over groups of channels, or over the batch.
#pragma once

#include <vector>

#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {

// Over each group of channels of each element of the batch (Wu and He 2018); gain and bias of a channel each, or {}. With as many groups as
// channels: the instance norm. groups divides the channels.
template <typename T>
Var<T> group_norm(Var<T> x, std::size_t groups, Var<T> gain, Var<T> bias, T epsilon);

// Over all but the channels (Ioffe and Szegedy 2015), for training.
template <typename T>
Var<T> batch_norm(Var<T> x, Var<T> gain, Var<T> bias, T epsilon);

// What a batch norm remembers of its batches, in double.
struct RunningMoments {
  std::vector<double> mean, variance;  // of each channel

  explicit RunningMoments(std::size_t channels) : mean(channels, 0.0), variance(channels, 1.0) {}
  // Moved by `share` towards the moments of x (batch, channels, ...), its variance without bias.
  template <typename T>
  void observe(Var<T> x, double share = 0.1);
};
// The same with the moments remembered, for use after training: an affine map of each channel.
template <typename T>
Var<T> batch_norm(Var<T> x, const RunningMoments& moments, Var<T> gain, Var<T> bias, T epsilon);

}  // namespace kizzasi::autograd
