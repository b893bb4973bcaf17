// SPDX-License-Identifier: Apache-2.0
// What is asked of a fleet: chats by parameters, or requests that were recorded. Of a prompt only
// what is alike in others matters, so its content is names and not text.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "sim/random.h"
namespace hearth {

// What stands at each position of a prompt and its reply. Two of them are alike up to where their
// names begin to differ, and never after it.
struct FleetContent {
  uint64_t app = 0,
           session = 0;  // positions below `shared` are the app's, the others the session's
  int shared = 0;
  // Of a recorded request instead: a name for each `unit` positions and all before them. Positions
  // beyond are the session's.
  std::shared_ptr<const std::vector<uint64_t>> names = {};
  int unit = 0;

  // The name of the page [index * page, (index + 1) * page) and of all before it.
  uint64_t Page(int index, int page) const;
  // For a replica that wants tokens, of [0, vocab).
  Token At(int position, int vocab) const;
};

struct FleetAsk {
  int64_t at_us = 0;
  uint64_t key = 0;  // the session key that a balancer hashes
  FleetContent content;
  int prompt = 0, reply = 0;  // tokens
  int chat = -1, turn = 0;    // of a chat that goes on after the reply; -1: recorded
};

// People who come, chat, and leave. Lengths are means of random ones.
struct FleetChats {
  double rate = 1;  // requests a second, over all
  int64_t requests = 10'000;
  double turns = 5;                               // of a chat
  int message = 150, reply = 250, system = 1000;  // tokens
  int apps = 20;        // with a system prompt each; a few have most of the chats
  double think_s = 30;  // between a reply's end and the next message
  uint64_t seed = 1;
};

// Where asks come from. Next and After have times that only grow, when asked with such.
class FleetLoad {
 public:
  explicit FleetLoad(const FleetChats& chats);
  // Recorded ones, sorted by time.
  explicit FleetLoad(std::vector<FleetAsk> recorded);

  // The next that comes whatever the fleet does; absent: there is none.
  std::optional<FleetAsk> Next();
  // What follows when a reply has ended; absent: the chat is over, or was recorded.
  std::optional<FleetAsk> After(const FleetAsk& ask, int64_t ended_us);
  int64_t total() const { return total_; }

 private:
  FleetAsk Turn(int chat, int turn, int history, int64_t at_us);
  FleetChats chats_;
  std::vector<FleetAsk> recorded_;
  std::vector<double> app_shares_;  // cumulative
  size_t next_recorded_ = 0;
  SimRandom random_{1};
  int64_t clock_us_ = 0, begun_ = 0, total_ = 0;
  int num_chats_ = 0;
};

// A trace in Mooncake's form: a line of JSON for each request with "timestamp" (ms),
// "input_length", "output_length" and "hash_ids", one for each 512 tokens and all before them. It
// names no sessions: the key is the second of the ids, or the only one.
Result<std::vector<FleetAsk>> ReadMooncake(std::string_view text);

// The log of `hearth serve --log`. It has no text and no session: a request whose prompt was partly
// found in a cache goes on with the chat of its key that it can be the next turn of; else what was
// found is taken for its key's preamble.
Result<std::vector<FleetAsk>> ReadRequestLog(std::string_view text);

}  // namespace hearth
