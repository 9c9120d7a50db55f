#include "kizzasi/model/rwkv/published_cpp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace kizzasi {
namespace {

enum class Version { k4, k50, k52, k6, k7 };

Version version_of(const NamedTensors& tensors) {
  const auto has = [&](const char* name) { return tensors.count(std::string("blocks.0.att.") + name) != 0; };
  if (has("r_k")) return Version::k7;
  if (has("time_maa_w1")) return Version::k6;
  if (has("time_faaaa")) return Version::k52;
  return has("ln_x.weight") ? Version::k50 : Version::k4;
}

// Bounds between which exp(x) is neither 0 nor infinite in double, and beyond which exp(-exp(x)) is 1 and 0 in f32.
constexpr double kLeastExponent = -104, kMostExponent = 5;

// x with f(x) the stored value; NaN where there is none.
using Undo = double (*)(double);
double minus_exp(double y) { return y <= 0 ? std::max(kLeastExponent, std::log(-y)) : std::nan(""); }
double exp_minus_exp(double y) {
  return y >= 0 && y <= 1 ? std::clamp(std::log(-std::log(y)), kLeastExponent, kMostExponent) : std::nan("");
}
double plain_exp(double y) { return y >= 0 ? std::max(kLeastExponent, std::log(y)) : std::nan(""); }

Result<void> undo(Tensor& tensor, Undo inverse, const char* form, std::string_view where) {
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const double x = inverse(static_cast<double>(tensor.values[i]));
    if (std::isnan(x)) return refused(fmt::format("value {} is {}", i, tensor.values[i]), where, form);
    tensor.values[i] = static_cast<float>(x);
  }
  return {};
}

// (heads, channels of one): the file may have more axes of one element, and lacks that of the heads where there is one head.
Result<void> by_head(Tensor& tensor, std::size_t d, std::string_view where) {
  const std::size_t heads = tensor.shape[0] == d ? 1 : tensor.shape[0];
  if (tensor.values.size() != d || d % heads != 0) {
    return refused(fmt::format("the shape is {}", shape_text(tensor.shape)), where, fmt::format("whole heads of {} channels together", d));
  }
  tensor.shape = {heads, d / heads};
  return {};
}

// The last two axes exchanged.
Result<void> transpose(Tensor& tensor, std::string_view where) {
  if (tensor.shape.size() < 2) return refused(fmt::format("the shape is {}", shape_text(tensor.shape)), where, "a matrix");
  const std::size_t rows = tensor.shape[tensor.shape.size() - 2], cols = tensor.shape.back();
  Tensor turned(tensor.shape);
  std::swap(turned.shape[turned.shape.size() - 2], turned.shape.back());
  for (std::size_t block = 0; block < tensor.values.size(); block += rows * cols) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) turned.values[block + c * rows + r] = tensor.values[block + r * cols + c];
    }
  }
  tensor = std::move(turned);
  return {};
}

// One tensor, but for the shares of the mixes of 7.
Result<void> as_published(Version version, std::string_view name, Tensor& tensor, std::size_t d, std::string_view where) {
  const bool channels = version == Version::k52 || version == Version::k6;
  if (name == "time_decay") {
    if (version == Version::k4) return undo(tensor, minus_exp, "-exp(w)", where);
    if (version == Version::k6) return {};
    if (version == Version::k50) tensor.shape = {tensor.values.size()};
    if (auto good = undo(tensor, exp_minus_exp, "exp(-exp(w))", where); !good) return good;
    return channels ? by_head(tensor, d, where) : Result<void>{};
  }
  if (name == "time_first" && version == Version::k50) {
    tensor.shape = {tensor.values.size()};
    return undo(tensor, plain_exp, "exp(u)", where);
  }
  if (name == "time_faaaa") return by_head(tensor, d, where);
  static const std::set<std::string_view> kTransposed{
      "time_maa_w1", "time_maa_w2", "time_decay_w1", "time_decay_w2", "w1", "w2", "a1", "a2", "v1", "v2", "g1", "g2"};
  if ((version == Version::k6 || version == Version::k7) && kTransposed.count(name) != 0) return transpose(tensor, where);
  return {};
}

Result<void> check_header(const RwkvCppFile& file, std::string_view where) {
  const auto expect = [&](const char* name, std::size_t axis, std::int64_t wanted) -> Result<void> {
    const std::int64_t found = size_of(file.tensors, name, axis);
    if (found == wanted) return {};
    return refused(fmt::format("the header tells {} and tensor '{}' has {}", wanted, name, found), where, "a header that fits the tensors");
  };
  if (auto good = expect("emb.weight", 0, file.vocabulary); !good) return good;
  if (auto good = expect("emb.weight", 1, file.d_model); !good) return good;
  if (auto good = expect("ln_out.weight", 0, file.d_model); !good) return good;
  std::int64_t blocks = 0;
  while (file.tensors.count(fmt::format("blocks.{}.ln1.weight", blocks)) != 0) ++blocks;
  if (blocks == file.layers) return {};
  return refused(fmt::format("the header tells {} blocks and the file has {}", file.layers, blocks), where, "all of them");
}

}  // namespace

Result<RwkvCppCheckpoint> published_of(const RwkvCppFile& file, std::string_view where) {
  if (auto good = check_header(file, where); !good) return fail(good.error());
  const Version version = version_of(file.tensors);
  RwkvCppCheckpoint checkpoint;
  checkpoint.config = Json::object();
  if (version == Version::k50 || version == Version::k52) checkpoint.config["head_norm_epsilon"] = 1e-5;
  for (const auto& [name, stored] : file.tensors) {
    const std::string at = fmt::format("{}: tensor '{}'", where, name);
    const std::size_t dot = name.rfind('.');
    const std::string_view last = std::string_view(name).substr(dot == name.npos ? 0 : dot + 1);
    if (last == "x_rwkvag") {
      constexpr std::string_view kShares = "rwkvag";
      if (stored.shape.empty() || stored.shape[0] != kShares.size()) {
        return refused(fmt::format("the shape is {}", shape_text(stored.shape)), at, "6 rows");
      }
      const std::size_t width = stored.values.size() / kShares.size();
      for (std::size_t j = 0; j < kShares.size(); ++j) {
        const auto row = stored.values.begin() + static_cast<std::ptrdiff_t>(j * width);
        checkpoint.tensors.emplace(fmt::format("{}x_{}", name.substr(0, name.size() - last.size()), kShares[j]),
                                   Tensor({width}, {row, row + static_cast<std::ptrdiff_t>(width)}));
      }
      continue;
    }
    Tensor tensor = stored;
    if (auto good = as_published(version, last, tensor, static_cast<std::size_t>(file.d_model), at); !good) return fail(good.error());
    checkpoint.tensors.emplace(name, std::move(tensor));
  }
  return checkpoint;
}

}  // namespace kizzasi
