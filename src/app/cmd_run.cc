// SPDX-License-Identifier: Apache-2.0
// hearth run: talk to a model in the terminal.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/chat.h"
#include "app/commands.h"
#include "app/terminal.h"

namespace hearth {
namespace {

struct RunFlags {
  ChatOptions chat;
  std::string prompt, system;
  bool has_prompt = false;
};

std::atomic<bool> g_interrupted = false;

void OnInterrupt(int) { g_interrupted = true; }

// Without SA_RESTART, so that waiting for a line ends too.
void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

// Shows a reply as it comes: reasoning dimmed, tool calls named, nothing that commands a terminal.
class Printer {
 public:
  Printer() : is_terminal_(isatty(STDOUT_FILENO) != 0) {}

  void Show(ReplyEvent::Kind kind, const std::string& text) {
    if (kind == ReplyEvent::Kind::kToolCall) {
      Put("\n[calls ", false);
      Put(text, false);
      Put("] ", false);
      return;
    }
    if (kind == ReplyEvent::Kind::kToolCallEnd) return Put("\n", false);
    const bool dims = kind == ReplyEvent::Kind::kReasoning;
    if (wrote_ && was_reasoning_ && !dims) Put("\n\n", false);
    was_reasoning_ = dims;
    Put(text, dims);
  }
  void EndReply() {
    if (wrote_) Put("\n", false);
    wrote_ = false;
    was_reasoning_ = false;
  }

 private:
  void Put(const std::string& text, bool dims) {
    if (text.empty()) return;
    wrote_ = true;
    const std::string safe = is_terminal_ ? ForTerminal(text) : text;
    std::fputs(is_terminal_ && dims ? ("\x1b[2m" + safe + "\x1b[0m").c_str() : safe.c_str(),
               stdout);
    std::fflush(stdout);
  }
  bool is_terminal_;
  bool wrote_ = false, was_reasoning_ = false;
};

Status OneTurn(Chat& chat, const std::string& text, Printer& printer) {
  g_interrupted = false;
  HEARTH_ASSIGN(
      const ChatEnd end,
      chat.Say(
          text, [&](ReplyEvent::Kind kind, const std::string& piece) { printer.Show(kind, piece); },
          g_interrupted));
  printer.EndReply();
  if (end == ChatEnd::kLength) std::fprintf(stderr, "[stopped after --max-tokens]\n");
  if (end == ChatEnd::kContext) std::fprintf(stderr, "[stopped: the context is full]\n");
  if (end == ChatEnd::kInterrupted) std::fprintf(stderr, "[interrupted]\n");
  return Status();
}

Status Run(const RunFlags& flags) {
  HEARTH_ASSIGN(const std::unique_ptr<Chat> chat, Chat::Open(flags.chat));
  CatchInterrupts();  // before this Ctrl-C ends the program: nothing is there to interrupt
  if (!flags.system.empty()) chat->SetSystem(flags.system);
  Printer printer;
  if (flags.has_prompt) return OneTurn(*chat, flags.prompt, printer);
  const bool asks = isatty(STDIN_FILENO) != 0;
  if (asks) std::fprintf(stderr, "Type a message; Ctrl-C stops a reply, Ctrl-D ends.\n");
  std::string line;
  for (;;) {
    if (asks) std::fputs("\n> ", stderr);
    g_interrupted = false;
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    HEARTH_TRY(OneTurn(*chat, line, printer));
  }
  if (asks) std::fputs("\n", stderr);
  return Status();
}

}  // namespace

void AddRun(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* sub = app.add_subcommand("run", "Talk to a model in the terminal");
  ChatOptions& chat = flags->chat;
  sub->add_option("--model", chat.model, "Model file or directory")->required();
  CLI::Option* prompt =
      sub->add_option("--prompt", flags->prompt, "Answer this and exit; else messages are read");
  sub->add_option("--system", flags->system,
                  "Instructions the model gets before the first message");
  sub->add_option("--max-tokens", chat.max_tokens, "Longest reply")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  sub->add_option("--temperature", chat.temperature,
                  "0 = always the likeliest token; default 1 for gpt-oss, 0.7 for others")
      ->check(CLI::Range(0.0, 10.0));
  sub->add_option("--top-k", chat.top_k,
                  "Draw only from this many of the likeliest tokens; 0 = all")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  sub->add_option("--top-p", chat.top_p, "Draw only from the likeliest tokens up to this share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--min-p", chat.min_p,
                  "Draw only tokens at least this many times as likely as the likeliest")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  sub->add_option("--seed", chat.seed, "Same seed, same reply")->capture_default_str();
  sub->add_option("--reasoning-effort", chat.effort, "low, medium or high, where the model has it")
      ->check(CLI::IsMember({"low", "medium", "high"}));
  sub->add_option("--date", chat.date, "YYYY-MM-DD the model is told; none unless given");
  sub->add_option("--context", chat.context, "Context length, in tokens")
      ->check(CLI::Range(16, 1 << 27));
  sub->add_option("--backend", chat.backend, "Compute backend")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str();
  sub->add_option("--isa", chat.cpu.isa, "scalar, avx2, avx512 or amx; default the best here");
  sub->add_option("--threads", chat.cpu.num_threads, "Default: one per core the cgroup allows")
      ->check(CLI::Range(1, 1024));
  sub->callback([&chosen, flags, prompt] {
    flags->has_prompt = prompt->count() > 0;
    chosen = [flags] { return Run(*flags); };
  });
}

}  // namespace hearth
