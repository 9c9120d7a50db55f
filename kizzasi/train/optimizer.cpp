#include "kizzasi/train/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kizzasi/base/suggest.h"

namespace kizzasi {
namespace {

constexpr std::array<const char*, 13> kNames{"adamw",   "adam",    "sgd",  "nadam", "radam",     "adamax", "adadelta",
                                             "rmsprop", "adagrad", "lion", "lamb",  "adafactor", "muon"};
constexpr std::array<const char*, 3> kRateForms{"capped", "plain", "relative"};

double usual_epsilon(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdadelta:
    case OptimizerKind::kLamb:
      return 1e-6;
    case OptimizerKind::kAdagrad:
      return 1e-10;
    default:
      return 1e-8;
  }
}

std::vector<std::string> slot_names(OptimizerKind kind, const OptimizerConfig& config) {
  switch (kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
      return config.amsgrad ? std::vector<std::string>{"m", "v", "v_max"} : std::vector<std::string>{"m", "v"};
    case OptimizerKind::kSgd:
      return {"momentum"};
    case OptimizerKind::kNadam:
    case OptimizerKind::kRadam:
    case OptimizerKind::kLamb:
    case OptimizerKind::kMuon:  // v: of the tensors that are no matrices
      return {"m", "v"};
    case OptimizerKind::kAdafactor:
      return {"v"};
    case OptimizerKind::kAdamax:
      return {"m", "u"};
    case OptimizerKind::kAdadelta:
      return {"square", "delta"};
    case OptimizerKind::kRmsprop:
      return {"square", "mean", "momentum"};
    case OptimizerKind::kAdagrad:
      return {"sum"};
    case OptimizerKind::kLion:
      return {"m"};
  }
  return {};
}

float f32(double x) { return static_cast<float>(x); }

// m += (1 - beta) (g - m), which keeps m = g exact.
float towards(float m, float g, float share) { return m + share * (g - m); }

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

const char* to_string(OptimizerKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

void OptimizerConfig::fields(FieldVisitor& visit) {
  FieldInfo names{"optimizer", "How gradients become updates."};
  names.choices.assign(kNames.begin(), kNames.end());
  visit.field(names, optimizer);
  visit.field({"learning_rate", "Learning rate, the highest of the schedule.", 0, 1e3}, learning_rate);
  visit.field({"weight_decay", "Pull of the weights towards 0.", 0, 1e3}, weight_decay);
  visit.field({"beta1", "Adam's memory of the gradient.", 0, 0.999999}, beta1);
  visit.field({"beta2", "Adam's memory of the squared gradient.", 0, 0.99999999}, beta2);
  visit.field({"epsilon", "Smallest denominator of the adaptive optimisers; 0 means the usual one.", 0, 1}, epsilon);
  visit.field({"momentum", "Momentum of sgd, rmsprop and muon.", 0, 0.999999}, momentum);
  visit.field({"dampening", "Share of the gradient that the momentum of sgd leaves out.", 0, 1}, dampening);
  visit.field({"nesterov", "Nesterov's form of the momentum of sgd and muon."}, nesterov);
  visit.field({"amsgrad", "Divide by the largest second moment so far (adam, adamw)."}, amsgrad);
  visit.field({"rho", "Memory of adadelta.", 0, 0.999999}, rho);
  visit.field({"alpha", "Memory of rmsprop.", 0, 0.999999}, alpha);
  visit.field({"centered", "Subtract the squared mean gradient (rmsprop)."}, centered);
  visit.field({"rate_decay", "Fall of the learning rate of adagrad.", 0, 1e3}, rate_decay);
  visit.field({"initial_accumulator", "Squared gradients with which adagrad starts.", 0, 1e3}, initial_accumulator);
  visit.field({"momentum_decay", "Speed at which the momentum of nadam warms up.", 0, 1e3}, momentum_decay);
  visit.field({"bias_correction", "Adam's correction of the first steps of lamb, and decay of the weights beside the step."},
              bias_correction);
  FieldInfo forms{
      "rate_form",
      "Step sizes of adafactor: capped at 1 / sqrt(step), plain as scheduled, or relative: 1e-6 a step up to 1 / sqrt(step), the "
      "learning rate unused."};
  forms.choices.assign(kRateForms.begin(), kRateForms.end());
  visit.field(forms, rate_form);
  visit.field({"scale_by_weights", "Steps of adafactor are shares of the size of the weights."}, scale_by_weights);
  visit.field({"match_adamw", "Steps of muon as large as those of adamw are, so that its learning rates can be kept."}, match_adamw);
  visit.field({"decay_vectors", "Weight decay for tensors of one dimension too (biases, gains)."}, decay_vectors);
  visit.field({"no_decay", "Last parts of names of tensors that weight decay spares."}, no_decay);
}

OptimizerKind OptimizerConfig::kind() const {
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const char* name) { return optimizer == name; });
  return found == kNames.end() ? OptimizerKind::kAdamW : static_cast<OptimizerKind>(found - kNames.begin());
}

