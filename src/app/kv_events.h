// SPDX-License-Identifier: Apache-2.0
// KV events of `hearth serve`: its flags, and the publisher put together with the rest.
#pragma once
#include <memory>
#include <string>

#include "base/result.h"
#include "events/zmq_publisher.h"
#include "server/observe/metrics.h"
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct EventFlags {
  std::string address, replay_address, topic;  // empty: none; the topic's: from what is served
  EventForm form = EventForm::kVllm;
  bool tells_windows = true;
};
void AddEventOptions(CLI::App& sub, EventFlags& flags);

// Null without an address. `has_one`: one model is served.
Result<std::unique_ptr<ZmqPublisher>> OpenEvents(const EventFlags& flags, bool has_one);

// Where the API is, for the topic.
struct ServedAt {
  std::string host;
  int port = 0;
  std::string model;
};
void StartEvents(ZmqPublisher& publisher, const EventFlags& flags, const ServedAt& at);
void WatchEvents(const ZmqPublisher& publisher, ServerMetrics& metrics);

}  // namespace hearth
