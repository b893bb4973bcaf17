// SPDX-License-Identifier: Apache-2.0
#include "app/serve_life.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "app/flag_checks.h"
#include "base/terminal.h"
#include "platform/notify.h"
#include "platform/stacks.h"
#include "server/access/request_digest.h"
#include "supervise/end_on_signal.h"
#include "supervise/progress_watch.h"
#include "supervise/supervisor.h"
#include "supervise/worker_seat.h"

namespace hearth {
namespace {

// In the supervisor's page, where it outlives this process.
class PageFlight final : public Flight {
 public:
  PageFlight(SharedPage& page, int place) : page_(page), place_(place) {}
  ~PageFlight() override { page_.End(place_.exchange(SharedPage::kNoPlace), false); }
  void Land() override { page_.End(place_.exchange(SharedPage::kNoPlace), true); }

 private:
  SharedPage& page_;
  std::atomic<int> place_;
};

class PageBook final : public FlightBook {
 public:
  explicit PageBook(SharedPage& page) : page_(page) {}
  std::unique_ptr<Flight> Begin(std::string_view owner, std::string_view path,
                                std::string_view body) override {
    const RequestDigest digest = DigestOfRequest(owner, path, body);
    if (page_.IsRefused(digest)) return nullptr;
    return std::make_unique<PageFlight>(page_, page_.Begin(digest));
  }

 private:
  SharedPage& page_;
};

WorkerFacts FactsFrom(const WorkerHistory& history) {
  WorkerFacts facts;
  facts.is_supervised = true;
  facts.num_restarts = history.num_restarts;
  if (history.num_restarts == 0) return facts;
  facts.last_end = Describe(history.last_by_signal, history.last_number);
  facts.last_end_s = history.last_end_s;
  return facts;
}

void TellStacks(const std::string& why) {
  PrintError("hearth: %s; stacks of all threads:\n", why.c_str());
  WriteStacks(STDERR_FILENO);
}

void End() {
  PrintError("hearth: giving up; exit code %d\n", kExitStalled);
  ::_exit(kExitStalled);
}

}  // namespace

void AddLifeOptions(CLI::App& sub, LifeFlags& flags) {
  sub.add_flag("--no-supervisor", flags.has_no_supervisor,
               "Serve in the process that was started, for debuggers; by default a small process "
               "above it holds the sockets and starts it again when it dies");
  sub.add_option("--stall-limit", flags.stall_s,
                 "Restart when the engine makes no progress for this many seconds although there "
                 "is work")
      ->check(Between(1.0, 86400.0))
      ->capture_default_str();
  sub.add_option("--drain-notice", flags.notice_s,
                 "Time at shutdown during which /readyz and the agent check already say that the "
                 "server is leaving while requests are still taken, in seconds; more than a "
                 "balancer needs to notice")
      ->check(Between(0.0, 3600.0))
      ->capture_default_str();
  sub.add_flag("--reserve-kv", flags.reserves_kv,
               "Take all memory of the KV cache at the start, so that too little of it is an error "
               "then and not under load");
}

struct ServeLife::Impl {
  LifeFlags flags;
  sigset_t signals{};
  std::unique_ptr<WorkerSeat> seat;  // null: alone
  std::optional<PageBook> book;
  WorkerFacts facts;
  std::optional<EndOnSignal> loading;
  std::unique_ptr<ProgressWatch> watch;
  std::atomic<bool> is_leaving{false};

