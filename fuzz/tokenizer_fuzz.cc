// SPDX-License-Identifier: Apache-2.0
// Any bytes as text for every kind of tokenizer: the pieces are the text, the tokens give it back,
// none is special. The same bytes as vocabulary files must be read or refused, nothing else.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "testing/small_vocab.h"
#include "text/nfc.h"
#include "text/split.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

namespace hearth {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 18;

void Require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "tokenizer_fuzz: broken: %s\n", promise);
  std::abort();
}

struct Candidate {
  std::unique_ptr<Tokenizer> tokenizer;
  bool adds_space, normalizes;
};
const std::vector<Candidate>& Candidates() {
  static const std::vector<Candidate> candidates = [] {
    std::vector<Candidate> made;
    for (Vocab& vocab : testing::SmallVocabs()) {
      const bool adds_space = vocab.space_prefix == SpacePrefix::kAlways;
      const bool normalizes = vocab.normalize_nfc;
      auto tokenizer = MakeTokenizer(std::move(vocab));
      Require(tokenizer.ok(), "the small vocabularies load");
      made.push_back({*std::move(tokenizer), adds_space, normalizes});
    }
    return made;
  }();
  return candidates;
}

void CheckPieces(std::string_view text) {
  for (const SplitRule rule : {SplitRule::kO200k, SplitRule::kLlama3, SplitRule::kQwen2,
                               SplitRule::kGpt2, SplitRule::kSmollm}) {
    const PieceScanner scan = ScannerFor(rule);
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) {
      const char* const next = scan(p, end);
      Require(next > p && next <= end, "every piece has bytes, and they are the text's");
      p = next;
    }
  }
}

// What the tokens of `text` must spell.
std::string Expected(const Candidate& candidate, std::string_view text) {
  std::string storage;
  if (candidate.normalizes) return std::string(NormalizeNfc(text, storage));
  if (!candidate.adds_space) return std::string(text);
  // SentencePiece reads its own spelling of the space as a space.
  std::string spaced = text.empty() ? "" : " ";
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_space = text.substr(i).starts_with("\xe2\x96\x81");
    spaced += is_space ? ' ' : text[i];
    if (is_space) i += 2;
  }
  return spaced;
}

void CheckTokens(const Candidate& candidate, std::string_view text) {
  std::vector<Token> tokens;
  candidate.tokenizer->Encode(text, tokens);
  std::string spelled;
  for (const Token token : tokens) {
    Require(token >= 0 && token < candidate.tokenizer->vocab_size(), "tokens are in range");
    Require(!candidate.tokenizer->IsSpecial(token), "text never becomes a special token");
    spelled += candidate.tokenizer->Bytes(token);
  }
  Require(spelled == Expected(candidate, text), "the tokens give the text back");
}

void CheckUtf8(std::string_view text, size_t cut) {
  std::string whole, parts;
  Utf8Stream stream;
  stream.Append(text, whole);
  stream.Finish(whole);
  for (size_t at = 0; at < text.size(); at += cut) {
    stream.Append(text.substr(at, cut), parts);
    Require(stream.held_bytes() <= 3, "at most three bytes are held back");
  }
  stream.Finish(parts);
  Require(whole == parts, "cuts do not matter");
  std::string once, twice;
  const std::string_view normal = NormalizeNfc(text, once);
  Require(NormalizeNfc(normal, twice) == normal, "normal text stays as it is");
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  if (size < 1) return 0;
  const uint8_t which = data[0];
  std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  // Some texts are repeated. Their hash says which, so that a mutation of a long one is short again
  // and the fuzzer cannot spend its time on nothing else.
  const size_t hash = std::hash<std::string>()(text);
  if (hash % 64 == 0 && !text.empty()) {
    const std::string unit = text;
    const size_t wanted = hash % 2048 == 0 ? kMaxTextBytes : size_t{1} << 13;
    while (text.size() + unit.size() <= wanted) text += unit;
  }
  CheckPieces(text);
  CheckUtf8(std::string_view(text).substr(0, 1024), 1 + which % 7u);  // byte by byte is slow
  CheckTokens(Candidates()[which % Candidates().size()], text);
  if (text.size() <= 4096) {
    if (auto vocab = ParseTiktoken(text); vocab.ok()) (void)MakeTokenizer(*std::move(vocab));
    if (auto vocab = ParseTokenizerJson(text); vocab.ok()) (void)MakeTokenizer(*std::move(vocab));
  }
  return 0;
}
