// SPDX-License-Identifier: Apache-2.0
// A cache that lives through random histories and publishes them at real sockets, driven by
// kv_events_test.py: `start SEED`, `play STEPS` and `content` on standard input, a line each in
// reply.
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "events/zmq_publisher.h"
#include "testing/event_history.h"

namespace hearth {
namespace {

using testing::EventHistory;
using testing::HistoryLayout;

class Player {
 public:
  Player(const char* address, const char* replay) : address_(address), replay_(replay) {}

  // A process that begins anew at the same address.
  bool Start(uint64_t seed) {
    history_ = nullptr;
    publisher_ = nullptr;
    PublisherOptions options{.address = address_, .replay_address = replay_};
    options.wire = {.form = static_cast<EventForm>(seed % 3),
                    .tells_windows = seed % 4 != 0,
                    .hash_seed = seed + 1};
    options.max_queued = seed % 2 == 0 ? 65'536 : 8;
    options.beat_ms = 20;
    Result<std::unique_ptr<ZmqPublisher>> opened = ZmqPublisher::Listen(options);
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.status().message().c_str());
      return false;
    }
    publisher_ = *std::move(opened);
    wire_ = options.wire;
    layout_ = HistoryLayout(seed);
    history_ = std::make_unique<EventHistory>(seed, layout_, publisher_->watch());
    publisher_->Start("kv@player@" + std::to_string(seed));
    return true;
  }
  void Play(int steps) {
    for (int i = 0; i < steps; ++i) history_->Step();
  }
  // What a subscriber must know in the end: [group, hash, parent, [tokens]] each.
  void Tell() {
    history_->EndStep();
    const char* comma = "";
    std::printf("[");
    for (const auto& [id, block] : history_->Content()) {
      const auto& [group, key] = id;
      if (!IsTold(wire_, layout_, group)) continue;
      const bool is_first = block.first == BlockKey();
      std::printf("%s[%d,%s,%s,[", comma, group, Hash(key).c_str(),
                  is_first ? "null" : Hash(block.first).c_str());
      for (size_t i = 0; i < block.second.size(); ++i) {
        std::printf("%s%d", i == 0 ? "" : ",", block.second[i]);
      }
      std::printf("]]");
      comma = ",";
    }
    std::printf("]\n");
  }

 private:
  std::string Hash(const BlockKey& key) const {
    const uint64_t hash = WireHash(wire_, key);
    return wire_.form == EventForm::kSglang ? std::to_string(static_cast<int64_t>(hash))
                                            : std::to_string(hash);
  }
  const std::string address_, replay_;
  std::unique_ptr<ZmqPublisher> publisher_;
  std::unique_ptr<EventHistory> history_;
  WireOptions wire_;
  KvLayout layout_;
};

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  Player player(argv[1], argv[2]);
  std::string command;
  while (std::cin >> command) {
    uint64_t number = 0;
    if (command == "start" && std::cin >> number && player.Start(number)) {
      std::printf("started\n");
    } else if (command == "play" && std::cin >> number) {
      player.Play(static_cast<int>(number));
      std::printf("played\n");
    } else if (command == "content") {
      player.Tell();
    } else {
      return 1;
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc, argv); }
