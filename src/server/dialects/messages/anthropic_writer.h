// SPDX-License-Identifier: Apache-2.0
// What goes back on the wire for /v1/messages: one message of blocks, or the events it grows by.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "server/turns/dialect.h"
namespace hearth {

// {"type": "error", "error": {"type", "message"}}
Json AnthropicError(const ApiError& error);

class MessagesWriter : public ReplyWriter {
 public:
  MessagesWriter(ReplyFacts facts, bool shows_thinking);
  std::string Begin() override;
  std::string Add(int choice, const Delta& delta) override;
  std::string EndChoice(int choice, const ChoiceEnd& end) override;
  std::string End(const TurnUsage& usage) override;
  std::string Fail(const ApiError& error) override;
  std::string Ping() const override;
  std::string Whole(const TurnUsage& usage) override;

 private:
  enum class BlockKind : unsigned char { kThinking, kText, kToolUse };
  struct Block {
    BlockKind kind;
    std::string text;  // thoughts, answer, or arguments
    std::string name;  // of the tool
  };
  std::string OpenBlock(BlockKind kind, const std::string& name);
  std::string CloseBlock();
  std::string BlockDelta(JsonObject delta) const;
  Json BlockAsJson(size_t index, bool is_whole) const;
  Json Message(JsonArray content, Json stop_reason, Json stop_sequence, Json usage) const;

  const ReplyFacts facts_;
  const bool shows_thinking_;
  std::vector<Block> blocks_;
  bool is_open_ = false;
  Json stop_reason_, stop_sequence_;
};

}  // namespace hearth
