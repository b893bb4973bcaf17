// SPDX-License-Identifier: Apache-2.0
// hearth render: conversations in, prompts out, one JSON value per line. Shows exactly which
// tokens a model is fed, without running it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/open_format.h"
#include "app/open_tokenizer.h"
#include "app/terminal.h"
#include "base/json.h"

namespace hearth {
namespace {

struct RenderFlags {
  std::string model, tokenizer, chat_template;
  std::string date;
  bool wants_text = false;
  bool keeps_reasoning = false;
};

bool IsDate(const std::string& text) {
  if (text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 4 || i == 7;
    if (is_dash ? text[i] != '-' : (text[i] < '0' || text[i] > '9')) return false;
  }
  const std::string month = text.substr(5, 2);
  const std::string day = text.substr(8, 2);
  return month >= "01" && month <= "12" && day >= "01" && day <= "31";
}

std::string IdArray(const std::vector<Token>& tokens) {
  std::string out = "[";
  for (const Token token : tokens) {
    if (out.size() > 1) out += ',';
    out += std::to_string(token);
  }
  return out + "]\n";
}

// A terminal gets colour for special tokens, and no control characters out of messages.
std::string TextOf(const std::vector<Token>& tokens, const Tokenizer& tokenizer, bool is_terminal) {
  std::string out;
  for (const Token token : tokens) {
    const std::string_view bytes = tokenizer.Bytes(token);
    if (!is_terminal) {
      out += bytes;
    } else if (tokenizer.IsSpecial(token)) {
      out.append("\x1b[1;36m").append(bytes).append("\x1b[0m");
    } else {
      out += ForTerminal(bytes);
    }
  }
  return out + "\n";
}

Status Render(const RenderFlags& flags) {
  const std::string& path = flags.tokenizer.empty() ? flags.model : flags.tokenizer;
  HEARTH_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, OpenTokenizer(path));
  HEARTH_ASSIGN(const std::unique_ptr<ChatFormat> format,
                OpenChatFormat(path, flags.chat_template, *tokenizer));
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
      "render", "Turn conversations, a JSON object per line, into the tokens a model is fed");
  auto flags = std::make_shared<RenderFlags>();
  auto* source = sub->add_option_group("source")->require_option(1);
  source->add_option("--model", flags->model, "Model file whose tokenizer and format to use");
  source->add_option("--tokenizer", flags->tokenizer,
                     "Tokenizer alone: a GGUF, a tokenizer.json or a .tiktoken file");
  sub->add_option("--template", flags->chat_template,
                  "Use this format whatever the model: harmony");
  sub->add_option("--date", flags->date, "YYYY-MM-DD to tell the model; none unless given")
      ->check([](const std::string& text) {
        return IsDate(text) ? std::string() : "expected a date like 2026-01-31";
      });
  sub->add_flag("--text", flags->wants_text, "Print the prompt as text instead of token ids");
  sub->add_flag("--keep-reasoning", flags->keeps_reasoning,
                "Show the model its reasoning of finished turns too");
  sub->callback([&chosen, flags] { chosen = [flags] { return Render(*flags); }; });
}

}  // namespace hearth
