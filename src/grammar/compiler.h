// SPDX-License-Identifier: Apache-2.0
// Grammars as clients ask for them, checked, compiled within limits, and kept for the next who asks
// the same. Nothing it refuses reaches the engine, and nothing it could not compile is ignored.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "base/result.h"
#include "grammar/grammar.h"
#include "grammar/schema.h"
namespace hearth {

struct GrammarCompilerOptions {
  SchemaLimits schema{};
  GrammarLimits grammar{};
  size_t choices = 4'096;                // of one choice list
  size_t kept_grammars = 256;            // usual ones take 0.1 to 1 MB each
  size_t kept_bytes = size_t{32} << 20;  // of their memory and their texts
};

struct GrammarCompilerCounts {
  uint64_t compiled = 0, refused = 0, found = 0;  // found: was kept from before
  uint64_t kept = 0, kept_bytes = 0;              // now
};

// Thread: any; meant for those that read requests, never the engine's. Two threads may compile at
// the same time. Takes milliseconds for a new grammar, microseconds for a known one.
class GrammarCompiler {
 public:
  explicit GrammarCompiler(std::shared_ptr<const GrammarVocabulary> vocabulary,
                           GrammarCompilerOptions options = {});

  // A grammar is kept for `owner` alone: whether another one asked for the same must not be told by
  // the time it takes. Owners whose names agree up to a slash have one share of what is kept, half
  // of it when there are others: fresh grammars of one client do not cost the others theirs.
  // kInvalid or kUnsupported with the reason when the schema cannot be enforced to the letter.
  Result<std::shared_ptr<const Grammar>> SchemaText(std::string_view text,
                                                    std::string_view owner = {});
  Result<std::shared_ptr<const Grammar>> Schema(const Json& schema, std::string_view owner = {});
  // Any JSON value, or any object: what clients call "json mode".
  Result<std::shared_ptr<const Grammar>> AnyObject();
  // The whole text matches.
  Result<std::shared_ptr<const Grammar>> Regex(std::string_view pattern,
                                               std::string_view owner = {});
  Result<std::shared_ptr<const Grammar>> Lark(std::string_view text, std::string_view owner = {});
  // The text is one of these.
  Result<std::shared_ptr<const Grammar>> Choice(const std::vector<std::string>& choices,
                                                std::string_view owner = {});
  // For grammars this program wrote itself: not looked over first.
  Result<std::shared_ptr<const Grammar>> OwnLark(std::string_view text,
                                                 std::string_view owner = {});

  const std::shared_ptr<const GrammarVocabulary>& vocabulary() const { return vocabulary_; }
  const GrammarCompilerOptions& options() const { return options_; }
  GrammarCompilerCounts counts() const;

 private:
  using Made = Result<std::shared_ptr<const Grammar>>;
  std::shared_ptr<const Grammar> Find(const std::string& key) HEARTH_EXCLUDES(mutex_);
  Made Compile(GrammarKind kind, std::string_view text, std::string key, std::string_view owner)
      HEARTH_EXCLUDES(mutex_);
  Made Refused(Status why) HEARTH_EXCLUDES(mutex_);
  void DropOne() HEARTH_REQUIRES(mutex_);

  const std::shared_ptr<const GrammarVocabulary> vocabulary_;
  const GrammarCompilerOptions options_;
  struct Entry {
    std::string key;
    std::shared_ptr<const Grammar> grammar;
    std::string payer;
    size_t bytes() const { return key.size() + grammar->bytes(); }
  };
  struct Share {
    size_t bytes = 0, count = 0;
  };
  mutable Mutex mutex_;
  std::list<Entry> entries_ HEARTH_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_
      HEARTH_GUARDED_BY(mutex_);  // into entries_
  size_t kept_bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Share> shares_ HEARTH_GUARDED_BY(mutex_);  // by payer
  GrammarCompilerCounts counts_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth
