#include "kizzasi/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/base/rng.h"
#include "kizzasi/tokenizer/g711.h"
#include "kizzasi/tokenizer/linear_quantizer.h"
#include "kizzasi/tokenizer/mu_law.h"
#include "tests/golden/cases.h"

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Json> cases(std::string_view kind) { return published_cases("tokenizers", kind); }

TEST(MuLaw, EqualsThePublishedCases) {
  for (const Json& one : cases("mulaw")) {
    const std::int64_t mu = one.find("mu")->integer();
    const MuLaw ours = MuLaw::with_mu(mu), torchaudio = MuLaw::with_mu(mu, MuLawRule::kTorchaudio);
    for (std::size_t i = 0; i < one.find("x")->items().size(); ++i) {
      const auto at = [&](const char* key) { return one.find(key)->items()[i]; };
      const double x = number_of(at("x"));
      EXPECT_NEAR(ours.compand(x), number_of(at("companded")), 1e-14);
      if (at("near_tie").boolean()) continue;
      EXPECT_EQ(torchaudio.quantize(x), static_cast<Token>(at("code").integer())) << x;
      EXPECT_EQ(ours.quantize(x), static_cast<Token>(at("checklist_code").integer())) << x;
      const double decoded = number_of(at("decoded"));
      EXPECT_NEAR(torchaudio.dequantize(static_cast<Token>(at("code").integer())), decoded, 1e-12 * std::abs(decoded));
    }
  }
}

TEST(MuLaw, EveryLevelComesBackToItself) {
  for (int bits = 1; bits <= 16; ++bits) {
    for (const MuLawRule rule : {MuLawRule::kHalf, MuLawRule::kTorchaudio}) {
      const MuLaw codec(bits, rule);
      double before = -2;
      for (Token token = 0; token < codec.levels(); ++token) {
        const double x = codec.dequantize(token);
        EXPECT_EQ(codec.quantize(x), token) << bits;
        EXPECT_GT(x, before);
        EXPECT_LE(std::abs(x), 1 + 1e-12);
        before = x;
      }
    }
  }
  EXPECT_EQ(MuLaw(8).quantize(0), 128u);
  EXPECT_EQ(MuLaw(8).dequantize(128), 0);
  EXPECT_EQ(MuLaw(8).quantize(kInfinity), 255u);
  EXPECT_EQ(MuLaw(8).quantize(-kInfinity), 0u);
  EXPECT_FALSE(MuLaw(8).quantize(std::nan("")));
}

