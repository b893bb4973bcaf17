// SPDX-License-Identifier: Apache-2.0
// A backend that says what a script says. It stands where the hardware stands: everything else of
// the server is real. The script names a task; a prompt that holds it is answered with the turn
// that its number of tool results asks for, any other prompt with one fixed reply.
#pragma once
#include <string>
#include <vector>

#include "backend/immediate_backend.h"
#include "base/json.h"
#include "text/harmony.h"
#include "text/tokenizer.h"
namespace hearth {

struct AgentScript {
  std::string task;
  std::vector<std::vector<Token>> turns;  // what follows `<|start|>assistant`, one per turn
  std::vector<Token> otherwise;
};

// {"task": "...", "turns": [[message, ...], ...], "otherwise": [message, ...]}, where a message is
// {"channel": "analysis", "text": "..."} or has "to": "functions.NAME" besides.
Result<AgentScript> ReadAgentScript(const Json& json, const Tokenizer& tokenizer);

// Thread: one at a time. `tokenizer` must outlive it.
class ScriptedBackend : public ImmediateBackend {
 public:
  static Result<std::unique_ptr<ScriptedBackend>> Make(AgentScript script,
                                                       const Tokenizer& tokenizer);
  std::string_view name() const override { return "scripted"; }
  int vocab_size() const override { return tokenizer_.vocab_size(); }
  KvLayout kv_layout() const override;
  Status Compute(const StepPlan& plan, std::span<float> logits) override;

 private:
  ScriptedBackend(AgentScript script, const Tokenizer& tokenizer, const HarmonyTokens& tokens);
  Result<size_t> SlotOf(const SeqSlice& slice, int position) const;
  const std::vector<Token>& TurnFor(const std::vector<Token>& seen) const;
  // What follows these tokens; the end of the turn when they are not the script's.
  Token Next(const std::vector<Token>& seen) const;

  const AgentScript script_;
  const Tokenizer& tokenizer_;
  const HarmonyTokens tokens_;
  std::vector<Token> assistant_;  // how a reply begins: start, and the author
  std::vector<Token> memory_;     // what K and V would be: the token at every position
};

}  // namespace hearth
