// First-order optimisers, each the very arithmetic of its published implementation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/aligned.h"
#include "kizzasi/base/fields.h"
#include "kizzasi/train/parameter_layout.h"

namespace kizzasi {

enum class OptimizerKind { kAdamW, kAdam, kSgd, kNadam, kRadam, kAdamax, kAdadelta, kRmsprop, kAdagrad, kLion, kLamb, kAdafactor, kMuon };

const char* to_string(OptimizerKind kind);  // "adamw", "adam", "sgd", ...

struct OptimizerConfig {
  std::string optimizer = "adamw";
  double learning_rate = 1e-3;
  double weight_decay = 0.01;  // adamw, lion, lamb, adafactor, muon: of the parameter; the others: added to the gradient (L2)
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 0;                                                            // 0: the usual one of the optimiser
  double momentum = 0.9;                                                         // sgd, rmsprop, muon
  double dampening = 0;                                                          // sgd
  bool nesterov = false;                                                         // sgd, muon
  bool amsgrad = false;                                                          // adam, adamw
  double rho = 0.9;                                                              // adadelta
  double alpha = 0.99;                                                           // rmsprop
  bool centered = false;                                                         // rmsprop
  double rate_decay = 0;                                                         // adagrad
  double initial_accumulator = 0;                                                // adagrad
  double momentum_decay = 4e-3;                                                  // nadam
  bool bias_correction = true;                                                   // lamb; false: the decay is part of the step, too
  std::string rate_form = "capped";                                              // adafactor
  bool scale_by_weights = true;                                                  // adafactor
  bool match_adamw = false;                                                      // muon
  bool decay_vectors = false;                                                    // weight decay for tensors of one dimension too
  std::vector<std::string> no_decay{"A_log", "log_dt", "log_A_real", "A_imag"};  // last parts of names that weight decay spares

  void fields(FieldVisitor& visit);
  OptimizerKind kind() const;
  Result<void> check(std::string_view where) const;
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

// Updates weights by gradients. The state is f32, one or more numbers for each parameter; every element is computed alone and in one order,
// so equal inputs give equal bits on every machine. Thread: one at a time. Real-time: no.
class Optimizer {
 public:
  static Result<Optimizer> of(const OptimizerConfig& config, const ParameterLayout& layout);

  // One update of the tensors of the layout (all of them in `weights`, others untouched). gradient: (layout.total()).
  // momentum, where a schedule moves it: stands for `momentum` or beta1.
  void step(NamedTensors& weights, std::span<const float> gradient, double learning_rate, std::optional<double> momentum = {});

  std::int64_t steps() const noexcept { return steps_; }
  // All that the next step needs, for exact resume: "<slot>.<tensor>" and "steps".
  NamedTensors state_tensors() const;
  Result<void> restore(const NamedTensors& state);

 private:
  struct Slot {
    std::string name;  // "m", "v", ...
    AlignedVector<float> values;
  };
  Optimizer(const OptimizerConfig& config, const ParameterLayout& layout);
  float* slot(std::size_t index, std::size_t offset) { return slots_[index].values.data() + offset; }
  void count_step();
  void update(OptimizerKind kind, float* p, const float* g, std::size_t offset, std::size_t count, double rate, double decay,
              double momentum);
  // Those that look at a tensor as a whole. p, g: of that entry.
  void update_lamb(float* p, const float* g, const ParameterLayout::Entry& entry, double rate, double decay, double momentum);
  void update_adafactor(float* p, const float* g, const ParameterLayout::Entry& entry, double rate, double decay);
  void update_muon(float* p, const float* g, const ParameterLayout::Entry& entry, double rate, double decay, double momentum);

  OptimizerConfig config_;
  OptimizerKind kind_ = OptimizerKind::kAdamW;
  ParameterLayout layout_;
  std::vector<bool> decays_;  // of each entry
  std::vector<Slot> slots_;
  std::int64_t steps_ = 0;
  double nadam_product_ = 1;  // of the momenta of all steps
};

}  // namespace kizzasi
