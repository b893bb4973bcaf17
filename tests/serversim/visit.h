// SPDX-License-Identifier: Apache-2.0
// One visitor at its socket: sends, reads, judges what it is told, asks on.
#pragma once
#include <cstdint>
#include <deque>
#include <string>

#include "http_answer.h"
#include "play.h"
#include "sim_server.h"
namespace hearth::testing {

// Thread: the one that plays.
class Visit {
 public:
  Visit(const Visitor& visitor, int number, SimServer& server, const std::string& name,
        PlayCounts& counts);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  // One look at its socket.
  void Tick();
  int64_t next_us() const { return next_us_; }
  bool is_done() const { return is_done_; }
  const std::string& failure() const { return failure_; }
  // Whoever is not done by now never will be.
  void GiveUp();

 private:
  struct Pending {
    Ask ask;
    int64_t sent_us = -1;  // its last byte
  };
  bool Connect();
  void Send();
  void Read();
  void Leave();
  void OnClosed();
  void Take(const HttpAnswer& answer);
  void JudgeTurn(const Ask& ask, const HttpAnswer& answer);
  void JudgeStored(const Ask& ask, const HttpAnswer& answer);
  void JudgeRefusal(const Ask& ask, const HttpAnswer& answer);
  void JudgeText(const Ask& ask, const Understood& heard, bool is_whole);
  void FollowUp(const Ask& ask, const Understood& heard);
  void Queue(Ask ask);
  bool MayFail() const;
  bool MayLose() const;
  const std::string& key(const Ask& ask) const;
  void Fail(const std::string& what);

  const Visitor& visitor_;
  const int number_;
  SimServer& server_;
  const std::string name_;
  PlayCounts& counts_;
  SimRandom random_;
  int socket_ = -1;
  int64_t next_us_, began_us_;
  std::deque<Ask> unasked_;
  std::deque<Pending> pending_;  // sent, or being sent
  std::string out_;              // bytes that are still to be sent
  bool is_cut_ = false;          // it cannot send any more
  bool is_done_ = false;
  AnswerReader reader_;
  std::string failure_;
};

}  // namespace hearth::testing
