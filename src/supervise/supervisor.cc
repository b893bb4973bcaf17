// SPDX-License-Identifier: Apache-2.0
#include "supervise/supervisor.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "base/mask_secrets.h"
#include "base/terminal.h"
#include "platform/file.h"
#include "platform/notify.h"
#include "supervise/shared_page.h"
#include "supervise/worker_seat.h"

namespace hearth {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A line for people, unless whoever reads stderr has stopped reading: nothing here may wait.
void Say(const std::string& text) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) <= 0 || (out.revents & POLLOUT) == 0) return;
  const std::string line = ForTerminal(MaskSecrets("hearth: " + text + "\n"));
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// This process's environment for the worker: the service manager is told by the supervisor.
std::vector<std::string> WorkerEnvironment(const std::string& seat) {
  std::vector<std::string> out;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view line = *each;
    if (!line.starts_with("NOTIFY_SOCKET=")) out.emplace_back(line);
  }
  out.push_back(std::string(WorkerSeat::kVariable) + "=" + seat);
  return out;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

void Close(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// Between fork and exec; nothing here allocates.
[[noreturn]] void BecomeWorker(pid_t parent, const char* program, char* const* words,
                               char* const* environment, const std::vector<int>& kept) {
  // Keys of the terminal are for the supervisor, who passes them on: both would be twice.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before it was watched
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // A process group in the background may write to its terminal even with `stty tostop`.
  ::signal(SIGTTOU, SIG_IGN);
  for (const int descriptor : kept) {
    if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, 0);
  }
  ::execve(program, words, environment);
  ::_exit(127);
}

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, std::unique_ptr<SharedPage> page, int signals)
      : options_(options),
        listeners_(options.listeners),
        page_(std::move(page)),
        signals_(signals),
        tick_s_(std::clamp(options.stall_s / 8, 0.02, 1.0)) {}
  ~Supervisor() {
    CloseListeners();
    Close(said_);
    ::close(signals_);
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<WorkerEnd> Run();

 private:
  Status Start();
  void Wait();
  void OnSignals();
  void OnSignal(int signal);
  void OnSaid();
  void OnTick();
  void Reap();
  void OnDeath(int status);
  void Stop(int signal);
  void Kill(const std::string& why);
  void CloseListeners() {
    if (options_.leave && !std::exchange(has_left_, true)) options_.leave();
    for (int& listener : listeners_) Close(listener);
  }

  const SupervisorOptions options_;
  std::vector<int> listeners_;
  bool has_left_ = false;
  const std::unique_ptr<SharedPage> page_;
  const int signals_;
  const double tick_s_;
  RestartPolicy policy_;
  PoisonList poison_;
  WorkerHistory history_;
  std::optional<WorkerEnd> end_;  // of the program

  pid_t worker_ = 0;  // 0: none runs
  int said_ = -1;     // the end of its pipe
  std::string saying_;
  bool is_ready_ = false, was_told_ready_ = false;
  double since_s_ = 0;  // start or ready
  double start_at_s_ = 0;
  uint64_t last_beats_ = 0;
  int num_silent_ticks_ = 0;
  double next_tick_s_ = 0;
  int stop_signal_ = 0;  // 0: nobody asked for the end
  double kill_at_s_ = INFINITY;
};

Status Supervisor::Start() {
  int pipe[2] = {-1, -1};
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Error(Code::kIo, "starting the worker: %s", std::strerror(errno));
  }
  page_->Reset(history_, poison_.entries(Now()));
  std::vector<std::string> words = options_.arguments.empty() ? OwnArguments() : options_.arguments;
  std::vector<std::string> environment =
      WorkerEnvironment(WorkerSeat::AsText({page_->descriptor(), pipe[1], listeners_}));
  const std::vector<char*> argv = Pointers(words), envp = Pointers(environment);
  std::vector<int> kept = listeners_;
  kept.push_back(page_->descriptor());
  kept.push_back(pipe[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) BecomeWorker(parent, options_.program.c_str(), argv.data(), envp.data(), kept);
  const int error = errno;
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    return Error(Code::kIo, "starting the worker: %s", std::strerror(error));
  }
  ::setpgid(child, child);  // both sides do it, so that neither waits for the other
  Close(said_);
  said_ = pipe[0];
  saying_.clear();
  worker_ = child;
  is_ready_ = false;
  since_s_ = Now();
  last_beats_ = 0;
  num_silent_ticks_ = 0;
  next_tick_s_ = since_s_ + tick_s_;
  return Status();
}

Result<WorkerEnd> Supervisor::Run() {
  HEARTH_TRY(Start());
  ::malloc_trim(0);  // reading the flags took more than will ever be needed again
  while (!end_) {
    Wait();
    if (end_ || worker_ != 0 || Now() < start_at_s_) continue;
    const Status status = Start();
    if (status.ok()) continue;
    Say(status.message());  // too many processes, or no memory: that passes
    start_at_s_ = Now() + 1;
  }
  return *end_;
}

// For something to happen, and lets it happen.
void Supervisor::Wait() {
  const double until = worker_ != 0 ? next_tick_s_ : start_at_s_;
  const double wait_s = std::clamp(until - Now(), 0.0, 60.0);
  pollfd watched[2] = {{signals_, POLLIN, 0}, {said_, POLLIN, 0}};
  ::poll(watched, 2, static_cast<int>(std::ceil(wait_s * 1000)));
  if ((watched[1].revents & (POLLIN | POLLHUP)) != 0) OnSaid();
  if ((watched[0].revents & POLLIN) != 0) OnSignals();
  if (worker_ != 0 && Now() >= next_tick_s_) OnTick();
}

void Supervisor::OnSignals() {
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    OnSignal(static_cast<int>(info.ssi_signo));
  }
  Reap();
}

void Supervisor::OnSignal(int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGHUP) {
    if (worker_ != 0) ::kill(worker_, signal);
    return;
  }
  Stop(signal);
}

void Supervisor::Stop(int signal) {
  if (stop_signal_ == 0) {
    stop_signal_ = signal;
    CloseListeners();  // so that the worker's own are the last, and new clients find no door
    kill_at_s_ = Now() + options_.drain_s + 20;
  }
  if (worker_ != 0) {
    ::kill(worker_, signal);
  } else {
    end_ = WorkerEnd{.by_signal = true, .number = signal};
  }
}

void Supervisor::OnSaid() {
  char buffer[256];
  ssize_t got = 0;
  while ((got = ::read(said_, buffer, sizeof buffer)) > 0) {
    saying_.append(buffer, static_cast<size_t>(got));
  }
  if (got == 0) Close(said_);  // its end is near
  for (size_t end = 0; (end = saying_.find('\n')) != std::string::npos;) {
    const std::string line = saying_.substr(0, end);
    saying_.erase(0, end + 1);
    const bool is_ready = line == "READY=1";
    if (is_ready && !is_ready_) {
      if (was_told_ready_) Say(Printf("the new worker is ready after %.1f s", Now() - since_s_));
      is_ready_ = true;
      since_s_ = Now();
    }
    if (is_ready && was_told_ready_) continue;  // for the manager the service never went away
    was_told_ready_ |= is_ready;
    const Status status = NotifyManager(line);
    if (!status.ok()) Say("warning: " + status.message());
  }
}

// Counts ticks and not time: where this process did not run either, the worker is not to blame.
void Supervisor::OnTick() {
  next_tick_s_ = Now() + tick_s_;
  if (Now() >= kill_at_s_) return Kill("it did not end in time");
  const uint64_t beats = page_->num_beats();
  num_silent_ticks_ = beats == last_beats_ ? num_silent_ticks_ + 1 : 0;
  last_beats_ = beats;
  if (num_silent_ticks_ * tick_s_ >= options_.stall_s) {
    Kill(Printf("it gave no sign of life for %.0f s", options_.stall_s));
  }
}

void Supervisor::Kill(const std::string& why) {
  Say(Printf("killing the worker (process %d): %s", static_cast<int>(worker_), why.c_str()));
  ::kill(worker_, SIGKILL);  // works on one that is stopped, too
  num_silent_ticks_ = 0;
}

void Supervisor::Reap() {
  int status = 0;
  pid_t dead = 0;
  while ((dead = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (dead == worker_) OnDeath(status);
  }
}

void Supervisor::OnDeath(int status) {
  if (said_ >= 0) OnSaid();  // its last words
  WorkerEnd end;
  end.was_ready = is_ready_;
  end.by_signal = WIFSIGNALED(status);
  end.number = end.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
  end.lived_s = Now() - since_s_;
  const pid_t pid = std::exchange(worker_, 0);
  poison_.OnLanded(page_->landed());
  const std::vector<RequestDigest> in_flight = page_->in_flight();
  const std::optional<double> wait = policy_.OnEnd(end);
  if (stop_signal_ != 0 || !wait) {
    end_ = end;
    return;
  }
  poison_.OnDeath(in_flight, Now());
  ++history_.num_restarts;
  history_.last_by_signal = end.by_signal;
  history_.last_number = end.number;
  history_.last_end_s = std::time(nullptr);
  start_at_s_ = Now() + *wait;
  Say(
      Printf("the worker (process %d) ended after %.1f s: %s; %zu requests were running; starting "
             "another%s",
             static_cast<int>(pid), end.lived_s, Describe(end.by_signal, end.number).c_str(),
             in_flight.size(), *wait > 0 ? Printf(" in %.2f s", *wait).c_str() : ""));
}

}  // namespace

std::vector<std::string> OwnArguments() {
  std::vector<std::string> out;
  const std::string text = ReadKernelText("/proc/self/cmdline", size_t{4} << 20);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<WorkerEnd> Supervise(const SupervisorOptions& options) {
  const sigset_t set = Signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  const int signals = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return Error(Code::kIo, "signalfd: %s", std::strerror(errno));
  Result<std::unique_ptr<SharedPage>> page = SharedPage::Make();
  if (!page.ok()) {
    ::close(signals);
    return std::move(page).status();
  }
  return Supervisor(options, *std::move(page), signals).Run();
}

void EndLike(const WorkerEnd& end) {
  if (!end.by_signal) std::exit(end.number);
  // The worker has left its core, if any.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(end.number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, end.number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(end.number);
  std::_Exit(128 + end.number);
}

}  // namespace hearth
