// SPDX-License-Identifier: Apache-2.0
// A model without weights: logits are noise, the mask alone makes sense of them. Harsher than
// random weights, whose logits at least repeat themselves.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/token_mask.h"
#include "text/tokenizer.h"
namespace hearth::testing {

struct RandomReply {
  std::vector<Token> tokens;
  bool is_finished = false;
  std::string error;  // of Fill, or a broken promise of the mask
};

// Draws each token at temperature 2 from normally distributed logits, among those the mask allows.
// Noise never closes a string by itself, so after `soft` tokens the model wants to end: half of the
// time it takes what stops the reply, closes something, or is short, in this order, where the mask
// lets it; the other half any single byte, so that it also finds the one character that a pattern
// waits for. It cannot do what the mask forbids, so a dead end shows as a reply that never ends.
class RandomModel {
 public:
  RandomModel(const Tokenizer& tokenizer, const std::vector<Token>& stops)
      : bits_(MaskWords(tokenizer.vocab_size())), candidates_(bits_.size()) {
    ranks_.fill(std::vector<uint32_t>(bits_.size()));
    for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
      if (!tokenizer.IsSpecial(token) && tokenizer.Bytes(token).size() == 1) {
        bytes_.push_back(token);
      }
      const bool is_stop = std::find(stops.begin(), stops.end(), token) != stops.end();
      std::vector<uint32_t>& rank = ranks_[is_stop ? 0 : Rank(tokenizer, token)];
      rank[static_cast<size_t>(token) / 32] |= uint32_t{1} << (token % 32);
    }
  }

  RandomReply Run(TokenMask& mask, uint64_t seed, int soft, int hard) {
    RandomReply reply;
    while (!mask.is_finished() && static_cast<int>(reply.tokens.size()) < hard) {
      if (Status filled = mask.Fill(bits_); !filled.ok()) {
        reply.error = filled.message();
        return reply;
      }
      const int step = static_cast<int>(reply.tokens.size());
      const Token token = Draw(seed, step, step >= soft);
      if (token < 0) {
        reply.error = "the mask allows nothing";
        return reply;
      }
      reply.tokens.push_back(token);
      if (!mask.Accept(token)) {
        reply.error = "the mask refuses a token it allowed";
        return reply;
      }
    }
    reply.is_finished = mask.is_finished();
    return reply;
  }

 private:
  static uint64_t Mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  static size_t Rank(const Tokenizer& tokenizer, Token token) {
    const std::string_view bytes = tokenizer.Bytes(token);
    if (tokenizer.IsSpecial(token)) return 1;
    if (bytes.empty()) return 5;
    constexpr std::array<std::string_view, 4> kFirsts = {"}]", "\",:", "ntf0123456789", ""};
    for (size_t rank = 0; rank < kFirsts.size(); ++rank) {
      if (kFirsts[rank].find(bytes[0]) != std::string_view::npos) return rank + 1;
    }
    return std::string_view(" \n\r\t{[").find(bytes[0]) == std::string_view::npos ? 4 : 5;
  }

  // A draw with weights exp(logit / 2): a token at random, kept as often as its weight says.
  Token Draw(uint64_t seed, int step, bool wants_to_end) {
    uint64_t noise = Mix(seed ^ Mix(static_cast<uint64_t>(step)));
    if (wants_to_end && (noise >> 40 & 1) != 0) {
      std::vector<Token> allowed;
      for (const Token token : bytes_) {
        if (IsAllowed(bits_, token)) allowed.push_back(token);
      }
      if (!allowed.empty()) return allowed[(noise >> 41) % allowed.size()];
    }
    size_t count = Choose(wants_to_end ? 0 : ranks_.size());
    for (size_t rank = 0; wants_to_end && count == 0 && rank < ranks_.size(); ++rank) {
      count = Choose(rank);
    }
    if (count == 0) return -1;
    while (true) {
      noise = Mix(noise);
      const Token token = Nth(noise % count);
      // The logit is a sum of four uniforms of variance 1 in all: near enough to normal, and
      // bounded by 2 sqrt(3).
      const uint64_t bits = Mix(seed ^ Mix(static_cast<uint64_t>(step) << 32 | uint32_t(token)));
      double logit = 0;
      for (int i = 0; i < 4; ++i) logit += static_cast<double>(bits >> (8 * i) & 255) / 255.0 - 0.5;
      logit *= std::sqrt(3.0);
      const double chance = std::exp((logit - 2 * std::sqrt(3.0)) / 2);
      if (static_cast<double>(Mix(noise) >> 11) * 0x1p-53 < chance) return token;
    }
  }

  // Sets candidates_ to the allowed tokens of that rank, or to all of them; how many.
  size_t Choose(size_t rank) {
    size_t count = 0;
    for (size_t i = 0; i < bits_.size(); ++i) {
      candidates_[i] = bits_[i] & (rank < ranks_.size() ? ranks_[rank][i] : ~uint32_t{0});
      count += static_cast<size_t>(std::popcount(candidates_[i]));
    }
    return count;
  }
  Token Nth(size_t n) const {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const auto here = static_cast<size_t>(std::popcount(candidates_[i]));
      if (n >= here) {
        n -= here;
        continue;
      }
      uint32_t left = candidates_[i];
      for (; n > 0; --n) left &= left - 1;
      return static_cast<Token>(i * 32 + static_cast<size_t>(std::countr_zero(left)));
    }
    return -1;
  }

  std::array<std::vector<uint32_t>, 6> ranks_;  // what a model that wants to end takes first
  std::vector<Token> bytes_;                    // tokens of one byte
  std::vector<uint32_t> bits_, candidates_;
};

}  // namespace hearth::testing
