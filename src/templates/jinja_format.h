// SPDX-License-Identifier: Apache-2.0
// The chat template of a model file as a ChatFormat: conversations out through the template,
// replies back in through text/tool_calls.h. Only a model's own template is ever run; a request
// cannot bring one.
#pragma once
#include <memory>
#include <set>
#include <span>
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
  // What the template makes of the conversation, nothing added and nothing refused, and its tokens.
  Result<std::vector<PromptPiece>> RenderPieces(const Conversation& conversation,
                                                const RenderOptions& options) const;
  std::vector<Token> TokensOf(const std::vector<PromptPiece>& pieces) const;
  const std::vector<Token>& stop_tokens() const override { return stop_tokens_; }
  bool has_reasoning_effort() const override { return has_reasoning_effort_; }
  // A word that stands anywhere in the template: what it is used for is the template's to say.
  bool has_variable(std::string_view name) const override;
  bool has_tool_calls() const override { return tool_call_style_ != ToolCallStyle::kNone; }
  ReplyStart StartOf(const Conversation& conversation,
                     std::span<const Token> prompt) const override;
  std::unique_ptr<ReplyReader> NewReader() const override;
  std::unique_ptr<ReplyReader> NewReaderAt(const ReplyStart& start) const override;
  ToolCallStyle tool_call_style() const { return tool_call_style_; }
  bool begins_in_reasoning() const { return begins_in_reasoning_; }

 private:
  JinjaChatFormat(TemplateProgram program, const Tokenizer& tokenizer);
  bool EndsInThought(std::span<const Token> prompt) const;
  bool ShowsSystem() const;
  // The prompt up to the end of the last message's text.
  Result<std::string> RenderOpen(Conversation conversation, const RenderOptions& options) const;
  Result<std::string> Run(const Conversation& conversation, const RenderOptions& options) const;

  TemplateProgram program_;
  const Tokenizer& tokenizer_;
  SpecialFinder finder_;
  std::set<std::string, std::less<>> words_;  // of the template
  std::vector<Token> stop_tokens_;
  ToolCallStyle tool_call_style_ = ToolCallStyle::kNone;
  bool has_reasoning_effort_ = false;
  bool has_system_ = true;            // the template shows a system message
  bool begins_in_reasoning_ = false;  // a plain prompt itself ends with "<think>"
};

// The variables a template sees, as JSON text with every message's text marked. Declared here for
// its tests.
std::string TemplateContext(const Conversation& conversation, const Tokenizer& tokenizer);

}  // namespace hearth
