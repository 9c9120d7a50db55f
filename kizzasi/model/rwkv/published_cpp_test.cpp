// Models of rwkv.cpp: the published cases put into its form and read back, and its own tiny trained models where KIZZASI_ORACLES has them.
#include "kizzasi/model/rwkv/published_cpp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "kizzasi/model/verification.h"
#include "kizzasi/tensor/files.h"
#include "kizzasi/tensor/rwkv_cpp_bytes_test.h"

namespace kizzasi {
namespace {

namespace fs = std::filesystem;

SafetensorsFile must_read(const fs::path& path) {
  auto file = read_safetensors(path.string());
  EXPECT_TRUE(file) << (file ? "" : file.error().text());
  return file ? std::move(*file) : SafetensorsFile{};
}

Json must_parse(const fs::path& path) {
  const auto text = read_file(path.string());
  EXPECT_TRUE(text) << (text ? "" : text.error().text());
  auto json = parse_python_json(text ? *text : "{}", path.string());
  return json ? std::move(*json) : Json::object();
}

Tensor mapped(Tensor tensor, const std::function<double(double)>& f) {
  for (float& each : tensor.values) each = static_cast<float>(f(static_cast<double>(each)));
  return tensor;
}

Tensor turned(const Tensor& tensor) {
  const std::size_t rows = tensor.shape[tensor.shape.size() - 2], cols = tensor.shape.back();
  Tensor out(tensor.shape);
  std::swap(out.shape[out.shape.size() - 2], out.shape.back());
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const std::size_t block = i / (rows * cols), r = i / cols % rows, c = i % cols;
    out.values[block * rows * cols + c * rows + r] = tensor.values[i];
  }
  return out;
}

// What rwkv.cpp's convert_pytorch_to_ggml makes of a checkpoint of that version.
std::vector<std::byte> converted(const std::string& version, const NamedTensors& published) {
  std::int32_t layers = 0;
  while (published.count("blocks." + std::to_string(layers) + ".ln1.weight") != 0) ++layers;
  const Shape& embedding = published.at("emb.weight").shape;
  RwkvCppBytes file(101, static_cast<std::int32_t>(embedding[0]), static_cast<std::int32_t>(embedding[1]), layers);
  const auto exp_minus_exp = [](double w) { return std::exp(-std::exp(w)); };
  for (const auto& [name, stored] : published) {
    const std::string prefix = name.substr(0, name.rfind('.') + 1), last = name.substr(prefix.size());
    if (version == "rwkv7" && prefix.ends_with("att.") && last.starts_with("x_")) {
      if (last != "x_r") continue;
      Tensor all(Shape{6, 1, embedding[1]}, {});
      for (const char c : std::string("rwkvag")) {
        const std::vector<float>& row = published.at(prefix + "x_" + c).values;
        all.values.insert(all.values.end(), row.begin(), row.end());
      }
      file.add_tensor(prefix + "x_rwkvag", all);
      continue;
    }
    if (version == "rwkv7" && name.starts_with("blocks.0.att.v") && name.size() == std::strlen("blocks.0.att.v0")) continue;
    Tensor tensor = stored;
    Shape plain;
    for (const std::size_t n : tensor.shape) {
      if (n != 1) plain.push_back(n);
    }
    if (last.starts_with("time_")) tensor.shape = plain;
    if (last == "time_decay" && version == "rwkv4") tensor = mapped(std::move(tensor), [](double w) { return -std::exp(w); });
    if (last == "time_decay" && version.starts_with("rwkv5")) tensor = mapped(std::move(tensor), exp_minus_exp);
    if (last == "time_first" && version.starts_with("rwkv5")) tensor = mapped(std::move(tensor), [](double u) { return std::exp(u); });
    const bool head_rows = last == "time_faaaa" || (last == "time_decay" && version.starts_with("rwkv5"));
    if (head_rows || (last == "time_first" && version == "rwkv5_0")) {
      if (version == "rwkv5_0") tensor.shape.push_back(1);
      tensor.shape.push_back(1);
    }
    const bool low_rank = last.starts_with("time_maa_w") || last.starts_with("time_decay_w");
    if (version == "rwkv6" && low_rank && last != "time_maa_w") tensor = turned(tensor);
    if (version == "rwkv7" && last.size() == 2 && std::string("wavg").find(last[0]) != std::string::npos && last[1] != '0')
      tensor = turned(tensor);
    file.add_tensor(name, tensor);
  }
  return file.bytes;
}

TEST(RwkvCppModels, ThePublishedCasesInItsFormAreTheSameModels) {
  for (const char* version : {"rwkv4", "rwkv5_0", "rwkv5_2", "rwkv6", "rwkv7"}) {
    SCOPED_TRACE(version);
    const fs::path stem = fs::path(KIZZASI_SOURCE_DIR "/tests/golden/backbones") / version / "tokens";
    const SafetensorsFile original = must_read(stem.string() + ".safetensors"), io = must_read(stem.string() + ".io.safetensors");
    const auto file = parse_rwkv_cpp(converted(version, original.tensors), "case.bin");
    ASSERT_TRUE(file) << file.error().text();
    auto published = published_of(*file, "case.bin");
    ASSERT_TRUE(published) << published.error().text();
    const Json* epsilon = published->config.find("head_norm_epsilon");
    EXPECT_EQ(epsilon != nullptr, std::string(version).starts_with("rwkv5"));
    if (epsilon != nullptr) {
      EXPECT_EQ(epsilon->number(), 1e-5);
    }
    // The case was made with the epsilon of the `rwkv` package. What is compared: outputs and states, f32 both; gradients of the decays
    // are of w, which the conversion rounds.
    const auto report = verify_checkpoint({{}, published->tensors, {}}, io, must_parse(stem.string() + ".json")["config"],
                                          must_parse(stem.string() + ".json"), "case.bin");
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_TRUE(report->good());
    EXPECT_GE(report->tensors.size(), 10u);
    for (const ComparedTensor& t : report->tensors)
      EXPECT_TRUE(t.good()) << t.name << " (" << t.path << "): " << t.max_abs << " > " << t.tolerance << " " << t.problem;
  }
}

TEST(RwkvCppModels, DecaysRoundedToTheirBoundsComeBackAsThem) {
  RwkvCppFile file;
  file.vocabulary = 4, file.d_model = 4, file.layers = 1;
  file.tensors = {{"emb.weight", Tensor({4, 4})},
                  {"ln_out.weight", Tensor({4})},
                  {"blocks.0.ln1.weight", Tensor({4})},
                  {"blocks.0.att.ln_x.weight", Tensor({4})},
                  {"blocks.0.att.time_faaaa", Tensor({2, 2, 1})},
                  {"blocks.0.att.time_decay", Tensor({2, 2, 1}, {0.0f, 1.0f, 0.25f, std::nextafter(1.0f, 0.0f)})}};
  auto published = published_of(file, "m.bin");
  ASSERT_TRUE(published) << published.error().text();
  const Tensor& w = published->tensors.at("blocks.0.att.time_decay");
  EXPECT_EQ(w.shape, (Shape{2, 2}));
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(std::isfinite(w.values[i]));
    EXPECT_EQ(static_cast<float>(std::exp(-std::exp(static_cast<double>(w.values[i])))),
              file.tensors.at("blocks.0.att.time_decay").values[i]);
  }
  // One head: the converter drops its axis.
  for (const char* name : {"blocks.0.att.time_faaaa", "blocks.0.att.time_decay"}) file.tensors.at(name).shape = {4, 1};
  published = published_of(file, "m.bin");
  ASSERT_TRUE(published) << published.error().text();
  EXPECT_EQ(published->tensors.at("blocks.0.att.time_decay").shape, (Shape{1, 4}));

