// SPDX-License-Identifier: Apache-2.0
// A server that answers in memory and does wrong what a test asks for, one fault a request.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hub/transport.h"
namespace hearth::testing {

struct Fault {
  long status = 0;               // instead of the file
  std::string retry_after = {};  // with it
  int64_t drop_after = -1;       // bytes, then the connection breaks
  bool stalls = false;           // no answer at all
  int64_t flip = -1;             // this byte of the answer
  int64_t resize = 0;            // the total that the answer claims, less the truth
  int64_t shift = 0;             // its first byte, less the one that was asked for
  int64_t cut = 0;               // bytes that the answer lacks, and says so
  int64_t extra = 0;             // bytes that it has too many
  bool ignores_range = false;
  FetchTrouble trouble = FetchTrouble::kNone;
};

class FakeTransport final : public Transport {
 public:
  std::map<std::string, std::string> files;  // URL to content; others are 404
  HttpHead head;                             // headers of every answer
  std::function<Fault(int number, const HttpFetch& fetch)> fault;
  std::vector<HttpFetch> requests;
  uint64_t bytes_sent = 0;

  void Begin(int slot, const HttpFetch& fetch, FetchSink& sink) override {
    EXPECT_EQ(pending_.count(slot), 0u);
    const Fault now = fault ? fault(static_cast<int>(requests.size()), fetch) : Fault();
    requests.push_back(fetch);
    pending_[slot] = {fetch, &sink, now};
  }
  void Cancel(int slot) override { pending_.erase(slot); }
  std::vector<FetchOutcome> Wait(std::chrono::milliseconds time) override {
    std::vector<FetchOutcome> outcomes;
    std::map<int, Pending> left;
    for (auto& [slot, pending] : std::exchange(pending_, {})) {
      if (pending.fault.stalls) {
        left[slot] = pending;
      } else {
        outcomes.push_back(Answer(slot, pending));
      }
    }
    pending_.merge(left);
    if (outcomes.empty()) std::this_thread::sleep_for(std::min(time, std::chrono::milliseconds(5)));
    return outcomes;
  }

 private:
  struct Pending {
    HttpFetch fetch;
    FetchSink* sink = nullptr;
    Fault fault;
  };
  FetchOutcome Answer(int slot, const Pending& pending) {
    const Fault& wrong = pending.fault;
    FetchOutcome outcome{.slot = slot, .trouble = wrong.trouble, .why = "as told"};
    if (wrong.trouble != FetchTrouble::kNone) return outcome;
    outcome.head = head;
    const auto file = files.find(pending.fetch.url);
    outcome.head.status = wrong.status != 0 ? wrong.status : (file == files.end() ? 404 : 200);
    outcome.head.retry_after = wrong.retry_after;
    std::string body = outcome.head.status == 200 ? file->second : "no";
    if (outcome.head.status == 200) Range(pending, body, outcome.head);
    if (outcome.head.status / 100 == 2) outcome.head.length = body.size();
    if (wrong.flip >= 0) body[static_cast<size_t>(wrong.flip) % body.size()] ^= 1;
    if (pending.fetch.is_head) body.clear();
    return Deliver(pending, body, std::move(outcome));
  }
  static void Range(const Pending& pending, std::string& body, HttpHead& head) {
    const Fault& wrong = pending.fault;
    const auto total = static_cast<int64_t>(body.size());
    if (!pending.fetch.first || wrong.ignores_range) return;
    head.status = 206;
    head.range_first =
        static_cast<uint64_t>(static_cast<int64_t>(*pending.fetch.first) + wrong.shift);
    head.range_total = static_cast<uint64_t>(total + wrong.resize);
    const uint64_t length = pending.fetch.last - *pending.fetch.first + 1;
    body = body.substr(std::min<uint64_t>(*head.range_first, body.size()), length);
    body.resize(body.size() - std::min(body.size(), static_cast<size_t>(wrong.cut)));
    body.append(static_cast<size_t>(wrong.extra), 'x');
  }
  FetchOutcome Deliver(const Pending& pending, std::string body, FetchOutcome outcome) {
    const bool drops = pending.fault.drop_after >= 0;
    if (drops) body.resize(std::min(body.size(), static_cast<size_t>(pending.fault.drop_after)));
    bool goes_on = pending.sink->OnHead(outcome.head);
    // In small pieces, as sockets do.
    for (size_t at = 0; goes_on && at < body.size(); at += 1000) {
      const std::string piece = body.substr(at, 1000);
      bytes_sent += piece.size();
      goes_on = pending.sink->OnBytes(std::as_bytes(std::span(piece)));
    }
    outcome.trouble = !goes_on ? FetchTrouble::kStopped
                      : drops  ? FetchTrouble::kInterrupted
                               : FetchTrouble::kNone;
    outcome.why = drops ? "connection reset" : "";
    return outcome;
  }
  std::map<int, Pending> pending_;
};

}  // namespace hearth::testing
