// SPDX-License-Identifier: Apache-2.0
// How one model family writes a conversation as tokens, and how its reply is read back. Harmony
// (gpt-oss) is one implementation, a model file's own chat template another.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/conversation.h"
namespace hearth {

// A schema that the answer will be held to, for formats that show it to the model.
struct AnswerFormat {
  std::string name, description;  // the description may be empty
  Json schema;
};

struct RenderOptions {
  // YYYY-MM-DD, what the model is told is today. Empty: it is told no date. Pinned by the caller,
  // because a date that changes by itself would change every prompt at midnight.
  std::string date{};
  // Also show the model what it thought in turns that are over, where its format leaves it out.
  bool keeps_finished_reasoning = false;
  const AnswerFormat* answer = nullptr;  // null: none
};

// A piece of a reply, in the order it was written.
struct ReplyEvent {
  enum class Kind : unsigned char {
    kReasoning,      // bytes of what the model thinks before it answers
    kContent,        // bytes of the answer
    kToolCall,       // a call begins; `text` is the tool's name
    kToolArguments,  // bytes of that call's arguments
    kToolCallEnd,
  };
  Kind kind = Kind::kContent;
  std::string text;  // pieces may cut a code point in two: see Utf8Stream
};

// Reads one reply, token by token. Total: every sequence of tokens has a reading.
// Thread: one. It may point into the ChatFormat that made it, which must outlive it.
class ReplyReader {
 public:
  virtual ~ReplyReader() = default;
  // Appends what became certain with this token, often nothing.
  virtual void Feed(Token token, std::vector<ReplyEvent>& out) = 0;
  // No more tokens will come: appends what was held back.
  virtual void Finish(std::vector<ReplyEvent>& out) = 0;
};

// What of a reply is settled by its prompt.
struct ReplyStart {
  bool begins_in_reasoning = false;  // the prompt ended inside a thought
  bool begins_in_answer = false;     // it ended inside the answer: the last message is continued
  bool has_generic_calls = false;    // calls come as plain_tools.h has them
  // Of the reply, what stands in the prompt already, as a mask must be told it.
  std::vector<Token> said = {};
};

// Thread: any, once made. It may point into the Tokenizer it was made with, which must outlive it.
class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // The whole prompt: every token before the first one of the assistant's reply, or before its next
  // one where the conversation's last message is continued. Text out of the
  // conversation never becomes a special token, whatever it spells.
  virtual Result<std::vector<Token>> Render(const Conversation& conversation,
                                            const RenderOptions& options) const = 0;
  // Tokens after which the assistant's turn is over. Feed them to the reader as well.
  virtual const std::vector<Token>& stop_tokens() const = 0;
  virtual std::unique_ptr<ReplyReader> NewReader() const = 0;
  // Whether the conversation's reasoning effort has any effect on the prompt.
  virtual bool has_reasoning_effort() const { return false; }
  // Whether a template variable of this name can have any.
  virtual bool has_variable(std::string_view /*name*/) const { return false; }

  // Whether the format has a form of its own for tools; else they are told as plain_tools.h says.
  virtual bool has_tool_calls() const { return true; }

  // How the reply to a rendered conversation begins.
  virtual ReplyStart StartOf(const Conversation& /*conversation*/,
                             std::span<const Token> /*prompt*/) const {
    return {};
  }
  virtual std::unique_ptr<ReplyReader> NewReaderAt(const ReplyStart& /*start*/) const {
    return NewReader();
  }
};

}  // namespace hearth
