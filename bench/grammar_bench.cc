// SPDX-License-Identifier: Apache-2.0
// grammar_bench VOCABULARY: what masks cost. Noise writes replies under typical schemas; compiling,
// every Fill and every Accept are timed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "app/open_tokenizer.h"
#include "base/json.h"
#include "grammar/compiler.h"
#include "grammar/grammar_mask.h"
#include "grammar/harmony_mask.h"
#include "testing/random_reply.h"

namespace hearth {
namespace {

constexpr std::pair<const char*, const char*> kSchemas[] = {
    {"two fields", R"({"type":"object","properties":{"city":{"type":"string"},
      "unit":{"enum":["celsius","fahrenheit"]}},"required":["city"]})"},
    {"order", R"({"type":"object","properties":{"id":{"type":"integer","minimum":1},
      "customer":{"type":"object","properties":{"name":{"type":"string","maxLength":80},
      "email":{"type":"string","format":"email"},"since":{"type":"string","format":"date"}},
      "required":["name","email"]},"items":{"type":"array","minItems":1,"items":{"type":"object",
      "properties":{"sku":{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"},
      "count":{"type":"integer","minimum":1,"maximum":99},"price":{"type":"number"}},
      "required":["sku","count","price"]}},"note":{"type":["string","null"]}},
      "required":["id","customer","items"]})"},
    {"tree", R"({"$defs":{"n":{"type":"object","properties":{"label":{"type":"string"},
      "children":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["label"]}},
      "$ref":"#/$defs/n"})"},
    {"any object", R"({"type":"object"})"}};

double Now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Passes everything on, and notes how long it took, in microseconds.
class TimedMask : public TokenMask {
 public:
  TimedMask(TokenMask& mask, std::vector<double>& fills, std::vector<double>& accepts)
      : mask_(mask), fills_(fills), accepts_(accepts) {}
  Status Fill(std::span<uint32_t> bits) override {
    const double before = Now();
    Status filled = mask_.Fill(bits);
    fills_.push_back(Now() - before);
    return filled;
  }
  bool Accept(Token token) override {
    const double before = Now();
    const bool accepted = mask_.Accept(token);
    accepts_.push_back(Now() - before);
    return accepted;
  }
  bool is_finished() const override { return mask_.is_finished(); }
  std::unique_ptr<TokenMask> Clone() const override { return mask_.Clone(); }

 private:
  TokenMask& mask_;
  std::vector<double>&fills_, &accepts_;
};

double At(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

int Main(int argc, char** argv) {
  auto tokenizer = argc == 2 ? OpenTokenizer(argv[1]) : Error(Code::kInvalid, "VOCABULARY?");
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "grammar_bench: %s\n", tokenizer.status().message().c_str());
    return 1;
  }
  const double start = Now();
  auto vocabulary = GrammarVocabulary::Make(**tokenizer);
  if (!vocabulary.ok()) return 1;
  std::printf("vocabulary of %d tokens: %.0f ms\n", (*vocabulary)->size(), (Now() - start) / 1e3);
  GrammarCompiler compiler(*vocabulary);
  const Token end = (*vocabulary)->end();
  testing::RandomModel model(**tokenizer, {end});
  for (const auto& [name, text] : kSchemas) {
    const double before = Now();
    auto grammar = compiler.SchemaText(text);
    const double compiled = Now() - before;
    if (!grammar.ok()) return 1;
    std::vector<double> fills, accepts, copies;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const double made = Now();
      auto mask = MakeGrammarMask(*grammar, {end});
      copies.push_back(Now() - made);
      TimedMask timed(*mask, fills, accepts);
      model.Run(timed, seed, 60, 600);
    }
    std::printf(
        "%-11s compile %5.2f ms, new mask %5.1f us; Fill median %6.1f us, p99 %7.1f us, "
        "max %7.1f us; Accept median %4.1f us (%zu tokens)\n",
        name, compiled / 1e3, At(copies, 0.5), At(fills, 0.5), At(fills, 0.99), At(fills, 1),
        At(accepts, 0.5), fills.size());
  }
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc, argv); }
