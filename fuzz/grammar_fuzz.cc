// SPDX-License-Identifier: Apache-2.0
// Schemas, patterns and grammars from bytes, and tokens from what is left: nothing may crash, and a
// token passes exactly if the mask allowed it.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/compiler.h"
#include "grammar/grammar_mask.h"
#include "grammar/harmony_mask.h"
#include "testing/byte_tokenizer.h"
#include "text/harmony_parse.h"

namespace {

using hearth::IsAllowed;
using hearth::Token;
using hearth::TokenMask;

const hearth::testing::ByteTokenizer& Bytes() {
  static const hearth::testing::ByteTokenizer tokenizer;
  return tokenizer;
}
hearth::GrammarCompiler& Compiler() {
  // Nothing is kept: each run stands for itself.
  static hearth::GrammarCompiler compiler(*hearth::GrammarVocabulary::Make(Bytes()),
                                          {.kept_grammars = 0});
  return compiler;
}

// Draws tokens with the bytes of `noise`, allowed ones and others.
std::vector<Token> Walk(TokenMask& mask, std::string_view noise) {
  std::vector<uint32_t> bits(hearth::MaskWords(Bytes().vocab_size()));
  std::vector<Token> taken;
  for (const char c : noise) {
    if (mask.is_finished() || !mask.Fill(bits).ok()) return taken;
    int allowed = 0;
    for (const uint32_t word : bits) allowed += std::popcount(word);
    if (allowed == 0) std::abort();
    const Token wild = static_cast<unsigned char>(c) + 20;
    if (wild < Bytes().vocab_size() && !IsAllowed(bits, wild) && mask.Accept(wild)) std::abort();
    int skip = static_cast<unsigned char>(c) % allowed;
    Token token = 0;
    while (!IsAllowed(bits, token) || skip-- > 0) ++token;
    if (!mask.Accept(token)) std::abort();
    taken.push_back(token);
  }
  return taken;
}

void WalkHarmony(std::string_view schema, std::string_view noise) {
  static const auto masks = *hearth::HarmonyMasks::Make(Bytes(), Compiler());
  auto json = hearth::ParseJson(schema);
  const std::vector<hearth::ToolDefinition> tools = {
      {.name = "f", .description = "", .parameters = json.ok() ? *json : hearth::Json()},
      {.name = "f.g", .description = "", .parameters = {}}};
  auto mask = masks->New(tools, {.reasoning_tokens = 5});
  if (!mask.ok()) return;
  const std::vector<Token> tokens = Walk(**mask, noise);
  if (!(*mask)->is_finished()) return;
  hearth::HarmonyParser parser(Bytes(), *hearth::HarmonyTokens::Find(Bytes()));
  std::vector<hearth::HarmonyEvent> events;
  parser.Feed(tokens, events);
  parser.Finish(events);
  if (parser.repairs().total() != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = std::min(all.find('\x01'), all.size());
  const std::string_view text = all.substr(0, cut);
  const std::string_view noise = cut < all.size() ? all.substr(cut + 1) : "abcdefgh";
  if (data[0] % 4 == 3) {
    WalkHarmony(text, noise);
    return 0;
  }
  auto grammar = data[0] % 4 == 0   ? Compiler().SchemaText(text)
                 : data[0] % 4 == 1 ? Compiler().Regex(text)
                                    : Compiler().Lark(text);
  if (!grammar.ok()) return 0;
  auto mask = hearth::MakeGrammarMask(*grammar, {Compiler().vocabulary()->end()});
  Walk(*mask, noise);
  return 0;
}
