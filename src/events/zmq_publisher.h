// SPDX-License-Identifier: Apache-2.0
// Publishes cached blocks over ZeroMQ as vLLM does: a PUB socket with (topic, number, batch), and a
// ROUTER socket that sends again what a subscriber missed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "events/event_log.h"
#include "events/event_queue.h"
#include "kv/block_watch.h"
namespace hearth {

struct PublisherOptions {
  std::string address;              // tcp://HOST:PORT
  std::string replay_address = {};  // empty: nothing is sent again
  WireOptions wire = {};
  size_t max_queued = 65'536;  // events between the engine and the publisher's thread
  int64_t beat_ms = 5'000;     // so long without a batch, an empty one is sent
};

struct PublisherCounts {
  EventCounts log;
  EventQueueCounts queue;
};

// Whether only this machine can reach it.
bool IsLocalAddress(const std::string& address);

// Thread: any.
class ZmqPublisher {
 public:
  // Takes the ports. kInvalid for what is no address, kIo when it cannot be had.
  static Result<std::unique_ptr<ZmqPublisher>> Listen(const PublisherOptions& options);
  // Publishes what waits, closes the sockets. Not before the engine that `watch` was given to.
  ~ZmqPublisher();

  BlockWatch& watch();
  // Publishes from now on, under this topic. Once.
  void Start(std::string topic);
  PublisherCounts counts() const;
  // As bound: with the port that was free where 0 was asked for.
  const std::string& address() const;
  const std::string& replay_address() const;  // empty: none

 private:
  struct Impl;
  explicit ZmqPublisher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
