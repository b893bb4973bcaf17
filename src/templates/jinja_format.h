// SPDX-License-Identifier: Apache-2.0
// The chat template of a model file as a ChatFormat: conversations out through the template,
// replies back in through text/tool_calls.h. Only a model's own template is ever run; a request
// cannot bring one.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "templates/marks.h"
#include "templates/program.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
#include "text/tool_calls.h"
namespace hearth {

class JinjaChatFormat : public ChatFormat {
 public:
  // kInvalid: not a template. `tokenizer` must outlive the result.
  static Result<std::unique_ptr<JinjaChatFormat>> Make(std::string_view source,
                                                       const Tokenizer& tokenizer,
                                                       const TemplateLimits& limits = {});

  Result<std::vector<Token>> Render(const Conversation& conversation,
                                    const RenderOptions& options) const override;
  // The prompt in pieces, as a human may want to see it.
  Result<std::vector<PromptPiece>> RenderPieces(const Conversation& conversation,
                                                const RenderOptions& options) const;
  const std::vector<Token>& stop_tokens() const override { return stop_tokens_; }
  std::unique_ptr<ReplyReader> NewReader() const override;
  ToolCallStyle tool_call_style() const { return tool_call_style_; }
  bool begins_in_reasoning() const { return begins_in_reasoning_; }

 private:
  JinjaChatFormat(TemplateProgram program, const Tokenizer& tokenizer);

  TemplateProgram program_;
  const Tokenizer& tokenizer_;
  SpecialFinder finder_;
  std::vector<Token> stop_tokens_;
  ToolCallStyle tool_call_style_ = ToolCallStyle::kNone;
  bool begins_in_reasoning_ = false;  // the prompt itself ends with "<think>"
};

// The variables a template sees, as JSON text with every message's text marked. Declared here for
// its tests.
std::string TemplateContext(const Conversation& conversation, const Tokenizer& tokenizer);

}  // namespace hearth
