// SPDX-License-Identifier: Apache-2.0
#include "text/vocab_spelling.h"

#include <array>

#include "base/utf8.h"

namespace hearth {
namespace {

// Printable Latin-1 bytes stand for themselves; the other 68 are numbered from U+0100 on.
constexpr bool IsPrintable(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}
constexpr int kNumSpelled = 256 + 68;
constexpr std::array<int16_t, kNumSpelled> MakeByteOfCodePoint() {
  std::array<int16_t, kNumSpelled> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[static_cast<size_t>(IsPrintable(byte) ? byte : next++)] = static_cast<int16_t>(byte);
  }
  return bytes;
}
constexpr std::array<int16_t, kNumSpelled> kByteOfCodePoint = MakeByteOfCodePoint();

using TokenOfSpelling = std::unordered_map<std::string_view, Token>;

Result<Token> FindToken(const TokenOfSpelling& tokens, std::string_view spelling, size_t merge) {
  const auto found = tokens.find(spelling);
  if (found != tokens.end()) return found->second;
  return Error(Code::kInvalid, "merge %zu needs the token %s, which is not in the vocabulary",
               merge, Quoted(spelling).c_str());
}

}  // namespace

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  const char* const end = spelling.data() + spelling.size();
  for (const char* p = spelling.data(); p != end;) {
    const Utf8Char c = DecodeUtf8(p, end);
    if (c.num_bytes == 0 || c.code_point >= kNumSpelled) return std::nullopt;
    const int16_t byte = kByteOfCodePoint[c.code_point];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    p += c.num_bytes;
  }
  return bytes;
}

Status ResolveMerges(std::span<const SpelledMerge> merges, Vocab& vocab) {
  HEARTH_CHECK(vocab.tokens.size() == vocab.types.size());
  TokenOfSpelling tokens;
  tokens.reserve(vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.types[i] == TokenType::kNormal) tokens.emplace(vocab.tokens[i], Token(i));
  }
  vocab.merges.reserve(merges.size());
  std::string spelling;
  for (size_t i = 0; i < merges.size(); ++i) {
    Merge merge;
    HEARTH_ASSIGN(merge.left, FindToken(tokens, merges[i].first, i));
    HEARTH_ASSIGN(merge.right, FindToken(tokens, merges[i].second, i));
    spelling.assign(merges[i].first).append(merges[i].second);
    HEARTH_ASSIGN(merge.merged, FindToken(tokens, spelling, i));
    vocab.merges.push_back(merge);
  }
  return Status();
}

Status ResolveSpellings(std::span<const SpelledMerge> merges, Vocab& vocab) {
  HEARTH_TRY(ResolveMerges(merges, vocab));
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.types[i] != TokenType::kNormal) continue;
    std::optional<std::string> bytes = BytesOfSpelling(vocab.tokens[i]);
    if (bytes && !bytes->empty()) {
      vocab.tokens[i] = *std::move(bytes);
    } else {
      vocab.types[i] = TokenType::kUnused;
    }
  }
  return Status();
}

}  // namespace hearth
