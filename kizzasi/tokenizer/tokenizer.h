// Signals as tokens: what a language of finitely many words says about values, and what it leaves out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/fields.h"

namespace kizzasi {

using Token = std::uint32_t;

// Immutable. Thread: any.
class SignalTokenizer {
 public:
  virtual ~SignalTokenizer() = default;
  virtual std::string_view name() const noexcept = 0;
  // Values that one token stands for.
  virtual std::size_t embed_dim() const noexcept = 0;
  // Tokens are 0 to vocab_size - 1; 0: there is no finite vocabulary.
  virtual std::size_t vocab_size() const noexcept = 0;
  // `signal`: whole tokens of embed_dim values. Errors: a value that is no number, with its place; a length that does not divide.
  virtual Result<std::vector<Token>> encode(std::span<const double> signal) const = 0;
  // Errors: a token beyond the vocabulary, with its place.
  virtual Result<std::vector<double>> decode(std::span<const Token> tokens) const = 0;
};

// A tokenizer of single values. Real-time: quantize and dequantize.
class Quantizer : public SignalTokenizer {
 public:
  std::size_t embed_dim() const noexcept final { return 1; }
  std::size_t vocab_size() const noexcept final { return levels(); }
  Result<std::vector<Token>> encode(std::span<const double> signal) const final;
  Result<std::vector<double>> decode(std::span<const Token> tokens) const final;

  virtual std::size_t levels() const noexcept = 0;
  // What lies outside the range becomes the nearest end. Nothing for NaN.
  virtual std::optional<Token> quantize(double x) const noexcept = 0;
  // `token` below levels().
  virtual double dequantize(Token token) const noexcept = 0;
};

struct TokenizerConfig {
  std::string tokenizer = "mu_law";
  std::int64_t bits = 8;
  std::int64_t mu = 0;
  double min = -1, max = 1;

  void fields(FieldVisitor& visit);
  // Fields that do not fit together.
  Result<void> check(std::string_view where) const;
};

// Every tokenizer by its name.
struct TokenizerKind {
  std::string_view name, help;
  std::unique_ptr<SignalTokenizer> (*make)(const TokenizerConfig&);
};
std::span<const TokenizerKind> tokenizers();

// Errors: those of the fields, with `where`.
Result<std::unique_ptr<SignalTokenizer>> make_tokenizer(const TokenizerConfig& config, std::string_view where = "tokenizer");

}  // namespace kizzasi