  file.tensors.at("blocks.0.att.time_decay").values[2] = 1.5f;
  EXPECT_NE(published_of(file, "m.bin").error().text().find("'blocks.0.att.time_decay': value 2 is 1.5 (expected exp(-exp(w)))"),
            std::string::npos);
  file.tensors.at("blocks.0.att.time_decay") = Tensor({3, 1});
  EXPECT_NE(published_of(file, "m.bin").error().text().find("whole heads of 4 channels"), std::string::npos);
  file.layers = 3;
  EXPECT_NE(published_of(file, "m.bin").error().text().find("3 blocks and the file has 1"), std::string::npos);
  file.vocabulary = 5;
  EXPECT_NE(published_of(file, "m.bin").error().text().find("the header tells 5 and tensor 'emb.weight' has 4"), std::string::npos);
}

TEST(RwkvCppModels, AFileWithoutItsLastTensorsIsNoModel) {
  const fs::path stem = fs::path(KIZZASI_SOURCE_DIR "/tests/golden/backbones/rwkv7/tokens");
  const SafetensorsFile original = must_read(stem.string() + ".safetensors"), io = must_read(stem.string() + ".io.safetensors");
  for (const auto& [name, tensor] : original.tensors) {
    NamedTensors fewer = original.tensors;
    if (name.starts_with("blocks.0.att.v") || name.find(".att.x_") != name.npos) continue;  // not in the file, or a row of another
    fewer.erase(name);
    if (fewer.count("emb.weight") == 0) continue;  // the writer above needs it
    const auto file = parse_rwkv_cpp(converted("rwkv7", fewer), "case.bin");
    if (!file) continue;  // without any block
    const auto published = published_of(*file, "case.bin");
    if (!published) continue;
    const auto report = verify_checkpoint({{}, published->tensors, {}}, io, Json::object(), Json::object(), "case.bin");
    EXPECT_FALSE(report && report->good()) << name;
  }
}

