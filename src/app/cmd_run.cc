// SPDX-License-Identifier: Apache-2.0
// hearth run: talk to a model in the terminal, or ask it one thing in a pipeline.
#include <CLI/CLI.hpp>
#include <memory>

#include "app/chat.h"
#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/device_flag.h"
#include "app/flag_checks.h"
#include "app/kv_flag.h"
#include "app/model_argument.h"
#include "app/numa_flag.h"
#include "app/numerics_flag.h"
#include "app/run_terminal.h"
#include "app/server_key.h"
#include "platform/file.h"
#include "talk/columns.h"
#include "talk/interrupts.h"
#include "talk/server_source.h"
#include "talk/session.h"
#include "talk/settings.h"
#include "talk/transcript.h"

namespace hearth {
namespace {

struct RunFlags {
  ChatOptions chat;
  TalkSettings settings;
  std::string positional_model, model, system, prompt, effort, reasoning, schema_path;
  std::vector<std::string> words;
  std::string server, key_path, ca_path;
  bool is_plain = false, has_prompt = false, has_no_history = false;
  std::vector<std::string> local_only;  // flags given that mean nothing to a server
};

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Status ReadWords(RunFlags& flags) {
  // With --model every word belongs to the message.
  if (!flags.model.empty() && !flags.positional_model.empty()) {
    flags.words.insert(flags.words.begin(), flags.positional_model);
    flags.positional_model.clear();
  }
  if (flags.model.empty()) flags.model = flags.positional_model;
  if (flags.words.empty()) return Status();
  if (flags.has_prompt) {
    return Error(Code::kInvalid, "found --prompt and the message %s; give one of them",
                 Quoted(Joined(flags.words)).c_str());
  }
  flags.prompt = Joined(flags.words);
  flags.has_prompt = true;
  return Status();
}

Status ReadSettings(RunFlags& flags, bool is_terminal) {
  if (!flags.effort.empty()) HEARTH_TRY(SetSetting("effort", flags.effort, flags.settings));
  if (!is_terminal) flags.settings.reasoning = ReasoningView::kHide;
  if (!flags.reasoning.empty()) {
    HEARTH_ASSIGN(flags.settings.reasoning, ReasoningViewOf(flags.reasoning));
  }
  if (flags.schema_path.empty()) return Status();
  constexpr size_t kMaxSchemaBytes = size_t{1} << 20;
  HEARTH_ASSIGN(const std::string text, ReadTextFile(flags.schema_path, kMaxSchemaBytes));
  HEARTH_ASSIGN(flags.chat.schema, ParseJson(text).Within(flags.schema_path));
  return Status();
}

Result<std::unique_ptr<AnswererSource>> OpenSource(const RunFlags& flags) {
  if (flags.server.empty()) return NewLocalSource(flags.chat);
  if (!flags.local_only.empty()) {
    return Error(Code::kInvalid,
                 "%s is for a model in this process; leave it out with --server and HEARTH_SERVER",
                 flags.local_only.front().c_str());
  }
  ServerAddress address{flags.server, "", flags.ca_path};
  HEARTH_ASSIGN(address.key, ServerKey(flags.key_path));
  return NewServerSource(std::move(address), flags.chat.schema);
}

// One question, as a pipeline asks it.
Status AskOnce(const RunFlags& flags, RunTerminal& terminal, TalkSession& session,
               const std::string& message) {
  Result<TurnEnd> end = terminal.Quietly([&] { return session.Say(message); });
  HEARTH_TRY(terminal.status());
  if (!end.ok() && end.status().code() == Code::kCancelled) {
    terminal.Note(end.status().message());
    return Status();
  }
  HEARTH_TRY(end.status());
  // A part of a JSON text is none.
  if (flags.chat.schema && *end != TurnEnd::kStop) {
    return Error(Code::kExhausted, "the reply is not complete, so it does not match %s",
                 flags.schema_path.c_str());
  }
  return Status();
}

// Whether the chat goes on after this line.
bool Follow(const TypedLine& typed, RunTerminal& terminal, TalkSession& session) {
  if (typed.kind == TypedLine::Kind::kNothing) return true;
  if (typed.kind == TypedLine::Kind::kCommand) {
    return terminal.Quietly([&] { return session.Run(typed.command, typed.text); });
  }
  const Result<TurnEnd> end = terminal.Quietly([&] { return session.Say(typed.text); });
  if (!end.ok()) terminal.Note(end.status().message());
  return true;
}

Status Chat(const RunFlags& flags, RunTerminal& terminal, TalkSession& session) {
  HEARTH_TRY(terminal.OpenLines(!flags.has_no_history));
  terminal.Note(session.Greeting());
  terminal.Note("/help lists the commands; Ctrl-C stops a reply, Ctrl-D ends");
  while (terminal.status().ok()) {
    const std::optional<TypedLine> typed = terminal.NextLine();
    if (!typed || !Follow(*typed, terminal, session)) break;
    if (IsEndAsked()) break;
  }
  return terminal.status();
}

Status Run(RunFlags flags) {
  UseUtf8();
  HEARTH_TRY(ReadWords(flags));
  RunTerminal terminal(flags.is_plain);
  HEARTH_TRY(ReadSettings(flags, terminal.is_terminal()));
  HEARTH_ASSIGN(const std::unique_ptr<AnswererSource> source, OpenSource(flags));
  // Before anybody types or pipes a message for a model that is not there.
  if (flags.server.empty()) HEARTH_TRY(ModelPath(flags.model).status());
  HEARTH_ASSIGN(const std::optional<std::string> input, ReadInput(flags.has_prompt));
  const bool is_chat = !flags.has_prompt && !input;
  const std::string message = WithInput(flags.prompt, input.value_or(""));
  if (!is_chat && message.empty()) {
    return Error(Code::kInvalid, "the message is empty; pass one, pipe one in, or use a terminal");
  }
  if (is_chat && flags.server.empty()) terminal.Note("loading " + flags.model);
  HEARTH_ASSIGN(std::unique_ptr<Answerer> answerer, source->Open(flags.model));
  HEARTH_TRY(answerer->Check(flags.settings));
  CatchInterrupts();  // before this Ctrl-C ends the program: nothing is there to interrupt
  const std::string name = flags.model.empty() ? answerer->name() : flags.model;
  TalkSession session(*source, name, std::move(answerer), flags.settings, terminal.places());
  session.SetSystem(flags.system);
  return is_chat ? Chat(flags, terminal, session) : AskOnce(flags, terminal, session, message);
}

void AddSampling(CLI::App& sub, RunFlags& flags) {
  TalkSettings& settings = flags.settings;
  sub.add_option("--max-tokens", settings.max_tokens,
                 "Maximum length of a reply, in tokens; 0: until the context is full; default: "
                 "4096, or what the server allows")
      ->check(Between(0, 1 << 20));
  sub.add_option("--temperature", settings.temperature,
                 "Sampling temperature; 0: always the most likely token; default: what is "
                 "recommended for the model, else 1")
      ->check(Between(0.0, 10.0));
  sub.add_option("--top-k", settings.top_k,
                 "Sample only from this many most likely tokens; 0: all; default: what is "
                 "recommended for the model, else 0")
      ->check(Between(0, 1 << 24));
  sub.add_option("--top-p", settings.top_p,
                 "Sample only from the most likely tokens that together have this probability; "
                 "default: what is recommended for the model, else 1")
      ->check(Between(0.0, 1.0));
  sub.add_option("--min-p", settings.min_p,
                 "Sample only tokens with at least this fraction of the most likely token's "
                 "probability; default: what is recommended for the model, else 0")
      ->check(Between(0.0, 1.0));
  sub.add_option("--seed", settings.seed,
                 "Random seed; the same seed gives the same reply; default: 0");
  sub.add_option("--reasoning-effort", flags.effort, "Reasoning effort, if the model supports it")
      ->check(CLI::IsMember({"low", "medium", "high"}));
  sub.add_option("--json-schema", flags.schema_path,
                 "File with a JSON schema that replies must match");
}

std::vector<CLI::Option*> AddLocal(CLI::App& sub, ChatOptions& chat) {
  std::vector<CLI::Option*> options = {
      sub.add_option("--date", chat.date,
                     "Current date to put into the prompt, YYYY-MM-DD; default: none")
          ->check(Date()),
      sub.add_option("--context", chat.context,
                     "Context length, in tokens; default: the model's, at most 16384")
          ->check(Between(16, 1 << 27)),
      sub.add_option("--backend", chat.backend, "Compute backend")
          ->check(CLI::IsMember({"cpu", "reference"}))
          ->capture_default_str(),
      AddDevice(sub, chat.hardware.device),
      AddKvType(sub, chat.hardware.kv_code),
      AddNumerics(sub, chat.hardware.numerics),
      AddIsa(sub, chat.hardware),
      AddThreads(sub, chat.hardware),
      AddNuma(sub, chat.hardware.numa_nodes),
      AddWeights(sub, chat.hardware),
  };
  for (CLI::Option* option : AddPaging(sub, chat.hardware.paging)) options.push_back(option);
  return options;
}

}  // namespace

void AddRun(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* sub = app.add_subcommand("run", "Chat with a model in the terminal");
  sub->add_option("MODEL", flags->positional_model,
                  "Name that `hearth list` shows, or a model file or directory; with --server: a "
                  "model's name there");
  sub->add_option("PROMPT", flags->words,
                  "Message to answer before exiting; what is piped in is added to it. Default: "
                  "chat, or answer what is piped in");
  sub->add_option("--model", flags->model, "The same as MODEL; all words are the message then");
  CLI::Option* prompt = sub->add_option("--prompt", flags->prompt, "The same as PROMPT");
  sub->add_option("--system", flags->system, "System prompt");
  AddSampling(*sub, *flags);
  sub->add_option("--reasoning", flags->reasoning,
                  "Reasoning of the model: show it, fold it into one line, or hide it; default: "
                  "fold in a terminal, hide elsewhere")
      ->check(CLI::IsMember({"show", "fold", "hide"}));
  sub->add_flag("--plain", flags->is_plain,
                "Plain text for screen readers: no colours, no cursor movement, no line editing");
  sub->add_flag("--no-history", flags->has_no_history, "Do not keep the typed messages in a file");
  sub->add_option("--server", flags->server,
                  "URL of a running server that answers instead of this process")
      ->envname("HEARTH_SERVER");
  sub->add_option("--key-file", flags->key_path,
                  "File that contains only the server's API key; default: the key in "
                  "HEARTH_API_KEY");
  sub->add_option("--ca", flags->ca_path,
                  "Certificate of the authority to trust for https (PEM file)");
  const std::vector<CLI::Option*> local = AddLocal(*sub, flags->chat);
  sub->footer("Type /help in a chat for its commands. Set NO_COLOR to turn colours off.");
  sub->callback([&chosen, flags, prompt, local] {
    flags->has_prompt = prompt->count() > 0;
    for (const CLI::Option* option : local) {
      if (option->count() > 0) flags->local_only.push_back(option->get_name());
    }
    const bool has_model = !flags->model.empty() || !flags->positional_model.empty();
    if (!has_model && flags->server.empty()) throw CLI::RequiredError("MODEL");
    chosen = [flags] { return Run(*flags); };
  });
}

}  // namespace hearth
