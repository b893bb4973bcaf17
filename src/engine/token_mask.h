// SPDX-License-Identifier: Apache-2.0
// What a sequence may say next: the engine's interface to grammars and conversation formats. The
// engine knows nothing else about them; src/grammar implements it, app/ brings the two together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "base/result.h"
namespace hearth {

// Words of 32 bits that a mask over `vocab_size` tokens takes. Token t is bit t % 32 of word t
// / 32.
constexpr size_t MaskWords(int vocab_size) { return (static_cast<size_t>(vocab_size) + 31) / 32; }
inline bool IsAllowed(std::span<const uint32_t> bits, Token token) {
  return (bits[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

// The state of one sequence. Thread: one at a time, any: Fill is meant to run beside the backend's
// step, after the last Accept and before the next. Total: no call stops the program, whatever the
// tokens.
class TokenMask {
 public:
  virtual ~TokenMask() = default;
  // Writes all of `bits` (MaskWords of the vocabulary): 1 for every token that may come next. At
  // least one bit is set unless is_finished(). An error ends this sequence and no other; its text
  // is for the client.
  virtual Status Fill(std::span<uint32_t> bits) = 0;
  // The sequence goes on with `token`, a stop token included. False: it may not; state unchanged.
  virtual bool Accept(Token token) = 0;
  // Nothing may follow: the last token accepted was a stop token. Tokens that stop a sequence
  // without a mask need not stop one that has one and is not finished.
  virtual bool is_finished() const = 0;
  // A copy that goes its own way, for looking ahead: drafts are walked on a copy.
  virtual std::unique_ptr<TokenMask> Clone() const = 0;
};

}  // namespace hearth
