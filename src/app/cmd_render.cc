// SPDX-License-Identifier: Apache-2.0
// hearth render: conversations in, prompts out, one JSON value per line. Shows exactly which
// tokens a model is fed, without running it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/flag_checks.h"
#include "app/model_argument.h"
#include "app/open_format.h"
#include "app/open_tokenizer.h"
#include "app/text_source.h"
#include "base/json.h"
#include "base/terminal.h"

namespace hearth {
namespace {

struct RenderFlags {
  std::string model, tokenizer, chat_template;
  std::string date;
  bool wants_text = false;
  bool keeps_reasoning = false;
};

std::string IdArray(const std::vector<Token>& tokens) {
  std::string out = "[";
  for (const Token token : tokens) {
    if (out.size() > 1) out += ',';
    out += std::to_string(token);
  }
  return out + "]\n";
}

// A terminal gets colour for special tokens, and no control characters out of messages or the
// vocabulary. Anything else gets the prompt's bytes as they are: they are data.
std::string TextOf(const std::vector<Token>& tokens, const Tokenizer& tokenizer, bool is_terminal) {
  std::string out, ordinary;  // tokens may be parts of characters: what stands together is shown so
  const auto show = [&] {
    out += is_terminal ? ForTerminal(ordinary) : ordinary;
    ordinary.clear();
  };
  for (const Token token : tokens) {
    const std::string_view bytes = tokenizer.Bytes(token);
    if (!is_terminal || !tokenizer.IsSpecial(token)) {
      ordinary += bytes;
      continue;
    }
    show();
    out.append("\x1b[1;36m").append(ForTerminal(bytes)).append("\x1b[0m");
  }
  show();
  return out + "\n";
}

Status Render(const RenderFlags& flags) {
  std::string path = flags.tokenizer;
  if (path.empty()) {
    HEARTH_ASSIGN(path, ModelPath(flags.model));
  }
  HEARTH_ASSIGN(const TextSource source, TextSource::Open(path));
  HEARTH_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, OpenTokenizer(source));
  HEARTH_ASSIGN(const std::unique_ptr<ChatFormat> format,
                OpenChatFormat(source, flags.chat_template, *tokenizer));
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const RenderOptions options{.date = flags.date,
                              .keeps_finished_reasoning = flags.keeps_reasoning};
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string place = Printf("line %zu", number);
    HEARTH_ASSIGN(const Json request, ParseJson(line).Within(place));
    HEARTH_ASSIGN(const Conversation conversation, ParseConversation(request).Within(place));
    HEARTH_ASSIGN(const std::vector<Token> tokens,
                  format->Render(conversation, options).Within(place));
    const std::string out =
        flags.wants_text ? TextOf(tokens, *tokenizer, is_terminal) : IdArray(tokens);
    // Flushed line by line: another program may be waiting for this answer.
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size() || std::fflush(stdout) != 0) {
      return Error(Code::kIo, "cannot write to standard output");
    }
  }
  return {};
}

}  // namespace

void AddRender(CLI::App& app, Command& chosen) {
  CLI::App* sub = app.add_subcommand(
      "render", "Convert conversations, one JSON object per line, to the model's prompt tokens");
  auto flags = std::make_shared<RenderFlags>();
  auto* source = sub->add_option_group("source")->require_option(1);
  source->add_option("--model", flags->model,
                     "Model file or directory, or a name that `hearth list` shows, whose tokenizer "
                     "and chat format to use");
  source->add_option("--tokenizer", flags->tokenizer,
                     "Tokenizer file: GGUF, tokenizer.json or .tiktoken");
  sub->add_option("--template", flags->chat_template,
                  "Chat format to use instead of the model's own; only harmony");
  sub->add_option("--date", flags->date,
                  "Current date to put into the prompt, YYYY-MM-DD; default: none")
      ->check(Date());
  sub->add_flag("--text", flags->wants_text, "Print the prompt as text instead of token ids");
  sub->add_flag("--keep-reasoning", flags->keeps_reasoning,
                "Keep the model's reasoning of earlier turns in the prompt");
  sub->callback([&chosen, flags] { chosen = [flags] { return Render(*flags); }; });
}

}  // namespace hearth
