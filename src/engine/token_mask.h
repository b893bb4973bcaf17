// SPDX-License-Identifier: Apache-2.0
// What a sequence may say next. Whoever knows grammars implements it; the engine only asks.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
namespace hearth {

// Belongs to one sequence. Thread: the engine's. Total: no call fails or waits.
class TokenMask {
 public:
  virtual ~TokenMask() = default;
  // Sets bit t of `bits`, 32 tokens a word, for every token that may come next; clears the others.
  virtual void Fill(std::span<uint32_t> bits) = 0;
  // `token` was chosen. False when it may not stand here: the sequence ends with an error.
  virtual bool Accept(Token token) = 0;
};

}  // namespace hearth
