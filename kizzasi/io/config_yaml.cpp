#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "kizzasi/io/config_formats.h"

namespace kizzasi::io::detail {
namespace {

constexpr std::size_t kMostNodes = 100'000;  // aliases of aliases can grow without end
constexpr std::size_t kDeepest = 200;

std::string place(const ConfigFile& file, const YAML::Mark& mark) {
  return mark.is_null() ? file.name : fmt::format("{}:{}:{}", file.name, mark.line + 1, mark.column + 1);
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const auto word : words) {
    if (text == word) return true;
  }
  return false;
}

// A plain scalar by the core schema of YAML 1.2 (section 10.3.2).
Json scalar(const std::string& text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return {};
  if (is_one_of(text, {"true", "True", "TRUE"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE"})) return false;
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  if (is_one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return std::numeric_limits<double>::infinity();
  if (is_one_of(text, {"-.inf", "-.Inf", "-.INF"})) return -std::numeric_limits<double>::infinity();
  const char* begin = text.data() + (text.front() == '+' ? 1 : 0);
  const char* const end = text.data() + text.size();
  if (begin == end || text.find_first_not_of("+-.0123456789eE") != text.npos) {
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
      std::int64_t whole = 0;
      const auto [rest, fault] = std::from_chars(text.data() + 2, end, whole, text[1] == 'x' ? 16 : 8);
      if (fault == std::errc{} && rest == end) return whole;
    }
    return text;
  }
  std::int64_t whole = 0;
  if (const auto [rest, fault] = std::from_chars(begin, end, whole); fault == std::errc{} && rest == end) return whole;
  double real = 0;
  if (const auto [rest, fault] = std::from_chars(begin, end, real); fault == std::errc{} && rest == end) return real;
  return text;
}

class Converter {
 public:
  explicit Converter(ConfigFile& file) : file_(file) {}

  Result<Json> convert(const YAML::Node& node, const std::string& pointer, std::size_t depth) {
    if (++nodes_ > kMostNodes || depth > kDeepest) {
      return fail({Fault::kBadInput, depth > kDeepest ? "nested too deeply" : "aliases make this document far too large",
                   place(file_, node.Mark()), "at most 200 levels and 100,000 values", ""});
    }
    if (!node.Mark().is_null()) {
      file_.places.emplace(pointer,
                           std::pair{static_cast<std::uint32_t>(node.Mark().line + 1), static_cast<std::uint32_t>(node.Mark().column + 1)});
    }
    if (node.IsMap()) return convert_map(node, pointer, depth);
    if (node.IsSequence()) {
      Json out = Json::array();
      for (std::size_t i = 0; i < node.size(); ++i) {
        auto item = convert(node[i], fmt::format("{}/{}", pointer, i), depth + 1);
        if (!item) return item;
        out.push_back(std::move(*item));
      }
      return out;
    }
    if (!node.IsScalar()) return Json{};
    // The tag is "!" for a quoted text and "?" for a plain one.
    return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str" ? Json(node.Scalar()) : scalar(node.Scalar());
  }

 private:
  Result<Json> convert_map(const YAML::Node& node, const std::string& pointer, std::size_t depth) {
    Json out = Json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar()) {
        return fail({Fault::kBadInput, "a key is no plain text", place(file_, member.first.Mark()), "keys that are names", ""});
      }
      const std::string& key = member.first.Scalar();
      if (out.find(key) != nullptr) {
        return fail({Fault::kBadInput, fmt::format("key '{}' stands twice", key), place(file_, member.first.Mark()), "each key once", ""});
      }
      std::string below = pointer;
      below.append("/").append(key);
      auto value = convert(member.second, below, depth + 1);
      if (!value) return value;
      out.members().emplace_back(key, std::move(*value));
    }
    return out;
  }

  ConfigFile& file_;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<void> parse_yaml(std::string_view text, ConfigFile& file) {
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    std::erase_if(documents, [](const YAML::Node& document) { return document.IsNull() || !document.IsDefined(); });
    if (documents.size() > 1) {
      return fail({Fault::kBadInput, fmt::format("the file holds {} documents", documents.size()), place(file, documents[1].Mark()), "one",
                   "Take out the line '---' between them, or keep them in files of their own."});
    }
    auto values = documents.empty() ? Result<Json>(Json::object()) : Converter(file).convert(documents.front(), "", 0);
    if (!values) return fail(values.error());
    file.values = std::move(*values);
    return {};
  } catch (const YAML::Exception& problem) {
    return fail({Fault::kBadInput, problem.msg, place(file, problem.mark), "valid YAML", "Indent with blanks, and write 'key: value'."});
  }
}

}  // namespace kizzasi::io::detail
