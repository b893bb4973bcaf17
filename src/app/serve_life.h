// SPDX-License-Identifier: Apache-2.0
// How the process of `hearth serve` lives and ends: under a supervisor or alone, watched for
// progress, with words for whoever started it.
#pragma once
#include <signal.h>

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/http_server.h"
#include "server/observe/health_routes.h"
#include "server/observe/worker_facts.h"
#include "server/turns/flights.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct LifeFlags {
  bool has_no_supervisor = false;
  double stall_s = 60;  // without progress; the engine is called stalled after half of it
  bool reserves_kv = false;
  double notice_s = 0;  // from the signal to the drain
};
void AddLifeOptions(CLI::App& sub, LifeFlags& flags);

// Made first and destroyed last, so that even the end of everything else is watched.
// Thread: the main one.
class ServeLife {
 public:
  // The sockets that a supervisor holds, in the order it hands them on.
  enum class Door : unsigned char { kApi, kControl };

  // Blocks SIGINT, SIGTERM and SIGHUP for all threads to come and ignores SIGPIPE.
  static Result<std::unique_ptr<ServeLife>> Begin(const LifeFlags& flags);
  ~ServeLife();
  ServeLife(const ServeLife&) = delete;
  ServeLife& operator=(const ServeLife&) = delete;

  // This process is to be the supervisor. It has no threads yet.
  bool is_supervisor() const;
  // Listens there and runs workers until the end; returns only when that cannot be begun.
  // `control` may be null. `confine` is called when the sockets are open, before the first worker.
  Status Supervise(const HttpOptions& api, const HttpOptions* control, double drain_s,
                   const std::function<Status()>& confine);

  // From here on as the one that serves: a socket that the supervisor listens on, or -1.
  int listener(Door door) const;
  std::string secret() const;  // the same for all workers of a supervisor; empty without one
  FlightBook* flights();       // null without a supervisor
  const WorkerFacts& facts() const;
  HealthNotes notes() const;

  // Until Ready, SIGINT and SIGTERM end the process at once.
  void BeginLoading();
  // `is_stalled` is asked from now on until Forget.
  void Ready(std::function<bool()> is_stalled);
  const sigset_t& signals() const;
  // Tells the manager and whoever asks /readyz, and has the process end in the notice, `drain_s`
  // and a moment whatever happens. The second signal ends it at once. Returns after the notice,
  // while which requests are still to be taken.
  void BeginDrain(double drain_s);
  bool is_leaving() const;  // thread: any
  void Forget();

 private:
  struct Impl;
  explicit ServeLife(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