// ---- the tiny trained models ---------------------------------------------------------------------------------------------------------

const char* oracles() { return std::getenv("KIZZASI_ORACLES"); }

struct TinyModel {
  const char *name, *upstream;  // upstream: logits that rwkv.cpp itself expects after three tokens
  double upstream_share;        // of the largest logit, beside it; 0: it quantises activations, too, and says something else
};
constexpr TinyModel kTiny[] = {{"tiny-rwkv-4v0-660K-Q5_0", "4v0-660K", 0},
                               {"tiny-rwkv-5v1-730K-Q5_1", "5v1-730K", 0},
                               {"tiny-rwkv-5v2-730K-FP32", "5v2-730K", 1e-5},
                               {"tiny-rwkv-7v0-834K-FP16", "7v0-834K", 1e-5}};

TEST(RwkvCppModels, TinyTrainedModelsGiveTheirLogits) {
  if (oracles() == nullptr) GTEST_SKIP() << "KIZZASI_ORACLES names no folder";
  const fs::path folder = fs::path(oracles()) / "backbones/rwkv_cpp";
  for (const TinyModel& each : kTiny) {
    SCOPED_TRACE(each.name);
    const auto file = read_rwkv_cpp((folder / (std::string(each.name) + ".bin")).string());
    ASSERT_TRUE(file) << file.error().text();
    const auto published = published_of(*file, each.name);
    ASSERT_TRUE(published) << published.error().text();
    const SafetensorsFile checkpoint{{}, published->tensors, {}};
    SafetensorsFile io = must_read(folder / (std::string(each.name) + ".io.safetensors"));
    const auto expect_equal = [&](const SafetensorsFile& reference, const Json& config, double share) {
      const auto report = verify_checkpoint(checkpoint, reference, config, Json::object(), each.name);
      ASSERT_TRUE(report) << report.error().text();
      std::size_t logits = 0;
      for (const ComparedTensor& t : report->tensors) {
        EXPECT_TRUE(t.problem.empty() && t.max_rel <= share) << t.name << " (" << t.path << "): " << t.max_rel << " " << t.problem;
        logits += t.name == "logits" ? 1 : 0;
      }
      EXPECT_EQ(logits, 4u);  // run, step, forward in both precisions
    };
    expect_equal(io, published->config, 1e-5);
    if (const auto other = io.tensors.find("logits_eps_64e-5"); other != io.tensors.end()) {
      SafetensorsFile trained = io;
      trained.tensors.at("logits") = other->second;
      std::erase_if(trained.tensors, [](const auto& named) { return named.first.starts_with("state."); });
      expect_equal(trained, Json::object(), 1e-5);
    }
    if (each.upstream_share == 0) continue;
    const auto raw = read_file((folder / ("expected-logits-" + std::string(each.upstream) + ".bin")).string());
    ASSERT_TRUE(raw && raw->size() == 256 * sizeof(float));
    constexpr std::size_t kPrompt = 3;
    Tensor& logits = io.tensors.at("logits");
    SafetensorsFile prompt;
    prompt.tensors.emplace("logits", Tensor({kPrompt, 256}, {logits.values.begin(), logits.values.begin() + kPrompt * 256}));
    std::memcpy(prompt.tensors.at("logits").values.data() + (kPrompt - 1) * 256, raw->data(), raw->size());
    const std::vector<double>& ids = io.wide.at("tokens");
    prompt.tensors.emplace("tokens", Tensor({kPrompt}));
    prompt.wide.emplace("tokens", std::vector<double>(ids.begin(), ids.begin() + kPrompt));
    expect_equal(prompt, published->config, each.upstream_share);
  }
}

}  // namespace
}  // namespace kizzasi
