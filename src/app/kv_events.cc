// SPDX-License-Identifier: Apache-2.0
#include "app/kv_events.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "app/flag_checks.h"
#include "base/terminal.h"

namespace hearth {

void AddEventOptions(CLI::App& sub, EventFlags& flags) {
  sub.add_option("--kv-events", flags.address,
                 "Address to publish cached blocks at over ZeroMQ, for routers, such as "
                 "tcp://127.0.0.1:5557; whoever can connect reads the token ids of prompts and "
                 "replies; default: none")
      ->option_text("tcp://HOST:PORT");
  sub.add_option("--kv-events-replay", flags.replay_address,
                 "Address where subscribers ask for KV events that they missed; default: none")
      ->option_text("tcp://HOST:PORT");
  sub.add_option("--kv-events-topic", flags.topic,
                 "Topic of KV events; default: kv@HOST:PORT@MODEL, as served");
  const std::map<std::string, EventForm> forms{{"vllm", EventForm::kVllm},
                                               {"vllm-maps", EventForm::kVllmMaps},
                                               {"sglang", EventForm::kSglang}};
  sub.add_option("--kv-events-form", flags.form,
                 "Wire form of KV events: vllm (arrays), vllm-maps (newer vLLM), or sglang; "
                 "default: vllm")
      ->type_name("FORM")
      ->transform(NamedValue(forms));
  const std::map<std::string, bool> groups{{"all", true}, {"full", false}};
  sub.add_option("--kv-events-groups", flags.tells_windows,
                 "Layers whose blocks KV events tell of: all, or full (full attention alone, for "
                 "routers that know no groups); default: all")
      ->type_name("GROUPS")
      ->transform(NamedValue(groups));
}

Result<std::unique_ptr<ZmqPublisher>> OpenEvents(const EventFlags& flags, bool has_one) {
  if (flags.address.empty()) {
    if (flags.replay_address.empty()) return std::unique_ptr<ZmqPublisher>();
    return Error(Code::kInvalid, "--kv-events-replay needs --kv-events");
  }
  if (!has_one) {
    return Error(Code::kInvalid,
                 "--kv-events needs one model: its numbers count the blocks of one cache");
  }
  for (const std::string& address : {flags.address, flags.replay_address}) {
    if (address.empty() || IsLocalAddress(address)) continue;
    PrintError("warning: %s: whoever can connect reads the token ids of all prompts and replies\n",
               address.c_str());
  }
  PublisherOptions options;
  options.address = flags.address;
  options.replay_address = flags.replay_address;
  options.wire.form = flags.form;
  options.wire.tells_windows = flags.tells_windows;
  return ZmqPublisher::Listen(options);
}

void StartEvents(ZmqPublisher& publisher, const EventFlags& flags, const ServedAt& at) {
  const std::string topic = !flags.topic.empty()
                                ? flags.topic
                                : "kv@" + at.host + ":" + std::to_string(at.port) + "@" + at.model;
  publisher.Start(topic);
  const std::string replay = publisher.replay_address();
  PrintError("KV events at %s, topic %s%s%s\n", publisher.address().c_str(), topic.c_str(),
             replay.empty() ? "" : ", replays at ", replay.c_str());
}

void WatchEvents(const ZmqPublisher& publisher, ServerMetrics& metrics) {
  metrics.WatchEvents([&publisher] {
    const PublisherCounts from = publisher.counts();
    KvEventCounts counts;
    counts.batches = from.log.num_batches;
    counts.stored = from.log.num_stored;
    counts.removed = from.log.num_removed;
    counts.dropped = from.queue.num_dropped;
    counts.retold = from.queue.num_retold;
    counts.replays = from.log.num_replays;
    counts.full_replays = from.log.num_full_replays;
    counts.queued = from.queue.num_queued;
    counts.blocks = from.log.num_blocks;
    return counts;
  });
}

}  // namespace hearth
