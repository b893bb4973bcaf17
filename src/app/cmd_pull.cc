// SPDX-License-Identifier: Apache-2.0
// hearth pull: a model by name, from the Hub or a URL, into the store on this machine.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/catalogue_table.h"
#include "app/commands.h"
#include "app/flag_checks.h"
#include "app/open_backend.h"
#include "app/print.h"
#include "hub/progress.h"
#include "hub/pull.h"

namespace hearth {
namespace {

struct PullFlags {
  PullWishes wishes;
  double stall_s = 30, retry_wait_s = 0.5;
  bool is_quiet = false, does_not_wait = false;
};

// On stderr, so that the path on stdout can be taken by a script.
class Screen final : public PullWatcher {
 public:
  explicit Screen(bool is_quiet) : is_quiet_(is_quiet), is_terminal_(isatty(STDERR_FILENO) != 0) {}
  void OnPlan(const Manifest& manifest) override {
    Manifest shown = manifest;
    constexpr size_t kCommit = 40, kEnough = 10;  // as git shortens them
    if (shown.revision.size() == kCommit) shown.revision.resize(kEnough);
    OnNote(Printf("downloading %s: %s from %s%s%s", manifest.name.c_str(),
                  HumanBytes(manifest.bytes()).c_str(), shown.source().c_str(),
                  manifest.licence.empty() ? "" : ", licence ", manifest.licence.c_str()));
    progress_.emplace(manifest.bytes(), is_terminal_, TerminalColumns(STDERR_FILENO));
  }
  void OnProgress(uint64_t bytes_here) override {
    if (!progress_ || is_quiet_) return;
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    const auto text = progress_->Update(now.count(), bytes_here);
    if (!text) return;
    PrintCodes(stderr, *text);
    std::fflush(stderr);
    is_on_bar_ = is_terminal_;
  }
  void OnNote(const std::string& note) override {
    if (is_quiet_) return;
    EndBar();
    PrintError("%s\n", note.c_str());
  }
  void EndBar() {
    if (is_on_bar_) PrintError("\n");
    is_on_bar_ = false;
  }

 private:
  const bool is_quiet_, is_terminal_;
  bool is_on_bar_ = false;  // the cursor is behind it
  std::optional<Progress> progress_;
};

Status Pull(PullFlags flags) {
  if (flags.wishes.what.empty()) {
    PrintCatalogue(UsableMemoryBytes());
    return Status();
  }
  // A file that may not grow further is a full disk, not the end of the program.
  ::signal(SIGXFSZ, SIG_IGN);
  PullWishes& wishes = flags.wishes;
  using std::chrono::milliseconds;
  wishes.policy.stall_time = milliseconds(static_cast<int64_t>(flags.stall_s * 1000));
  wishes.policy.retry.first_wait = milliseconds(static_cast<int64_t>(flags.retry_wait_s * 1000));
  wishes.waits_for_others = !flags.does_not_wait;
  wishes.usable_memory_bytes = UsableMemoryBytes();
  const Environment environment = ProcessEnvironment();
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(environment));
  HEARTH_ASSIGN(const HubAddress hub, FindHub(environment));
  HEARTH_ASSIGN(const std::unique_ptr<Transport> transport,
                OpenCurlTransport(wishes.policy.stall_time));
  Screen screen(flags.is_quiet);
  Result<Pulled> pulled = PullModel(*transport, places, hub, wishes, screen);
  screen.EndBar();
  HEARTH_TRY(pulled.status());
  if (!pulled->is_checked) {
    screen.OnNote(
        "the source gives no checksum: only the length was checked; --sha256 checks more");
  }
  if (!pulled->was_here) screen.OnNote("use it with `hearth run " + pulled->name + "`");
  PrintOut("{}\n", pulled->path);
  return Status();
}

void AddTuning(CLI::App& sub, PullFlags& flags) {
  DownloadPolicy& policy = flags.wishes.policy;
  sub.add_option("--connections", policy.num_connections, "Maximum number of connections at a time")
      ->check(Between(1, 32))
      ->capture_default_str();
  sub.add_option("--part-size", policy.part_bytes,
                 "Size of the parts that are downloaded and resumed, such as 64MiB; default: 32MiB")
      ->option_text("SIZE")
      ->transform(CLI::AsSizeValue(false))
      ->check(Between(uint64_t{4096}, uint64_t{1} << 30));
  sub.add_option("--stall-timeout", flags.stall_s,
                 "Time without a byte after which a connection is opened anew, in seconds")
      ->check(Between(0.1, 3600.0))
      ->capture_default_str();
  sub.add_option("--retries", policy.retry.max_retries,
                 "Maximum number of failed attempts in a row before giving up")
      ->check(Between(0, 1000))
      ->capture_default_str();
  sub.add_option("--retry-wait", flags.retry_wait_s,
                 "Time before the first retry, in seconds; doubled after every further failure")
      ->check(Between(0.001, 3600.0))
      ->capture_default_str();
}

}  // namespace

void AddPull(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PullFlags>();
  CLI::App* sub = app.add_subcommand(
      "pull", "Download a model by name, from the Hugging Face Hub or from a URL");
  sub->footer(
      "Without a model, lists the names that are known. The path of the model is printed on "
      "standard "
      "output.\nA download that was interrupted is resumed by the same command. HF_TOKEN is used "
      "for "
      "private and gated\nmodels, HF_ENDPOINT for a mirror; HEARTH_MODELS is the folder for "
      "models.");
  sub->add_option(
      "model", flags->wishes.what,
      "Name such as qwen3-8b, OWNER/REPO, OWNER/REPO:QUANT, OWNER/REPO@REVISION:FILE, or "
      "URL of a GGUF file");
  sub->add_option("--name", flags->wishes.name,
                  "Name in the store; default: the name given, or the name of the file");
  sub->add_option("--sha256", flags->wishes.sha256, "Expected checksum of a URL's file");
  sub->add_flag("--anyway", flags->wishes.ignores_memory,
                "Download a model even if it does not fit into this machine's memory");
  sub->add_flag("--no-wait", flags->does_not_wait,
                "Fail at once if another process is downloading the same model; default: wait");
  sub->add_flag("--quiet", flags->is_quiet, "Show no progress");
  AddTuning(*sub, *flags);
  sub->callback([&chosen, flags] { chosen = [flags] { return Pull(*flags); }; });
}

}  // namespace hearth
