// SPDX-License-Identifier: Apache-2.0
#include "server/turns/readers.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "server/access/account.h"

namespace hearth {
namespace {

using Steady = std::chrono::steady_clock;

// A tenth of a core against threads that want all of it: a large body is late beside a busy engine,
// and still read. At 19 it would be a hundredth.
constexpr int kPatience = 10;

int Cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// Two at least, so that nobody waits behind the one client who keeps a reader busy.
WorkerOptions Quick(const ReaderOptions& options) {
  const int threads = options.num_quick > 0 ? options.num_quick : std::clamp(Cores() / 2, 2, 8);
  return {threads, options.max_queued, 0, nullptr};
}

// Two at least, as above; beyond, never every core: what they share with the others is caches and
// memory, too.
WorkerOptions Patient(const ReaderOptions& options) {
  const int threads = options.num_patient > 0 ? options.num_patient : std::clamp(Cores() / 2, 2, 8);
  return {threads, options.max_queued, kPatience, nullptr};
}

}  // namespace

double ReadingCosts::Cost::Decayed(Time now) const {
  return seconds * std::exp2(-std::chrono::duration<double>(now - at).count());
}

void ReadingCosts::Add(const std::string& client, double seconds, Time now) {
  const MutexLock lock(mu_);
  // Those who used much cannot be many: they used the time that has passed.
  if (costs_.size() >= kMaxClients && !costs_.contains(client)) {
    std::erase_if(costs_, [now](const auto& entry) { return entry.second.Decayed(now) < kMuch; });
  }
  Cost& cost = costs_[client];
  cost = {cost.Decayed(now) + seconds, now};
}

double ReadingCosts::recent(const std::string& client, Time now) const {
  const MutexLock lock(mu_);
  const auto found = costs_.find(client);
  return found == costs_.end() ? 0 : found->second.Decayed(now);
}

size_t ReadingCosts::size() const {
  const MutexLock lock(mu_);
  return costs_.size();
}

Readers::Readers(const ReaderOptions& options)
    : options_(options), quick_(Quick(options)), patient_(Patient(options)) {}

Readers::~Readers() { Stop(); }

// The quick ones first: they hand on.
void Readers::Stop() {
  quick_.Stop();
  patient_.Stop();
}

bool Readers::Offer(const std::string& client, size_t bytes, Workers::Work work) {
  // Large ones have a turn of their own: behind a proxy many people are one client, and the small
  // requests among them must not wait for somebody's large ones. They do not count as time used
  // either, being read with patience in any case.
  if (bytes > options_.large_bytes) return patient_.Offer(client + " large", std::move(work));
  // Asked when its turn comes: what was sent together must not be let in together.
  return quick_.Offer(client, [this, client, work = std::move(work)]() mutable {
    if (costs_.recent(client, Steady::now()) < options_.much_s) return ReadSmall(client, work);
    patient_.Post(client, [this, client, work = std::move(work)] { ReadSmall(client, work); });
  });
}

void Readers::ReadSmall(const std::string& client, const Workers::Work& work) {
  const double began = ThreadSeconds();
  work();
  costs_.Add(client, ThreadSeconds() - began, Steady::now());
}

}  // namespace hearth
