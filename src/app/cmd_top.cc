// SPDX-License-Identifier: Apache-2.0
// hearth top: what a running server is doing, in a terminal.
#include <langinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "app/commands.h"
#include "app/flag_checks.h"
#include "app/server_key.h"
#include "base/mask_secrets.h"
#include "base/terminal.h"
#include "top/screen.h"
#include "top/source.h"
#include "top/status.h"
#include "top/view.h"

namespace hearth {
namespace {

using Steady = std::chrono::steady_clock;

struct TopFlags {
  std::string url, unix_path, key_path, ca_path;
  int control_port = 0;
  double interval_s = 1;
  bool is_once = false, is_json = false;
};

Result<ServerAddress> AddressOf(const TopFlags& flags) {
  ServerAddress address;
  address.url = "http://127.0.0.1:8080";
  if (!flags.unix_path.empty()) address.url = "http://localhost";
  if (flags.control_port > 0) address.url = Printf("http://127.0.0.1:%d", flags.control_port);
  if (!flags.url.empty()) address.url = flags.url;
  address.unix_path = flags.unix_path;
  address.ca_path = flags.ca_path;
  HEARTH_ASSIGN(address.key, ServerKey(flags.key_path));
  return address;
}

bool ShowsBlocks() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

// What is drawn with: the last answer, and what came before it.
class Picture {
 public:
  Picture(const ServerAddress& address, bool has_colours) {
    view_.where = MaskSecretValue(address.unix_path.empty() ? address.url : address.unix_path);
    view_.has_colours = has_colours;
    view_.has_blocks = ShowsBlocks();
  }
  void Take(const Json& json) {
    constexpr size_t kMaxHistory = 256;  // more than any terminal's columns that it gets
    status_ = ReadTopStatus(json);
    history_.push_back(status_.decode_per_s);
    if (history_.size() > kMaxHistory) history_.erase(history_.begin());
    view_.problem.clear();
    answered_ = Steady::now();
  }
  // The figures stay, and it is said that they are old.
  void Miss(const Status& why) {
    const std::chrono::duration<double> silent = Steady::now() - answered_;
    view_.problem = ShortTime(silent.count()) + " without an answer: " + why.message();
  }
  std::vector<std::string> Lines(ScreenSize size, std::string footer) {
    view_.columns = size.columns;
    view_.rows = size.rows;
    view_.history = history_;
    view_.footer = std::move(footer);
    return DrawTop(status_, view_);
  }

 private:
  TopView view_;
  TopStatus status_;
  std::vector<double> history_;
  Steady::time_point answered_ = Steady::now();
};

Status Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return Status();
  }
  return Error(Code::kIo, "cannot write to standard output");
}

// For files and pipes: one frame, or one line of JSON, after the other.
Status PrintFrames(const TopFlags& flags, StatusSource& source, Picture picture) {
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  while (true) {
    HEARTH_ASSIGN(const Json json, source.Ask());
    if (flags.is_json) {
      HEARTH_TRY(Print(JsonForTerminal(WriteJson(json)) + "\n"));
    } else {
      picture.Take(json);
      std::string frame;
      const int columns = is_terminal ? TerminalSize().columns : 80;
      for (const std::string& line : picture.Lines({columns, 0}, "")) frame += line + "\n";
      HEARTH_TRY(Print(frame + (flags.is_once ? "" : "\n")));
    }
    if (flags.is_once) return Status();
    std::this_thread::sleep_for(std::chrono::duration<double>(flags.interval_s));
  }
}

Status Live(const TopFlags& flags, StatusSource& source, Picture picture) {
  // The first answer before the screen is taken: a mistake is one plain line.
  HEARTH_ASSIGN(const Json first, source.Ask());
  picture.Take(first);
  HEARTH_ASSIGN(const std::unique_ptr<TopScreen> screen, TopScreen::Open());
  const auto interval =
      std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(flags.interval_s));
  const std::string footer = Printf("q quits, every %g s", flags.interval_s);
  Steady::time_point next = Steady::now() + interval;
  bool is_new = true;
  while (true) {
    if (is_new) HEARTH_TRY(screen->Show(picture.Lines(TerminalSize(), footer)));
    is_new = false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Steady::now()).count();
    if (left <= 0) {
      source.Begin();
      next = Steady::now() + interval;
      continue;
    }
    auto answer = source.Wait(screen->fds(), static_cast<int>(std::min<int64_t>(left, 1000)));
    if (answer.has_value()) {
      answer->ok() ? picture.Take(**answer) : picture.Miss(answer->status());
      is_new = true;
    }
    const TopScreen::News news = screen->Read();
    if (news == TopScreen::News::kQuit) return Status();
    if (news == TopScreen::News::kRedraw) is_new = true;
  }
}

Status Top(const TopFlags& flags) {
  HEARTH_ASSIGN(const ServerAddress address, AddressOf(flags));
  HEARTH_ASSIGN(const std::unique_ptr<StatusSource> source, StatusSource::Open(address));
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const char* no_colour = std::getenv("NO_COLOR");
  const bool has_colours = is_terminal && (no_colour == nullptr || no_colour[0] == '\0');
  Picture picture(address, has_colours);
  if (is_terminal && !flags.is_once && !flags.is_json) {
    return Live(flags, *source, std::move(picture));
  }
  return PrintFrames(flags, *source, std::move(picture));
}

}  // namespace

void AddTop(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* sub =
      app.add_subcommand("top", "Watch a running server's speed, queue, memory and requests");
  CLI::Option* url = sub->add_option("--url", flags->url,
                                     "URL of the server; default: http://127.0.0.1:8080. Needs an "
                                     "admin key if keys are configured");
  sub->add_option("--control-port", flags->control_port,
                  "The server's --control-port on this machine; needs no key")
      ->check(Between(1, 65535))
      ->excludes(url);
  sub->add_option("--unix", flags->unix_path, "The server's Unix socket");
  sub->add_option("--key-file", flags->key_path,
                  "File that contains only the API key; default: the key in HEARTH_API_KEY");
  sub->add_option("--ca", flags->ca_path,
                  "Certificate of the authority to trust for https (PEM file)");
  sub->add_option("--interval", flags->interval_s, "Time between updates, in seconds")
      ->check(Between(0.1, 3600.0))
      ->capture_default_str();
  sub->add_flag("--once", flags->is_once, "Print one screen as text and exit");
  sub->add_flag("--json", flags->is_json, "Print the JSON of GET /status, one line per update");
  sub->footer("Press q or Ctrl-C to quit, Ctrl-L to redraw. Set NO_COLOR to turn colours off.");
  sub->callback([&chosen, flags] { chosen = [flags] { return Top(*flags); }; });
}

}  // namespace hearth
