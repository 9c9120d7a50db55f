// What the verifications of stacks and of lone layers share. Included by verification*.cpp only.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "kizzasi/base/aligned.h"
#include "kizzasi/model/backbone.h"
#include "kizzasi/model/published.h"
#include "kizzasi/model/published_layer.h"
#include "kizzasi/model/verification.h"

namespace kizzasi::verification {

// Gathers the lines of a report and remembers which tensors of the reference were used.
class Lines {
 public:
  Lines(const SafetensorsFile& io, const Json& description) : io_(io), description_(description) {}

  // Compares ours (in the reference's layout) with the reference tensor `name`; nothing happens where the file has none.
  void compare(const std::string& name, std::string_view path, std::span<const float> ours);
  void compare(const std::string& name, std::string_view path, std::span<const double> ours);
  bool has(const std::string& name) const { return io_.tensors.count(name) != 0; }
  void used(const std::string& name) { used_.insert(name); }
  // A tensor that the program which made the reference computes wrongly.
  void known_wrong(const std::string& name) {
    used(name);
    report_.known_wrong.push_back(name);
  }
  const SafetensorsFile& io() const { return io_; }
  // Which class of which package made the reference, where the description says so.
  std::string made_by() const;
  // Where the reference's second part of a split run begins, where the description says so.
  std::optional<std::size_t> split_at() const;
  Verification finish();

 private:
  template <typename T>
  void add(const std::string& name, std::string_view path, std::span<const T> ours);
  double tolerance(const std::string& name, std::string_view path, double largest) const;
  double loosest_gradient_share() const;
  double disagreement(const std::string& name) const;  // of the reference with itself, as a share of its largest value
  const SafetensorsFile& io_;
  const Json& description_;
  std::set<std::string> used_;
  Verification report_;
};

// The number after `prefix` in `name`, up to `suffix` ("split.t17.output"), or -1.
std::int64_t number_between(std::string_view name, std::string_view prefix, std::string_view suffix);

// How the reports call the way through a tape of type T, as training goes.
template <typename T>
inline constexpr std::string_view kForwardPath = sizeof(T) == sizeof(double) ? "forward f64" : "forward";

using State = StateBlock;

// Weights as leaves that want gradients.
template <typename T>
WeightVars<T> weight_leaves(autograd::Tape<T>& tape, const NamedTensors& weights) {
  WeightVars<T> vars;
  for (const auto& [name, tensor] : weights) {
    const std::vector<T> values(tensor.values.begin(), tensor.values.end());
    vars.add(name, tape.leaf(tensor.shape, std::span<const T>(values)));
  }
  return vars;
}

// (batch, time, features), checked.
Result<Shape> three_axes(const Lines& lines, const std::string& name);

Result<void> verify_stack(const PublishedModel& model, const NamedTensors& published, Lines& lines);
Result<void> verify_layer(const PublishedLayer& layer, const NamedTensors& published, Lines& lines);

}  // namespace kizzasi::verification
