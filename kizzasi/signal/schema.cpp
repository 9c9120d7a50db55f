#include "kizzasi/signal/schema.h"

#include <fmt/format.h>

#include <array>
#include <unordered_set>

#include "kizzasi/base/suggest.h"

namespace kizzasi {
namespace {

constexpr std::array<Role, 3> kRoles{Role::kTarget, Role::kObserved, Role::kKnownFuture};

tl::unexpected<Error> bad(std::string what, std::string where, std::string expected, std::string hint = "") {
  return fail({Fault::kBadInput, std::move(what), std::move(where), std::move(expected), std::move(hint)});
}

// Every key of `object` is one of `known`.
Result<void> only_known(const Json& object, std::span<const std::string> known, std::string_view where) {
  for (const auto& [key, value] : object.members()) {
    bool found = false;
    for (const std::string& name : known) found |= name == key;
    if (!found)
      return bad(fmt::format("key '{}' is not known", key), std::string(where), fmt::to_string(fmt::join(known, ", ")),
                 did_you_mean(key, known));
  }
  return {};
}

Result<std::string> text_member(const Json& object, const char* key, std::string_view where) {
  const Json* value = object.find(key);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return bad(fmt::format("'{}' is of kind {}", key, value->kind()), std::string(where), "a text");
  return value->string();
}

Result<Role> role_from(const std::string& name, std::string_view where) {
  std::vector<std::string> names;
  for (const Role role : kRoles) {
    if (name == to_string(role)) return role;
    names.emplace_back(to_string(role));
  }
  return bad(fmt::format("'{}' is no role", name), std::string(where), fmt::to_string(fmt::join(names, ", ")), did_you_mean(name, names));
}

Result<Channel> channel_from(const Json& json, std::string_view where) {
  static const std::vector<std::string> kKeys{"name", "unit", "role"};
  if (!json.is_object()) return bad(fmt::format("a channel is of kind {}", json.kind()), std::string(where), "an object with a name");
  if (auto known = only_known(json, kKeys, where); !known) return fail(known.error());
  const auto name = text_member(json, "name", where);
  const auto unit = text_member(json, "unit", where);
  const auto role = text_member(json, "role", where);
  for (const auto* text : {&name, &unit, &role}) {
    if (!*text) return fail(text->error());
  }
  if (name->empty()) return bad("a channel has no name", std::string(where), "a text under 'name'");
  const auto which = role->empty() ? Result<Role>(Role::kTarget) : role_from(*role, where);
  if (!which) return fail(which.error());
  return Channel{*name, *unit, *which};
}

}  // namespace

std::optional<std::size_t> Schema::index_of(std::string_view name) const {
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels[i].name == name) return i;
  }
  return std::nullopt;
}

std::vector<std::string> Schema::names() const {
  std::vector<std::string> all;
  for (const Channel& channel : channels) all.push_back(channel.name);
  return all;
}

std::vector<std::size_t> Schema::with_role(Role role) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (channels[i].role == role) found.push_back(i);
  }
  return found;
}

const char* to_string(Role role) {
  switch (role) {
    case Role::kTarget:
      return "target";
    case Role::kObserved:
      return "observed";
    case Role::kKnownFuture:
      return "known_future";
  }
  return "target";
}

Json to_json(const Schema& schema) {
  Json channels = Json::array();
  for (const Channel& channel : schema.channels) {
    channels.push_back(Json::Object{{"name", channel.name}, {"unit", channel.unit}, {"role", to_string(channel.role)}});
  }
  return Json::Object{{"channels", std::move(channels)}, {"step_ns", schema.step_ns}, {"zone", schema.zone}};
}

Result<Schema> schema_from_json(const Json& json, std::string_view where) {
  static const std::vector<std::string> kKeys{"channels", "step_ns", "zone"};
  if (!json.is_object()) return bad(fmt::format("the schema is of kind {}", json.kind()), std::string(where), "an object with channels");
  if (auto known = only_known(json, kKeys, where); !known) return fail(known.error());
  const Json* channels = json.find("channels");
  if (channels == nullptr || !channels->is_array()) return bad("the schema has no channels", std::string(where), "a list under 'channels'");
  Schema schema;
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < channels->items().size(); ++i) {
    const std::string place = fmt::format("{}: channel {}", where, i + 1);
    auto channel = channel_from(channels->items()[i], place);
    if (!channel) return fail(channel.error());
    if (!seen.insert(channel->name).second)
      return bad(fmt::format("the name '{}' stands twice", channel->name), place, "names that differ");
    schema.channels.push_back(std::move(*channel));
  }
  if (const Json* step = json.find("step_ns")) {
    if (!step->is_integer() || step->integer() < 0) return bad("'step_ns' is no step", std::string(where), "whole nanoseconds, at least 0");
    schema.step_ns = step->integer();
  }
  auto zone = text_member(json, "zone", where);
  if (!zone) return fail(zone.error());
  schema.zone = std::move(*zone);
  return schema;
}

}  // namespace kizzasi
