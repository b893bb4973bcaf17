// SPDX-License-Identifier: Apache-2.0
// The rank file of tiktoken, and the special tokens that gpt-oss puts after it.
#include <algorithm>
#include <array>
#include <charconv>

#include "text/vocab.h"

namespace hearth {
namespace {

// o200k has 199,998 ranks of at most 128 bytes; room for larger relatives, not for hostile files.
constexpr size_t kMaxRanks = size_t{1} << 20;
constexpr size_t kMaxTokenBytes = 512;

constexpr std::array<int8_t, 256> MakeBase64Values() {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kBase64Value = MakeBase64Values();

// Strict: full groups of four, padding only at the end, unused bits zero.
std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const int8_t value = kBase64Value[static_cast<uint8_t>(c)];
    if (value < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      bytes += static_cast<char>(bits >> num_bits);
      bits &= (1u << num_bits) - 1;
    }
  }
  if (bits != 0) return std::nullopt;
  return bytes;
}

struct RankLine {
  std::string bytes;
  size_t rank = 0;
};
Result<RankLine> ParseLine(std::string_view line, size_t number, size_t max_ranks) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    return Error(Code::kCorrupt, "line %zu: expected \"base64 rank\", found %s", number,
                 Quoted(line).c_str());
  }
  const std::string_view digits = line.substr(space + 1);
  RankLine parsed;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parsed.rank);
  if (error != std::errc() || end != digits.data() + digits.size() || parsed.rank >= max_ranks) {
    return Error(Code::kCorrupt, "line %zu: %s is not a rank below %zu", number,
                 Quoted(digits).c_str(), max_ranks);
  }
  std::optional<std::string> bytes = DecodeBase64(line.substr(0, space));
  if (!bytes || bytes->empty() || bytes->size() > kMaxTokenBytes) {
    return Error(Code::kCorrupt, "line %zu: %s is not base64 of 1 to %zu bytes", number,
                 Quoted(line.substr(0, space)).c_str(), kMaxTokenBytes);
  }
  parsed.bytes = *std::move(bytes);
  return parsed;
}

// Offsets count from the first id after the ranks: <|startoftext|> is 199998 in the real file.
constexpr size_t kNumHarmonySpecials = 1090;  // up to 201087, the model's last row
struct HarmonySpecial {
  size_t offset;
  const char* name;
};
constexpr HarmonySpecial kHarmonySpecials[] = {
    {0, "<|startoftext|>"}, {1, "<|endoftext|>"},   {4, "<|return|>"}, {5, "<|constrain|>"},
    {7, "<|channel|>"},     {8, "<|start|>"},       {9, "<|end|>"},    {10, "<|message|>"},
    {14, "<|call|>"},       {20, "<|endofprompt|>"}};

void AppendHarmonySpecials(Vocab& vocab) {
  const size_t first = vocab.tokens.size();
  for (size_t i = 0; i < kNumHarmonySpecials; ++i) {
    vocab.tokens.push_back(Printf("<|reserved_%zu|>", first + i));
  }
  for (const HarmonySpecial& special : kHarmonySpecials) {
    std::string& name = vocab.tokens[first + special.offset];
    // <|endofprompt|> comes from the older o200k_base; gpt-oss calls the same id reserved as well.
    if (special.offset > 14) {
      vocab.aliases.push_back({name, static_cast<Token>(first + special.offset)});
    }
    name = special.name;
  }
  vocab.types.resize(vocab.tokens.size(), TokenType::kControl);
  vocab.bos = static_cast<Token>(first);
  vocab.eos = static_cast<Token>(first + 4);
}

}  // namespace

Result<Vocab> ParseTiktoken(std::string_view file) {
  Vocab vocab;
  vocab.kind = VocabKind::kRankedBpe;
  vocab.split = SplitRule::kO200k;
  vocab.whole_pieces_first = true;
  size_t num_lines = 0;
  // "AA== 0" is the shortest line, so a file without gaps has no rank beyond this: memory stays in
  // proportion to the file.
  const size_t max_ranks = std::min(kMaxRanks, file.size() / 6 + 1);
  for (size_t begin = 0, end = 0; begin < file.size(); begin = end + 1) {
    end = std::min(file.find('\n', begin), file.size());
    if (end == begin && end + 1 >= file.size()) break;  // one empty line at the end is fine
    HEARTH_ASSIGN(RankLine line,
                  ParseLine(file.substr(begin, end - begin), ++num_lines, max_ranks));
    if (line.rank >= vocab.tokens.size()) vocab.tokens.resize(line.rank + 1);
    std::string& slot = vocab.tokens[line.rank];
    if (!slot.empty()) {
      return Error(Code::kCorrupt, "line %zu: rank %zu appears twice", num_lines, line.rank);
    }
    slot = std::move(line.bytes);
  }
  // No rank twice, so as many lines as ranks means that none is missing.
  if (num_lines != vocab.tokens.size() || num_lines == 0) {
    return Error(Code::kCorrupt, "%zu ranks on %zu lines: some ranks are missing",
                 vocab.tokens.size(), num_lines);
  }
  vocab.types.resize(vocab.tokens.size(), TokenType::kNormal);
  AppendHarmonySpecials(vocab);
  return vocab;
}

}  // namespace hearth