  // Where there is no /proc there is no way to start this program again.
  bool is_supervisor() const {
    return seat == nullptr && !flags.has_no_supervisor && ::access("/proc/self/exe", X_OK) == 0;
  }
  void StartWatch() {
    ProgressOptions options;
    options.limit_s = flags.stall_s / 2;  // the engine's own limit is the other half
    options.look_every_s = std::clamp(flags.stall_s / 32, 0.05, 1.0);
    if (seat != nullptr) options.beat = [&page = seat->page()] { page.Beat(); };
    options.tell = TellStacks;
    options.end = End;
    watch = std::make_unique<ProgressWatch>(std::move(options));
  }
  // To systemd or another manager, if one started this program. Serving goes on without it.
  void TellManager(const char* state) const {
    if (seat != nullptr) return seat->Tell(state);
    const Status status = NotifyManager(state);
    if (!status.ok()) PrintError("warning: %s\n", status.message().c_str());
  }
};

Result<std::unique_ptr<ServeLife>> ServeLife::Begin(const LifeFlags& flags) {
  auto impl = std::make_unique<Impl>();
  impl->flags = flags;
  HEARTH_ASSIGN(impl->seat, WorkerSeat::Take());
  // A reader of the log that has gone must not take the server along.
  ::signal(SIGPIPE, SIG_IGN);
  impl->signals = BlockSignals({SIGINT, SIGTERM, SIGHUP});
  if (!impl->is_supervisor()) {
    InstallCrashReports(kExitFileLost);
    if (impl->seat != nullptr) {
      impl->facts = FactsFrom(impl->seat->page().history());
      impl->book.emplace(impl->seat->page());
    }
  }
  return std::unique_ptr<ServeLife>(new ServeLife(std::move(impl)));
}

ServeLife::ServeLife(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ServeLife::~ServeLife() = default;

bool ServeLife::is_supervisor() const { return impl_->is_supervisor(); }

Status ServeLife::Supervise(const HttpOptions& api, const HttpOptions* control, double drain_s,
                            const std::function<Status()>& confine) {
  SupervisorOptions options;
  HEARTH_ASSIGN(const int api_listener, HttpServer::OpenListener(api));
  options.listeners = {api_listener, -1};
  if (control != nullptr) {
    HEARTH_ASSIGN(options.listeners[1], HttpServer::OpenListener(*control));
  }
  HEARTH_TRY(confine());
  options.stall_s = impl_->flags.stall_s;
  options.drain_s = impl_->flags.notice_s + drain_s;
  if (!api.unix_path.empty()) options.leave = [&api] { ::unlink(api.unix_path.c_str()); };
  Result<WorkerEnd> end = hearth::Supervise(options);
  HEARTH_TRY(end.status());
  EndLike(*end);
}

int ServeLife::listener(Door door) const {
  return impl_->seat == nullptr ? -1 : impl_->seat->listener(static_cast<size_t>(door));
}

FlightBook* ServeLife::flights() { return impl_->book ? &*impl_->book : nullptr; }

std::string ServeLife::secret() const {
  return impl_->seat == nullptr ? std::string() : impl_->seat->page().secret();
}

const WorkerFacts& ServeLife::facts() const { return impl_->facts; }

HealthNotes ServeLife::notes() const {
  return {AsLine(impl_->facts), [watch = impl_->watch.get()] { return watch->is_wedged(); },
          [impl = impl_.get()] { return impl->is_leaving.load(); }};
}

void ServeLife::BeginLoading() {
  impl_->StartWatch();
  impl_->loading.emplace();
}

void ServeLife::Ready(std::function<bool()> is_stalled) {
  impl_->loading.reset();
  impl_->watch->Watch(std::move(is_stalled));
  impl_->TellManager("READY=1");
}

const sigset_t& ServeLife::signals() const { return impl_->signals; }

void ServeLife::BeginDrain(double drain_s) {
  impl_->is_leaving = true;
  impl_->TellManager("STOPPING=1");
  impl_->watch->EndWithin(impl_->flags.notice_s + drain_s + 10);
  UnblockSignals({SIGINT, SIGTERM});  // whoever asks twice will not wait
  std::this_thread::sleep_for(std::chrono::duration<double>(impl_->flags.notice_s));
}

bool ServeLife::is_leaving() const { return impl_->is_leaving; }

void ServeLife::Forget() { impl_->watch->Forget(); }

}  // namespace hearth
