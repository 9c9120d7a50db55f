// Is a model of this program the same function as the published one? Its outputs, states, split runs and gradients beside those in a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/json.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {

// One tensor of the reference beside ours.
struct ComparedTensor {
  std::string name;      // as in the reference file
  std::string path;      // how ours was computed: "run", "step", "forward" (as training does), "forward f64"
  double max_abs = 0;    // the largest |ours - reference|; infinite where ours is not finite
  double max_rel = 0;    // that, over the largest |reference|
  double tolerance = 0;  // allowed max_abs
  std::string problem;   // why they could not be compared (other sizes); empty otherwise
  bool good() const { return problem.empty() && max_abs <= tolerance; }
};

struct Verification {
  std::vector<ComparedTensor> tensors;
  std::vector<std::string> not_compared;  // tensors of the reference without a meaning here
  std::vector<std::string> known_wrong;   // tensors that the reference's program is known to compute wrongly; left out, too
  bool good() const;
};

// Compares the published checkpoint with the reference tensors of `io`:
//   input (batch, time, d) or ids (batch, time), or tokens (time); output, output_f64, logits; layer{i}.output; split.t{k}.output;
//   output_split, output_step; output_rate_{r}; state.t{t}.layer{i}.conv | ssm, in the published layout; state.{i} and state.{i}.{field},
//   of layer i after the last frame; state, state_step; kernel;
//   cotangent, with grad.{weight} and grad.input of sum(output * cotangent).
// Tolerances: `description`'s "tolerance", by tensor (suggested_absolute_tolerance) or as "fair" shares of the largest value; without one
// 1e-5 of the largest value, 1e-4 for gradients. In f32 all gradients of a case have its loosest share; in double each its own.
// config: the published configuration. `where` names the checkpoint in messages.
Result<Verification> verify_checkpoint(const SafetensorsFile& checkpoint, const SafetensorsFile& io, const Json& config,
                                       const Json& description, std::string_view where);

}  // namespace kizzasi
