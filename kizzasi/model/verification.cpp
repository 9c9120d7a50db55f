#include "kizzasi/model/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "kizzasi/model/verification_lines.h"

namespace kizzasi {

bool Verification::good() const {
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [](const ComparedTensor& t) { return t.good(); });
}

Result<Verification> verify_checkpoint(const SafetensorsFile& checkpoint, const SafetensorsFile& io, const Json& config,
                                       const Json& description, std::string_view where) {
  verification::Lines lines(io, description);
  const auto layers = layer_formats();
  const auto models = model_formats();
  const auto knows = [&](const auto& format) { return format.recognises(checkpoint.tensors); };
  const auto layer = std::find_if(layers.begin(), layers.end(), knows);
  const auto model = std::find_if(models.begin(), models.end(), knows);
  Result<void> done;
  if (layer != layers.end()) {
    const auto read = layer->read(checkpoint.tensors, config, where);
    if (!read) return fail(read.error());
    done = verification::verify_layer(*read, checkpoint.tensors, lines);
  } else if (model != models.end()) {
    const auto read = model->read(checkpoint.tensors, config, where);
    if (!read) return fail(read.error());
    done = verification::verify_stack(*read, checkpoint.tensors, lines);
  } else {
    std::string known = "a published checkpoint of ";
    for (const ModelFormat& each : models) known.append(each.name).append(", ");
    for (const LayerFormat& each : layers) known.append(each.name).append(", ");
    known.resize(known.size() - 2);
    return fail(
        {Fault::kBadInput, "the names of its tensors belong to no architecture known here", std::string(where), std::move(known), ""});
  }
  if (!done) return fail(done.error());
  return lines.finish();
}

namespace verification {
namespace {

constexpr double kOutputShare = 1e-5, kGradientShare = 1e-4;  // of the largest value, where the reference names no tolerance

}  // namespace

// The largest share of its largest value that the tolerance of a gradient of this case is; 0 where the description tells none.
double Lines::loosest_gradient_share() const {
  double loosest = 0;
  const Json* all = description_.find("tolerance");
  for (const auto& [name, tensor] : io_.tensors) {
    const Json* own = all != nullptr && name.starts_with("grad.") ? all->find(name) : nullptr;
    const Json *value = own != nullptr ? own->find("suggested_absolute_tolerance") : nullptr,
               *largest = own != nullptr ? own->find("largest_value") : nullptr;
    if (value == nullptr || largest == nullptr || !value->is_number() || !largest->is_number() || !(largest->number() > 0)) continue;
    loosest = std::max(loosest, value->number() / largest->number());
  }
  return loosest;
}

// Where the reference has the recurrence beside another form of the same layer, and the two disagree (RetNet's parallel form: its norm sees
// another scale), nothing that equals the one can be nearer to the other than that.
double Lines::disagreement(const std::string& name) const {
  const auto step = io_.tensors.find("output_step"), other = io_.tensors.find(name.starts_with("grad.") ? "output" : name);
  if (step == io_.tensors.end() || other == io_.tensors.end() || !other->first.starts_with("output")) return 0;
  const std::vector<float>&a = step->second.values, &b = other->second.values;
  if (a.size() != b.size()) return 0;
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    apart = std::max(apart, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest > 0 ? apart / largest : 0;
}

double Lines::tolerance(const std::string& name, std::string_view path, double largest) const {
  const bool gradient = name.starts_with("grad.");
  if (const Json* all = description_.find("tolerance")) {
    const Json* own = all->find(name == "output_f64" ? "output" : name);
    if (own != nullptr) {
      if (const Json* value = own->find("suggested_absolute_tolerance"); value != nullptr && value->is_number()) {
        // A tensor's own figure in f32 is one draw of rounding, by luck a small one; in double there is no luck.
        const bool rounded = gradient && path == kForwardPath<float>;
        return std::max(value->number(), rounded ? loosest_gradient_share() * largest : 0.0);
      }
    }
    if (const Json* fair = all->find("fair")) {
      if (const Json* share = fair->find(gradient ? "grad" : "output"); share != nullptr && share->is_number())
        return share->number() * largest;
    }
  }
  return (gradient ? kGradientShare : kOutputShare) * largest;
}

void Lines::compare(const std::string& name, std::string_view path, std::span<const float> ours) { add(name, path, ours); }
void Lines::compare(const std::string& name, std::string_view path, std::span<const double> ours) { add(name, path, ours); }

template <typename T>
void Lines::add(const std::string& name, std::string_view path, std::span<const T> ours) {
  const auto reference = io_.tensors.find(name);
  if (reference == io_.tensors.end()) return;
  used(name);
  const auto wide = io_.wide.find(name);
  const std::vector<float>& narrow = reference->second.values;
  ComparedTensor line{name, std::string(path), 0, 0, 0, ""};
  double largest = 0;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const double truth = wide == io_.wide.end() ? static_cast<double>(narrow[i]) : wide->second[i];
    largest = std::max(largest, std::abs(truth));
    if (i >= ours.size()) continue;
    const double apart = std::abs(static_cast<double>(ours[i]) - truth);
    line.max_abs = std::max(line.max_abs, std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity());
  }
  if (ours.size() != narrow.size()) {
    line.problem = fmt::format("the reference has shape {}, ours has {} values", shape_text(reference->second.shape), ours.size());
  }
  line.max_rel = largest > 0 ? line.max_abs / largest : line.max_abs;
  line.tolerance = tolerance(name, path, largest) + disagreement(name) * largest;
  report_.tensors.push_back(std::move(line));
}

std::string Lines::made_by() const {
  const Json* made = description_.find("produced_by");
  const Json* by = made != nullptr ? made->find("class") : nullptr;
  return by != nullptr && by->is_string() ? by->string() : "";
}

std::optional<std::size_t> Lines::split_at() const {
  const Json* split = description_.find("split_at");
  if (split == nullptr || !split->is_integer() || split->integer() < 0) return std::nullopt;
  return static_cast<std::size_t>(split->integer());
}

Verification Lines::finish() {
  for (const auto& [name, tensor] : io_.tensors) {
    if (used_.count(name) == 0) report_.not_compared.push_back(name);
  }
  return std::move(report_);
}

std::int64_t number_between(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix)) return -1;
  const std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::int64_t value = -1;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return fault == std::errc{} && end == digits.data() + digits.size() ? value : -1;
}

Result<Shape> three_axes(const Lines& lines, const std::string& name) {
  const auto found = lines.io().tensors.find(name);
  if (found == lines.io().tensors.end() || found->second.shape.size() != 3) {
    return fail({Fault::kBadInput, fmt::format("the reference has no '{}' of three axes", name), "", "(batch, time, features)", ""});
  }
  return found->second.shape;
}

}  // namespace verification
}  // namespace kizzasi
