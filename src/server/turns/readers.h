// SPDX-License-Identifier: Apache-2.0
// The threads that read requests, and who is read by which: small bodies by quick readers, at the
// server's own priority; large ones, and those of clients whose bodies took much time lately, by
// patient readers that use what the engine and the others leave.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "server/access/client.h"
#include "server/turns/workers.h"
namespace hearth {

// Processor time that clients used lately: what is a second old counts half.
// Thread: any.
class ReadingCosts {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // More than a busy client's small requests take (500 a second of 0.2 ms each come to 0.14), and
  // one hostile schema of the worst kind.
  static constexpr double kMuch = 0.25;
  void Add(const std::string& client, double seconds, Time now);
  double recent(const std::string& client, Time now) const;
  size_t size() const;

 private:
  // Beyond, those who used little are forgotten.
  static constexpr size_t kMaxClients = 4096;
  struct Cost {
    double seconds = 0;
    Time at;
    double Decayed(Time now) const;
  };
  mutable Mutex mu_;
  std::unordered_map<std::string, Cost> costs_ HEARTH_GUARDED_BY(mu_);
};

struct ReaderOptions {
  size_t max_queued = 1024;
  // 64 KiB are read in a millisecond or two, and most chats are shorter.
  size_t large_bytes = size_t{64} << 10;
  double much_s = ReadingCosts::kMuch;
  int num_quick = 0, num_patient = 0;  // 0: from the processors there are
};

// Thread: any.
class Readers {
 public:
  explicit Readers(const ReaderOptions& options);
  ~Readers();  // stops
  // `work` reads a body of so many bytes. False when too many wait already.
  bool Offer(const std::string& client, size_t bytes, Workers::Work work);
  // Runs what is queued, then joins.
  void Stop();

 private:
  void ReadSmall(const std::string& client, const Workers::Work& work);

  const ReaderOptions options_;
  ReadingCosts costs_;
  Workers quick_, patient_;
};

}  // namespace hearth
