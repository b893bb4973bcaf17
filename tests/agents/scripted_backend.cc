// SPDX-License-Identifier: Apache-2.0
#include "scripted_backend.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

constexpr int kNumBlocks = 8192;  // 131,072 tokens
constexpr int kWindow = 128;      // as gpt-oss: what is cached must survive a window too

Result<std::string> Member(const Json& message, const char* name) {
  const Json* value = message.Find(name);
  if (value != nullptr && value->string() != nullptr) return *value->string();
  return Error(Code::kInvalid, "a message of the script without %s", name);
}

// As a model writes it: the recipient after the channel.
Status AddMessage(const Json& message, bool is_last, const Tokenizer& tokenizer,
                  const HarmonyTokens& tokens, std::vector<Token>& out) {
  HEARTH_ASSIGN(const std::string channel, Member(message, "channel"));
  HEARTH_ASSIGN(const std::string text, Member(message, "text"));
  const bool is_call = message.Find("to") != nullptr;
  out.push_back(tokens.channel);
  tokenizer.Encode(channel, out);
  if (is_call) {
    HEARTH_ASSIGN(const std::string recipient, Member(message, "to"));
    tokenizer.Encode(" to=" + recipient, out);
    tokenizer.Encode(" ", out);
    out.push_back(tokens.constrain);
    tokenizer.Encode("json", out);
  }
  out.push_back(tokens.message);
  tokenizer.Encode(text, out);
  out.push_back(is_call ? tokens.call : is_last ? tokens.finish : tokens.end);
  if (is_last) return Status();
  out.push_back(tokens.start);
  tokenizer.Encode("assistant", out);
  return Status();
}

Result<std::vector<Token>> ReadTurn(const Json& turn, const Tokenizer& tokenizer,
                                    const HarmonyTokens& tokens) {
  if (turn.array() == nullptr) return Error(Code::kInvalid, "a turn of the script is no array");
  std::vector<Token> out;
  for (const Json& message : *turn.array()) {
    const bool is_last = &message == &turn.array()->back();
    HEARTH_TRY(AddMessage(message, is_last, tokenizer, tokens, out));
  }
  return out;
}

}  // namespace

Result<AgentScript> ReadAgentScript(const Json& json, const Tokenizer& tokenizer) {
  HEARTH_ASSIGN(const HarmonyTokens tokens, HarmonyTokens::Find(tokenizer));
  AgentScript script;
  HEARTH_ASSIGN(script.task, Member(json, "task"));
  const Json *turns = json.Find("turns"), *otherwise = json.Find("otherwise");
  if (turns == nullptr || turns->array() == nullptr || turns->array()->empty()) {
    return Error(Code::kInvalid, "a script without turns");
  }
  for (const Json& turn : *turns->array()) {
    HEARTH_ASSIGN(std::vector<Token> read, ReadTurn(turn, tokenizer, tokens));
    script.turns.push_back(std::move(read));
  }
  if (otherwise == nullptr) return Error(Code::kInvalid, "a script without otherwise");
  HEARTH_ASSIGN(script.otherwise, ReadTurn(*otherwise, tokenizer, tokens));
  return script;
}

Result<std::unique_ptr<ScriptedBackend>> ScriptedBackend::Make(AgentScript script,
                                                               const Tokenizer& tokenizer) {
  HEARTH_ASSIGN(const HarmonyTokens tokens, HarmonyTokens::Find(tokenizer));
  return std::unique_ptr<ScriptedBackend>(
      new ScriptedBackend(std::move(script), tokenizer, tokens));
}

ScriptedBackend::ScriptedBackend(AgentScript script, const Tokenizer& tokenizer,
                                 const HarmonyTokens& tokens)
    : script_(std::move(script)),
      tokenizer_(tokenizer),
      tokens_(tokens),
      assistant_{tokens.start},
      memory_(static_cast<size_t>(kNumBlocks) * kDefaultBlockTokens, -1) {
  tokenizer.Encode("assistant", assistant_);
}

KvLayout ScriptedBackend::kv_layout() const {
  KvLayout layout;
  layout.groups = {{0, 64, kNumBlocks}, {kWindow, 64, kNumBlocks}};
  return layout;
}

Result<size_t> ScriptedBackend::SlotOf(const SeqSlice& slice, int position) const {
  const auto entry = static_cast<size_t>(position / kDefaultBlockTokens);
  const int id = entry < slice.tables[0].size() ? static_cast<int>(slice.tables[0][entry]) : -1;
  if (id < 0 || id >= kNumBlocks) {
    return Error(Code::kInvalid, "position %d has block %d", position, id);
  }
  return static_cast<size_t>(id * kDefaultBlockTokens + position % kDefaultBlockTokens);
}

Status ScriptedBackend::Compute(const StepPlan& plan, std::span<float> logits) {
  for (const SeqSlice& slice : plan.slices) {
    for (int i = 0; i < slice.count; ++i) {
      HEARTH_ASSIGN(const size_t slot, SlotOf(slice, slice.num_computed + i));
      memory_[slot] = plan.tokens[static_cast<size_t>(slice.first + i)];
    }
  }
  std::fill(logits.begin(), logits.end(), -40.0F);
  const auto width = static_cast<size_t>(vocab_size());
  for (const SeqSlice& slice : plan.slices) {
    for (int i = 0; i < slice.num_rows; ++i) {
      const int end = slice.num_computed + slice.count - slice.num_rows + i + 1;
      std::vector<Token> seen;
      for (int position = 0; position < end; ++position) {
        HEARTH_ASSIGN(const size_t slot, SlotOf(slice, position));
        seen.push_back(memory_[slot]);
      }
      const auto row = static_cast<size_t>(slice.first_row + i);
      logits[row * width + static_cast<size_t>(Next(seen))] = 40.0F;
    }
  }
  return Status();
}

const std::vector<Token>& ScriptedBackend::TurnFor(const std::vector<Token>& seen) const {
  std::string text;
  size_t results = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    text += tokenizer_.Bytes(seen[i]);
    // A tool's message is one whose author is a function.
    if (i > 0 && seen[i - 1] == tokens_.start && tokenizer_.Bytes(seen[i]) == "functions") {
      ++results;
    }
  }
  // Agents also ask for a title of the task, and then offer no tools.
  const bool has_tools = text.find("namespace functions") != std::string::npos;
  if (!has_tools || text.find(script_.task) == std::string::npos) return script_.otherwise;
  return script_.turns[std::min(results, script_.turns.size() - 1)];
}

Token ScriptedBackend::Next(const std::vector<Token>& seen) const {
  const std::vector<Token>& turn = TurnFor(seen);
  // The reply begins at the first assistant's message from which on everything is the script's.
  for (size_t at = 0; at + assistant_.size() <= seen.size(); ++at) {
    const size_t begin = at + assistant_.size(), count = seen.size() - begin;
    if (count >= turn.size()) continue;
    if (!std::equal(assistant_.begin(), assistant_.end(),
                    seen.begin() + static_cast<std::ptrdiff_t>(at))) {
      continue;
    }
    if (std::equal(seen.begin() + static_cast<std::ptrdiff_t>(begin), seen.end(), turn.begin())) {
      return turn[count];
    }
  }
  return tokens_.finish;
}

}  // namespace hearth
