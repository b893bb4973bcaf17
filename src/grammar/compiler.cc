// SPDX-License-Identifier: Apache-2.0
#include "grammar/compiler.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hearth {
namespace {

// The owner's length comes first, so that no owner and text together look like others.
std::string KeyOf(char kind, std::string_view owner, std::string_view text) {
  return Printf("%c%zu:", kind, owner.size()) + std::string(owner) + std::string(text);
}

std::string PayerOf(std::string_view owner) {
  return std::string(owner.substr(0, owner.find('/')));
}

}  // namespace

GrammarCompiler::GrammarCompiler(std::shared_ptr<const GrammarVocabulary> vocabulary,
                                 GrammarCompilerOptions options)
    : vocabulary_(std::move(vocabulary)), options_(options) {}

GrammarCompiler::Made GrammarCompiler::Refused(Status why) {
  const MutexLock lock(mutex_);
  ++counts_.refused;
  return why;
}

std::shared_ptr<const Grammar> GrammarCompiler::Find(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  ++counts_.found;
  return at->second->grammar;
}

// Not under the lock: others go on while this one compiles. Two who compile the same text at the
// same time both succeed, and one result is kept.
GrammarCompiler::Made GrammarCompiler::Compile(GrammarKind kind, std::string_view text,
                                               std::string key, std::string_view owner) {
  auto made = Grammar::Compile(vocabulary_, kind, text, options_.grammar);
  if (!made.ok()) return Refused(made.status());
  const MutexLock lock(mutex_);
  ++counts_.compiled;
  Entry entry{std::move(key), *made, PayerOf(owner)};
  const size_t bytes = entry.bytes();
  if (by_key_.contains(entry.key) || bytes > options_.kept_bytes / 2) return made;
  kept_bytes_ += bytes;
  Share& share = shares_[entry.payer];
  share.bytes += bytes;
  ++share.count;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > options_.kept_grammars || kept_bytes_ > options_.kept_bytes) DropOne();
  return made;
}

// The oldest of who has more than half, if anybody has, else the oldest.
void GrammarCompiler::DropOne() {
  const auto greedy = std::find_if(shares_.begin(), shares_.end(), [this](const auto& share) {
    return share.second.bytes > options_.kept_bytes / 2 ||
           share.second.count > options_.kept_grammars / 2;
  });
  const bool is_any = greedy == shares_.end();
  const auto oldest = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
    return is_any || entry.payer == greedy->first;
  });
  const size_t bytes = oldest->bytes();
  kept_bytes_ -= bytes;
  const auto share = shares_.find(oldest->payer);
  share->second.bytes -= bytes;
  if (--share->second.count == 0) shares_.erase(share);
  by_key_.erase(oldest->key);
  entries_.erase(std::next(oldest).base());
}

GrammarCompiler::Made GrammarCompiler::SchemaText(std::string_view text, std::string_view owner) {
  if (text.size() > options_.schema.bytes) {
    return Refused(Error(Code::kInvalid, "the schema has %zu bytes; the limit is %zu", text.size(),
                         options_.schema.bytes));
  }
  std::string key = KeyOf('s', owner, text);
  if (auto found = Find(key)) return found;
  auto prepared = PrepareSchemaText(text, options_.schema);
  if (!prepared.ok()) return Refused(prepared.status());
  return Compile(GrammarKind::kJsonSchema, *prepared, std::move(key), owner);
}

GrammarCompiler::Made GrammarCompiler::Schema(const Json& schema, std::string_view owner) {
  return SchemaText(WriteJson(schema), owner);
}

GrammarCompiler::Made GrammarCompiler::AnyObject() { return SchemaText(R"({"type":"object"})"); }

GrammarCompiler::Made GrammarCompiler::Regex(std::string_view pattern, std::string_view owner) {
  if (Status checked = CheckPattern(pattern, options_.schema); !checked.ok()) {
    return Refused(std::move(checked));
  }
  std::string key = KeyOf('r', owner, pattern);
  if (auto found = Find(key)) return found;
  return Compile(GrammarKind::kRegex, pattern, std::move(key), owner);
}

GrammarCompiler::Made GrammarCompiler::Lark(std::string_view text, std::string_view owner) {
  if (Status checked = CheckLark(text, options_.schema); !checked.ok()) {
    return Refused(std::move(checked));
  }
  return OwnLark(text, owner);
}

GrammarCompiler::Made GrammarCompiler::OwnLark(std::string_view text, std::string_view owner) {
  std::string key = KeyOf('l', owner, text);
  if (auto found = Find(key)) return found;
  return Compile(GrammarKind::kLark, text, std::move(key), owner);
}

GrammarCompiler::Made GrammarCompiler::Choice(const std::vector<std::string>& choices,
                                              std::string_view owner) {
  if (choices.empty()) return Refused(Error(Code::kInvalid, "expected at least one choice"));
  if (choices.size() > options_.choices) {
    return Refused(
        Error(Code::kInvalid, "%zu choices; the limit is %zu", choices.size(), options_.choices));
  }
  std::string lark = "start: CHOICE\nCHOICE: ";
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].empty()) return Refused(Error(Code::kInvalid, "choice %zu is empty", i));
    lark += (i == 0 ? "" : " | ") + WriteJson(Json(choices[i]));
  }
  if (lark.size() > options_.schema.bytes) {
    return Refused(Error(Code::kInvalid, "the choices have %zu bytes; the limit is %zu",
                         lark.size(), options_.schema.bytes));
  }
  return OwnLark(lark, owner);
}

GrammarCompilerCounts GrammarCompiler::counts() const {
  const MutexLock lock(mutex_);
  GrammarCompilerCounts counts = counts_;
  counts.kept = entries_.size();
  counts.kept_bytes = kept_bytes_;
  return counts;
}

}  // namespace hearth
