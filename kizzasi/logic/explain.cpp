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

// Of constraints that are enforced together with others over the same channels.
struct JointForm {
  bool choice = false, curved = false, past = false, remembers = false, coupled = false, ahead = false;
  std::size_t channels = 0, rows = 0, combinations = 1;
};

JointForm joint_form_of(const Compiled& c, const CompiledConstraint& constraint) {
  JointForm form;
  std::int64_t in = -1;
  for (const JointClause& clause : c.joint->clauses()) {
    if (static_cast<std::int64_t>(clause.constraint) != constraint.joint) continue;
    form.ahead = form.ahead || clause.promise >= 0;
    form.choice = form.choice || clause.branches.size() > 1;
    if (!clause.channels.empty()) in = c.joint->group_of(clause.channels.front());
    for (const auto& branch : clause.branches) {
      for (const std::uint32_t index : branch) {
        const JointLiteral& literal = c.joint->literals()[index];
        form.curved = form.curved || literal.convex;
        form.past = form.past || literal.looks_elsewhere;
        form.remembers = form.remembers || literal.kind == Literal::Kind::kKnown;
        form.coupled = form.coupled || literal.variables.size() > 1;
      }
    }
  }
  if (in < 0) return form;
  const JointGroup& group = c.joint->groups()[static_cast<std::size_t>(in)];
  form.channels = group.channels.size();
  form.rows = group.rows;
  form.combinations = group.branches;
  return form;
}

std::string joint_class(const JointForm& form) {
  std::string name = form.choice ? "choice" : form.curved ? "convex" : form.coupled ? "affine" : form.past ? "moving range" : "range";
  if (form.choice && form.curved) name += " of convex sets";
  if (form.ahead) name = "deadline";
  if (form.remembers) name += ", over the past of conditions";
  return name;
}

std::string joint_cost(const JointForm& form) {
  if (form.channels == 0) return "one evaluation a frame";
  std::string text = fmt::format("a quadratic program of {} channel{} and up to {} row{} where it is broken", form.channels,
                                 form.channels == 1 ? "" : "s", form.rows, form.rows == 1 ? "" : "s");
  if (form.curved) text += ", a few times over, until its planes have closed in";
  if (form.combinations > 1) text += fmt::format("; of {} combinations of branches those that may be nearest", form.combinations);
  return text;
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
    const JointForm joint = constraint.joint < 0 ? JointForm{} : joint_form_of(c, constraint);
    const Form form = constraint.joint < 0 ? form_of(c, constraint) : constraint.channels.empty() ? Form::kGiven : Form::kRow;
    Json one = Json::object();
    one["name"] = constraint.text.name;
    one["that"] = constraint.text.that;
    one["read_as"] = constraint.read_as;
    one["where"] = place(constraint.text);
    one["class"] = constraint.joint < 0 || form == Form::kGiven ? std::string(form_name(form)) : joint_class(joint);
    one["cost"] = constraint.joint < 0 ? cost(c, constraint, form) : joint_cost(joint);
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