// CRC-32 of IEEE 802.3, bit by bit.
std::uint32_t crc(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t sum = 0xFFFFFFFF;
  for (const std::uint8_t byte : bytes) {
    sum ^= byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~sum;
}

TEST(G711, EveryCodeAndSampleIsThatOfTheStandard) {
  const Json sums = cases("g711").front();
  for (const G711Law law : {G711Law::kMu, G711Law::kA}) {
    const std::string name = law == G711Law::kMu ? "mulaw" : "alaw";
    std::vector<std::uint8_t> codes, samples;
    for (int x = -32768; x <= 32767; ++x) codes.push_back(g711_encode(law, static_cast<std::int16_t>(x)));
    for (int code = 0; code < 256; ++code) {
      const auto sample = static_cast<std::uint16_t>(g711_decode(law, static_cast<std::uint8_t>(code)));
      samples.push_back(static_cast<std::uint8_t>(sample & 255));
      samples.push_back(static_cast<std::uint8_t>(sample >> 8));
    }
    EXPECT_EQ(fmt::format("{:08x}", crc(codes)), sums.find(name + "_encode_itu")->string());
    EXPECT_EQ(fmt::format("{:08x}", crc(samples)), sums.find(name + "_decode")->string());
    const G711 codec(law);
    for (Token token = 0; token < 256; ++token) {
      const double x = codec.dequantize(token);
      // Mu-law has two zeros: -0 comes back as 0.
      EXPECT_EQ(codec.dequantize(*codec.quantize(x)), x);
    }
    EXPECT_FALSE(codec.quantize(std::nan("")));
    EXPECT_EQ(codec.quantize(kInfinity), codec.quantize(1.0));
    EXPECT_EQ(codec.quantize(-kInfinity), codec.quantize(-1.0));
  }
}

TEST(LinearQuantizer, EqualsThePublishedCases) {
  for (const Json& one : cases("linear")) {
    const double min = one.find("min")->number(), max = one.find("max")->number();
    const int bits = static_cast<int>(one.find("bits")->integer());
    const LinearQuantizer tread(min, max, bits), rise(min, max, bits, LinearLevels::kRise);
    for (std::size_t i = 0; i < one.find("x")->items().size(); ++i) {
      const auto at = [&](const char* key) { return one.find(key)->items()[i]; };
      const double x = number_of(at("x"));
      if (at("tread_code").is_null()) {
        EXPECT_FALSE(tread.quantize(x) || rise.quantize(x));
        continue;
      }
      const auto near = [&](const Quantizer& codec, const char* code, const char* value) {
        const auto token = codec.quantize(x);
        ASSERT_TRUE(token);
        if (!at("near_tie").boolean()) {
          EXPECT_EQ(*token, static_cast<Token>(at(code).integer())) << x;
        }
        const double expected = number_of(at(value));
        EXPECT_NEAR(codec.dequantize(static_cast<Token>(at(code).integer())), expected, 1e-12 * std::max({std::abs(min), std::abs(max)}));
      };
      near(tread, "tread_code", "tread_value");
      near(rise, "rise_code", "rise_value");
    }
  }
}

TEST(Tokenizers, AreMadeByNameAndComeBackWithinHalfAStep) {
  Rng rng(4);
  for (const TokenizerKind& kind : tokenizers()) {
    TokenizerConfig config;
    config.tokenizer = std::string(kind.name);
    const auto codec = make_tokenizer(config);
    ASSERT_TRUE(codec) << codec.error().text();
    EXPECT_EQ((*codec)->name(), kind.name);
    EXPECT_EQ((*codec)->embed_dim(), 1u);
    EXPECT_EQ((*codec)->vocab_size(), 256u);
    std::vector<double> signal;
    for (int i = 0; i < 2000; ++i) signal.push_back(rng.uniform(-1, 1));
    const auto tokens = (*codec)->encode(signal);
    ASSERT_TRUE(tokens);
    const auto back = (*codec)->decode(*tokens);
    ASSERT_TRUE(back);
    for (std::size_t i = 0; i < signal.size(); ++i) EXPECT_NEAR((*back)[i], signal[i], 0.045) << kind.name;
    EXPECT_EQ(*(*codec)->encode(*back), *tokens) << kind.name;
  }
}

TEST(Tokenizers, SayWhatIsWrong) {
  const auto made = [](const TokenizerConfig& config) {
    const auto codec = make_tokenizer(config);
    return codec ? "made" : codec.error().text();
  };
  EXPECT_EQ(made({.tokenizer = "linear", .min = 1, .max = 1}), "tokenizer: levels from 1 to 1 (expected min below max, both finite).");
  EXPECT_EQ(made({.tokenizer = "g711_a_law", .bits = 7}), "tokenizer: G.711 with 7 bits (expected 8 bits).");
  EXPECT_NE(made({.tokenizer = "mulaw"}).find("Did you mean 'mu_law'?"), std::string::npos) << made({.tokenizer = "mulaw"});
  EXPECT_NE(made({.bits = 17}).find("1 to 16"), std::string::npos);
  const MuLaw codec(8);
  EXPECT_EQ(codec.encode(std::vector<double>{0.5, std::nan("")}).error().where, "value 1");
  EXPECT_EQ(codec.decode(std::vector<Token>{3, 256}).error().text(), "token 1: mu_law has no token 256 (expected 0 to 255).");
}

}  // namespace
}  // namespace kizzasi
