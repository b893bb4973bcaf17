// SPDX-License-Identifier: Apache-2.0
#include "server/clients.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/event_loop.h"
#include "server/tally.h"
#include "server/wire.h"

namespace hearth {
namespace {

class ClientRun;

// One connection; at most one request at a time.
class Client final : public Watcher {
 public:
  Client(ClientRun& run, int number) : run_(run), number_(number) {}
  ~Client() override { Close(); }
  void Ask(int prompt);
  void OnSocket(uint32_t epoll_events) override;

 private:
  void Close();
  void Write();
  void Read();
  void Done(Reply reply);
  Reply Heard() const;

  ClientRun& run_;
  const int number_;
  int fd_ = -1, prompt_ = 0;
  bool is_busy_ = false;
  std::string out_;
  AnswerReader answer_;
  double asked_s_ = 0, first_s_ = 0;
};

class ClientRun {
 public:
  explicit ClientRun(const ClientOptions& options)
      : options_(options), random_(options.seed), tally_(options.answer_tokens) {
    for (int i = 0; i < options.num_prompts; ++i) {
      std::vector<int> ids(static_cast<size_t>(options.prompt_tokens));
      for (int& id : ids) {
        id = static_cast<int>(random_() % static_cast<uint64_t>(options.vocab_size));
      }
      requests_.push_back(PostBytes("/v1/completions", CompletionBody(ids, options.answer_tokens)));
    }
  }

  Json Run() {
    start_s_ = EventLoop::Now();
    for (int i = 0; i < options_.num_clients; ++i) Arrive();
    if (options_.rate > 0) loop_.At(start_s_, [this] { ArriveAtRate(start_s_); });
    const double give_up_s = start_s_ + options_.seconds + options_.patience_s;
    loop_.Run([&] {
      const double now_s = EventLoop::Now();
      return (now_s >= end_s() && num_running_ == 0) || now_s >= give_up_s;
    });
    for (int i = 0; i < num_running_; ++i) tally_.Add({.outcome = Reply::Outcome::kUnanswered});
    return tally_.AsJson(start_s_ + options_.warm_up_s, end_s());
  }

  EventLoop& loop() { return loop_; }
  const ClientOptions& options() const { return options_; }
  const std::string& request(int prompt) const { return requests_[static_cast<size_t>(prompt)]; }

  void OnReply(Client& client, const Reply& reply) {
    --num_running_;
    tally_.Add(reply);
    free_.push_back(&client);
    if (options_.num_clients == 0 || EventLoop::Now() >= end_s()) return;
    if (reply.status == 200) return Arrive();
    // A client in a loop that was refused waits a moment, as clients do.
    loop_.At(EventLoop::Now() + 0.05, [this] {
      if (EventLoop::Now() < end_s()) Arrive();
    });
  }

 private:
  double end_s() const { return start_s_ + options_.seconds; }

  void Arrive() {
    if (free_.empty()) {
      clients_.push_back(std::make_unique<Client>(*this, static_cast<int>(clients_.size())));
      free_.push_back(clients_.back().get());
    }
    // The one that waited longest, so that no connection grows old unused.
    Client* client = free_.front();
    free_.pop_front();
    ++num_running_;
    client->Ask(static_cast<int>(random_() % requests_.size()));
  }

  void ArriveAtRate(double due_s) {
    if (due_s >= end_s()) return;
    Arrive();
    const double share = static_cast<double>(random_() >> 11) * 0x1p-53;
    const double next_s = due_s - std::log1p(-share) / options_.rate;
    loop_.At(next_s, [this, next_s] { ArriveAtRate(next_s); });
  }

  const ClientOptions options_;
  std::mt19937_64 random_;
  EventLoop loop_;
  Tally tally_;
  std::vector<std::string> requests_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::deque<Client*> free_;
  int num_running_ = 0;
  double start_s_ = 0;
};

void Client::Ask(int prompt) {
  prompt_ = prompt;
  asked_s_ = EventLoop::Now();
  first_s_ = 0;
  is_busy_ = true;
  answer_ = AnswerReader();
  out_ = run_.request(prompt);
  if (fd_ >= 0) return Write();
  fd_ = ConnectFrom(run_.options().port, number_, run_.options().num_sources);
  if (fd_ < 0) return Done({.outcome = Reply::Outcome::kNoConnection});
  run_.loop().Watch(fd_, EPOLLIN | EPOLLOUT | EPOLLRDHUP, this);
}

void Client::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Client::OnSocket(uint32_t epoll_events) {
  if (fd_ < 0) return;
  if (!is_busy_) return Close();  // the server ends an idle connection
  if ((epoll_events & EPOLLOUT) != 0 && !out_.empty()) Write();
  if (fd_ >= 0 && (epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) Read();
}

void Client::Write() {
  const ssize_t n = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN) return Done({.outcome = Reply::Outcome::kCut});
  if (n > 0) out_.erase(0, static_cast<size_t>(n));
  run_.loop().Change(fd_, out_.empty() ? EPOLLIN | EPOLLRDHUP : EPOLLIN | EPOLLOUT | EPOLLRDHUP,
                     this);
}

Reply Client::Heard() const {
  Reply reply;
  reply.status = answer_.status();
  reply.prompt = prompt_;
  reply.first_byte_s = first_s_ - asked_s_;
  reply.seconds = EventLoop::Now() - asked_s_;
  reply.ended_s = EventLoop::Now();
  reply.retry_after_s = answer_.retry_after_s();
  if (reply.status == 200) reply.stream = ReadStream(answer_.body());
  return reply;
}

void Client::Read() {
  std::array<char, 65536> bytes;
  const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) return Done({.outcome = Reply::Outcome::kCut, .status = answer_.status()});
  if (!answer_.has_begun()) first_s_ = EventLoop::Now();
  answer_.Feed({bytes.data(), static_cast<size_t>(n)});
  if (answer_.is_broken()) return Done({.outcome = Reply::Outcome::kBroken});
  if (!answer_.is_done()) return;
  const Reply reply = Heard();
  if (!answer_.keeps_alive()) Close();
  Done(reply);
}

void Client::Done(Reply reply) {
  if (reply.outcome != Reply::Outcome::kWhole) Close();
  is_busy_ = false;
  run_.OnReply(*this, reply);
}

}  // namespace

Json RunClients(const ClientOptions& options) { return ClientRun(options).Run(); }

}  // namespace hearth