Result<void> OptimizerConfig::check(std::string_view where) const {
  if (auto in_range = check_fields(*this, where); !in_range) return in_range;
  if (nesterov && kind() == OptimizerKind::kSgd && (momentum == 0 || dampening != 0)) {
    return fail({Fault::kBadUse, "nesterov goes with neither dampening nor a momentum of 0", std::string(where), "", ""});
  }
  return {};
}

Result<Optimizer> Optimizer::of(const OptimizerConfig& config, const ParameterLayout& layout) {
  if (auto good = config.check("optimizer"); !good) return fail(good.error());
  // What is spared by default is spared where a model has it; a name of the user's own must be there.
  const std::vector<std::string> usual = OptimizerConfig{}.no_decay;
  std::vector<std::string> names;
  for (const ParameterLayout::Entry& entry : layout.entries()) names.push_back(last_part(entry.name));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : config.no_decay) {
    if (std::find(usual.begin(), usual.end(), name) != usual.end() || std::binary_search(names.begin(), names.end(), name)) continue;
    return fail({Fault::kBadUse, fmt::format("no tensor's name ends in '{}'", name), "no_decay",
                 fmt::format("some of {}", fmt::join(names, ", ")), did_you_mean(name, names)});
  }
  return Optimizer(config, layout);
}

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterLayout& layout)
    : config_(config), kind_(config.kind()), layout_(layout) {
  if (config_.epsilon == 0) config_.epsilon = usual_epsilon(kind_);
  for (const ParameterLayout::Entry& entry : layout_.entries()) {
    const std::string last = last_part(entry.name);
    const bool spared = std::find(config_.no_decay.begin(), config_.no_decay.end(), last) != config_.no_decay.end();
    decays_.push_back(!spared && (config_.decay_vectors || entry.shape.size() > 1));
  }
  const float start = kind_ == OptimizerKind::kAdagrad ? f32(config_.initial_accumulator) : 0.0f;
  for (const std::string& name : slot_names(kind_, config_)) slots_.push_back({name, AlignedVector<float>(layout_.total(), start)});
}

void Optimizer::step(NamedTensors& weights, std::span<const float> gradient, double learning_rate, std::optional<double> momentum) {
  assert(gradient.size() == layout_.total());
  count_step();
  const bool plain = kind_ == OptimizerKind::kSgd || kind_ == OptimizerKind::kRmsprop || kind_ == OptimizerKind::kMuon;
  const double used = momentum.value_or(plain ? config_.momentum : config_.beta1);
  for (std::size_t i = 0; i < layout_.entries().size(); ++i) {
    const ParameterLayout::Entry& entry = layout_.entries()[i];
    float* p = weights.at(entry.name).values.data();
    const float* g = gradient.data() + entry.offset;
    const double decay = decays_[i] ? config_.weight_decay : 0;
    switch (kind_) {
      case OptimizerKind::kLamb:
        update_lamb(p, g, entry, learning_rate, decay, used);
        break;
      case OptimizerKind::kAdafactor:
        update_adafactor(p, g, entry, learning_rate, decay);
        break;
      case OptimizerKind::kMuon:
        update_muon(p, g, entry, learning_rate, decay, used);
        break;
      default:
        update(kind_, p, g, entry.offset, entry.count, learning_rate, decay, used);
    }
  }
}

void Optimizer::count_step() {
  ++steps_;
  if (kind_ == OptimizerKind::kNadam) {
    nadam_product_ *= config_.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(steps_) * config_.momentum_decay));
  }
}

