#include <fmt/format.h>

#include "kizzasi/logic/compiled.h"
#include "kizzasi/logic/formula.h"

namespace kizzasi::logic {
namespace {

const char* form_name(Form form) {
  switch (form) {
    case Form::kBox:
      return "range";
    case Form::kRate:
      return "moving range";
    case Form::kRow:
      return "affine";
    case Form::kGiven:
      return "given";
  }
  return "";
}

// The dearest form among the atoms of a constraint says what it is.
Form form_of(const Compiled& c, const CompiledConstraint& constraint) {
  Form form = Form::kGiven;
  for (std::uint32_t i = 0; i < constraint.atoms; ++i) {
    const Form own = c.forms[constraint.first_atom + i];
    if (own != Form::kGiven && (form == Form::kGiven || own > form)) form = own;
  }
  return form;
}

std::string cost(const Compiled& c, const CompiledConstraint& constraint, Form form) {
  const std::size_t channels = constraint.channels.size();
  switch (form) {
    case Form::kBox:
      return fmt::format("{} clamp{} a frame, to bounds found when compiling", channels, channels == 1 ? "" : "s");
    case Form::kRate:
      return fmt::format("{} clamp{} a frame, each end found by a short search in doubles", channels, channels == 1 ? "" : "s");
    case Form::kRow: {
      const std::int64_t in = c.group_of[constraint.channels.front()];
      const std::size_t members = in < 0 ? channels : c.groups[static_cast<std::size_t>(in)].members.size();
      return fmt::format("m log m a frame, m = {}", members);
    }
    case Form::kGiven:
      return "one evaluation a frame";
  }
  return "";
}

std::string enforcement(const CompiledConstraint& constraint, Form form) {
  if (form == Form::kGiven) return "judged only: none of its channels is predicted";
  if (constraint.text.soft) {
    return fmt::format("soft: gives way at a cost of {} * slack^2 beside the squared distance moved", number_text(constraint.text.weight));
  }
  switch (constraint.policy) {
    case Policy::kProject:
      return "project: the nearest value that obeys is emitted";
    case Policy::kReject:
      return "reject: a prediction that breaks it is refused";
    case Policy::kHold:
      return "hold: its channels keep what was emitted last";
    case Policy::kWarn:
      return "warn: reported, nothing is moved";
  }
  return "";
}

std::string place(const ConstraintText& text) { return text.line == 0 ? text.where : fmt::format("{}:{}", text.where, text.line); }

}  // namespace

Json explain(const Compiled& c) {
  Json list = Json::array();
  for (const CompiledConstraint& constraint : c.constraints) {
    const Form form = form_of(c, constraint);
    Json one = Json::object();
    one["name"] = constraint.text.name;
    one["that"] = constraint.text.that;
    one["read_as"] = constraint.read_as;
    one["where"] = place(constraint.text);
    one["class"] = form_name(form);
    one["cost"] = cost(c, constraint, form);
    one["enforcement"] = enforcement(constraint, form);
    one["else"] = constraint.text.otherwise;
    one["priority"] = constraint.text.priority;
    one["soft"] = constraint.text.soft;
    one["weight"] = constraint.text.weight;
    Json channels = Json::array();
    for (const std::uint32_t channel : constraint.channels) channels.push_back(c.schema.channels[channel].name);
    one["channels"] = std::move(channels);
    list.push_back(std::move(one));
  }
  Json out = Json::object();
  out["emitted"] = c.grid.all_doubles() ? std::string("doubles, or text with all their digits")
                                        : fmt::format("text with {} decimals", c.grid.decimals());
  out["constraints"] = std::move(list);
  return out;
}

}  // namespace kizzasi::logic
