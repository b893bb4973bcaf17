// SPDX-License-Identifier: Apache-2.0
// Text <-> tokens. Pure; safe to share between threads once loaded.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/vocab.h"
namespace hearth {

// How a model wants its whole input to begin and end.
struct TokenizerTraits {
  std::optional<Token> bos, eos, unknown;
  bool add_bos = false, add_eos = false;
  bool space_in_front =
      false;  // Encode put a space before the text; a decoder of all of it drops it
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Appends the tokens of `text`. Never yields a special token, whatever the user typed: special
  // tokens come from Special(). Total: bytes that are not UTF-8 have tokens too.
  virtual void Encode(std::string_view text, std::vector<Token>& out) const = 0;
  // The same for text that follows other text or a special token: some vocabularies put a space in
  // front of text, and want it only once.
  virtual void EncodeMore(std::string_view text, std::vector<Token>& out) const {
    Encode(text, out);
  }
  // By its full spelling, "<|start|>".
  virtual std::optional<Token> Special(std::string_view name) const = 0;
  // All names, in order of their tokens; a token may have two.
  virtual const std::vector<SpecialName>& specials() const = 0;
  virtual bool IsSpecial(Token token) const = 0;
  // May end in half a code point: see Utf8Stream. Of a special token, its name.
  virtual std::string_view Bytes(Token token) const = 0;
  virtual int vocab_size() const = 0;
  virtual const TokenizerTraits& traits() const = 0;
};

// Checks the vocabulary and builds its tables. Errors name the token or merge at fault.
Result<std::unique_ptr<Tokenizer>> MakeTokenizer(Vocab vocab);
// The text of a .tiktoken rank file (ParseTiktoken): gpt-oss's tokenizer.
Result<std::unique_ptr<Tokenizer>> LoadTiktoken(std::string_view file);
// The text of a Hugging Face tokenizer.json (ParseTokenizerJson).
Result<std::unique_ptr<Tokenizer>> LoadTokenizerJson(std::string_view file);

}  // namespace hearth