// The formulas, with t the number of this step, are those of torch.optim and of lion_pytorch.
void Optimizer::update(OptimizerKind kind, float* p, const float* gradient, std::size_t offset, std::size_t count, double rate,
                       double decay, double momentum) {
  const double t = static_cast<double>(steps_), beta2 = config_.beta2;
  const double correction1 = 1 - std::pow(momentum, t), correction2 = 1 - std::pow(beta2, t);
  const float lr = f32(rate), wd = f32(decay), eps = f32(config_.epsilon), b1 = f32(momentum), b2 = f32(beta2);
  const float rest1 = f32(1 - momentum), rest2 = f32(1 - beta2);
  const auto with_l2 = [=](std::size_t i) { return wd == 0 ? gradient[i] : gradient[i] + wd * p[i]; };

  switch (kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam: {
      const bool decoupled = kind == OptimizerKind::kAdamW;
      const float keep = decoupled ? f32(1 - rate * decay) : 1.0f, l2 = decoupled ? 0.0f : wd;
      const float size = f32(rate / correction1), root = f32(std::sqrt(correction2));
      float *m = slot(0, offset), *v = slot(1, offset);
      for (std::size_t i = 0; i < count; ++i) {
        const float g = gradient[i] + l2 * p[i];
        m[i] = towards(m[i], g, rest1);
        v[i] = b2 * v[i] + rest2 * (g * g);
      }
      const float* second = v;
      if (config_.amsgrad) {
        float* highest = slot(2, offset);
        for (std::size_t i = 0; i < count; ++i) highest[i] = std::max(highest[i], v[i]);
        second = highest;
      }
      for (std::size_t i = 0; i < count; ++i) p[i] = p[i] * keep - size * (m[i] / (std::sqrt(second[i]) / root + eps));
      return;
    }
    case OptimizerKind::kSgd: {
      float* buffer = slot(0, offset);
      const bool first = steps_ == 1;
      const float share = f32(1 - config_.dampening);
      for (std::size_t i = 0; i < count; ++i) {
        float g = with_l2(i);
        if (momentum != 0) {
          buffer[i] = first ? g : b1 * buffer[i] + share * g;
          g = config_.nesterov ? g + b1 * buffer[i] : buffer[i];
        }
        p[i] -= lr * g;
      }
      return;
    }
    case OptimizerKind::kNadam: {
      float *m = slot(0, offset), *v = slot(1, offset);
      const double now = config_.beta1 * (1 - 0.5 * std::pow(0.96, t * config_.momentum_decay));
      const double next = config_.beta1 * (1 - 0.5 * std::pow(0.96, (t + 1) * config_.momentum_decay));
      const float of_gradient = f32(rate * (1 - now) / (1 - nadam_product_)), of_mean = f32(rate * next / (1 - nadam_product_ * next));
      const float second = f32(1 / correction2);
      for (std::size_t i = 0; i < count; ++i) {
        const float g = with_l2(i);
        m[i] = towards(m[i], g, rest1);
        v[i] = b2 * v[i] + rest2 * (g * g);
        const float denominator = std::sqrt(v[i] * second) + eps;
        p[i] = p[i] - of_gradient * (g / denominator) - of_mean * (m[i] / denominator);
      }
      return;
    }
    case OptimizerKind::kRadam: {
      float *m = slot(0, offset), *v = slot(1, offset);
      const double rho_end = 2 / (1 - beta2) - 1, rho = rho_end - 2 * t * std::pow(beta2, t) / correction2;
      const bool rectified = rho > 5;
      const double rectification =
          rectified ? std::sqrt((rho - 4) * (rho - 2) * rho_end / ((rho_end - 4) * (rho_end - 2) * rho)) * std::sqrt(correction2) : 1;
      const float size = f32(rate / correction1 * rectification);
      for (std::size_t i = 0; i < count; ++i) {
        const float g = with_l2(i);
        m[i] = towards(m[i], g, rest1);
        v[i] = b2 * v[i] + rest2 * (g * g);
        p[i] -= size * (rectified ? m[i] / (std::sqrt(v[i]) + eps) : m[i]);
      }
      return;
    }
    case OptimizerKind::kAdamax: {
      float *m = slot(0, offset), *u = slot(1, offset);
      const float size = f32(rate / correction1);
      for (std::size_t i = 0; i < count; ++i) {
        const float g = with_l2(i);
        m[i] = towards(m[i], g, rest1);
        u[i] = std::max(b2 * u[i], std::abs(g) + eps);
        p[i] -= size * (m[i] / u[i]);
      }
      return;
    }
    case OptimizerKind::kAdadelta: {
      float *square = slot(0, offset), *delta = slot(1, offset);
      const float rho = f32(config_.rho), rest = f32(1 - config_.rho);
      for (std::size_t i = 0; i < count; ++i) {
        const float g = with_l2(i);
        square[i] = rho * square[i] + rest * (g * g);
        const float change = std::sqrt(delta[i] + eps) / std::sqrt(square[i] + eps) * g;
        delta[i] = rho * delta[i] + rest * (change * change);
        p[i] -= lr * change;
      }
      return;
    }
    case OptimizerKind::kRmsprop: {
      float *square = slot(0, offset), *mean = slot(1, offset), *buffer = slot(2, offset);
      const float alpha = f32(config_.alpha), rest = f32(1 - config_.alpha);
      for (std::size_t i = 0; i < count; ++i) {
        const float g = with_l2(i);
        square[i] = alpha * square[i] + rest * (g * g);
        mean[i] = towards(mean[i], g, rest);
        // Rounding may leave a variance just below 0.
        const float second = config_.centered ? std::max(square[i] - mean[i] * mean[i], 0.0f) : square[i];
        buffer[i] = b1 * buffer[i] + g / (std::sqrt(second) + eps);
        p[i] -= lr * buffer[i];
      }
      return;
    }
    case OptimizerKind::kAdagrad: {
      float* sum = slot(0, offset);
      const float size = f32(rate / (1 + (t - 1) * config_.rate_decay));
      for (std::size_t i = 0; i < count; ++i) {
        const float g = with_l2(i);
        sum[i] += g * g;
        p[i] -= size * (g / (std::sqrt(sum[i]) + eps));
      }
      return;
    }
    case OptimizerKind::kLion: {
      float* m = slot(0, offset);
      const float keep = f32(1 - rate * decay);
      for (std::size_t i = 0; i < count; ++i) {
        const float direction = towards(m[i], gradient[i], rest1);
        p[i] = p[i] * keep - lr * static_cast<float>((direction > 0) - (direction < 0));
        m[i] = towards(m[i], gradient[i], rest2);
      }
      return;
    }
    case OptimizerKind::kLamb:
    case OptimizerKind::kAdafactor:
    case OptimizerKind::kMuon:
      return;  // of whole tensors, in optimizer_tensor.cpp
  }
}

