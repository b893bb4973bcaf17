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
namespace hearth {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Appends the tokens of `text`. Never yields a special token, whatever the user typed: special
  // tokens come from Special(). Total: bytes that are not UTF-8 have tokens too.
  virtual void Encode(std::string_view text, std::vector<Token>& out) const = 0;
  virtual std::optional<Token> Special(std::string_view name) const = 0;
  virtual bool IsSpecial(Token token) const = 0;
  // May end in half a code point: see Utf8Stream. Of a special token, its name.
  virtual std::string_view Bytes(Token token) const = 0;
  virtual int vocab_size() const = 0;
};

}  // namespace hearth