NamedTensors Optimizer::state_tensors() const {
  NamedTensors state;
  for (const Slot& each : slots_) {
    for (const ParameterLayout::Entry& entry : layout_.entries()) {
      const float* from = each.values.data() + entry.offset;
      state.emplace(fmt::format("{}.{}", each.name, entry.name), Tensor(entry.shape, std::vector<float>(from, from + entry.count)));
    }
  }
  // In two f32 that are whole: exact up to 2^44.
  state.emplace("steps", Tensor({2}, {static_cast<float>(steps_ >> 20), static_cast<float>(steps_ & 0xfffff)}));
  return state;
}

Result<void> Optimizer::restore(const NamedTensors& state) {
  const auto find = [&](const std::string& name, std::size_t count) -> Result<const Tensor*> {
    const auto found = state.find(name);
    if (found != state.end() && found->second.values.size() == count) return &found->second;
    const std::string what = fmt::format("{} '{}'", found == state.end() ? "no tensor" : "wrong size of tensor", name);
    return fail({Fault::kBroken, what, "optimizer state", fmt::format("{} values", count),
                 "The state belongs to another model or another optimizer."});
  };
  const auto steps = find("steps", 2);
  if (!steps) return fail(steps.error());
  std::vector<Slot> slots = slots_;
  for (Slot& each : slots) {
    for (const ParameterLayout::Entry& entry : layout_.entries()) {
      const auto tensor = find(fmt::format("{}.{}", each.name, entry.name), entry.count);
      if (!tensor) return fail(tensor.error());
      std::copy((*tensor)->values.begin(), (*tensor)->values.end(), each.values.begin() + static_cast<std::ptrdiff_t>(entry.offset));
    }
  }
  slots_ = std::move(slots);
  const std::int64_t count = (static_cast<std::int64_t>((*steps)->values[0]) << 20) + static_cast<std::int64_t>((*steps)->values[1]);
  for (steps_ = 0, nadam_product_ = 1; steps_ < count;) count_step();
  return {};
}

}  // namespace kizzasi
