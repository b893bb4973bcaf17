// SPDX-License-Identifier: Apache-2.0
#include "server/crowd.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/event_loop.h"
#include "server/wire.h"

namespace hearth {
namespace {

// Small, so that what a slow reader leaves lies with the server.
constexpr int kReceiveBuffer = 4096;

struct CrowdTally {
  int64_t num_opened = 0, num_cut = 0, num_unconnected = 0, num_asked = 0, num_bad = 0;
  int num_open = 0, max_open = 0;
};

class Member : public Watcher {
 public:
  Member(EventLoop& loop, const CrowdOptions& options, CrowdTally& tally, int number)
      : loop_(loop), options_(options), tally_(tally), number_(number), random_(number + 1U) {}
  ~Member() override { Drop(); }

  void Open() {
    fd_ = ConnectFrom(options_.port, number_, options_.num_sources, receive_buffer());
    if (fd_ < 0) {
      ++tally_.num_unconnected;
      return Again(1);
    }
    ++tally_.num_opened;
    tally_.max_open = std::max(tally_.max_open, ++tally_.num_open);
    loop_.Watch(fd_, watched(), this);
    const int life = ++life_;
    is_new_ = true;
    loop_.At(EventLoop::Now() + Around(0.5), [this, life] {
      if (life == life_) Tick();
    });
  }

 protected:
  virtual int receive_buffer() const { return 0; }
  virtual uint32_t watched() const { return EPOLLIN | EPOLLRDHUP; }
  virtual void Act() = 0;  // on every tick
  virtual double PeriodS() { return 1; }

  void Drop() {
    if (fd_ < 0) return;
    ::close(fd_);
    fd_ = -1;
    ++life_;
    --tally_.num_open;
  }
  void Cut() {
    ++tally_.num_cut;
    Drop();
    Again(0.2);
  }
  bool Send(std::string_view bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  double Around(double mean) {
    return mean * (0.5 + static_cast<double>(random_() >> 11) * 0x1p-53);
  }

  EventLoop& loop_;
  const CrowdOptions& options_;
  CrowdTally& tally_;
  const int number_;
  std::mt19937_64 random_;
  int fd_ = -1;
  bool is_new_ = true;  // nothing was sent on this connection

 private:
  void Again(double mean_s) {
    loop_.At(EventLoop::Now() + Around(mean_s), [this] { Open(); });
  }
  void Tick() {
    Act();
    if (fd_ < 0) return;
    const int life = life_;
    loop_.At(EventLoop::Now() + PeriodS(), [this, life] {
      if (life == life_) Tick();
    });
  }
  int life_ = 0;
};

// Asks once whether the server lives, then now and again, as pools of connections do.
class Idle final : public Member {
 public:
  using Member::Member;
  void OnSocket(uint32_t) override {
    if (fd_ < 0) return;
    std::array<char, 4096> bytes;
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return Cut();
    if (!std::string_view(bytes.data(), static_cast<size_t>(n)).starts_with("HTTP/1.1 200")) {
      ++tally_.num_bad;
    }
  }

 private:
  void Act() override {
    ++tally_.num_asked;
    if (!Send(GetBytes("/livez"))) Cut();
  }
  double PeriodS() override { return Around(35); }
};

// A byte a second: every other one never gets to the end of its head, the rest not of their body.
class SlowWriter final : public Member {
 public:
  using Member::Member;
  void OnSocket(uint32_t) override {
    if (fd_ < 0) return;
    std::array<char, 4096> bytes;
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) Cut();
  }

 private:
  void Act() override {
    const size_t from = is_new_ ? 0 : at_;
    if (std::exchange(is_new_, false)) at_ = number_ % 2 == 0 ? 0 : kRequest.size() - 500;
    at_ = std::min(at_ + 1, kRequest.size());
    if (!Send(std::string_view(kRequest).substr(from, at_ - from))) Cut();
  }
  inline static const std::string kRequest = PostBytes("/v1/completions", std::string(600, ' '));
  size_t at_ = 0;
};

// Asks for a stream and takes a few bytes of it a second.
class SlowReader final : public Member {
 public:
  using Member::Member;
  void OnSocket(uint32_t epoll_events) override {
    if (fd_ >= 0 && (epoll_events & (EPOLLERR | EPOLLHUP)) != 0) Cut();
  }

 private:
  int receive_buffer() const override { return kReceiveBuffer; }
  uint32_t watched() const override { return 0; }
  void Act() override {
    if (std::exchange(is_new_, false)) {
      has_begun_ = false;
      ++tally_.num_asked;
      const std::vector<int> prompt(16, 100 + number_);
      if (!Send(PostBytes("/v1/completions", CompletionBody(prompt, options_.reader_tokens)))) {
        Cut();
      }
      return;
    }
    std::string bytes(static_cast<size_t>(options_.reader_bytes_per_s), '\0');
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return Cut();
    if (!std::exchange(has_begun_, true) && !bytes.starts_with("HTTP/1.1 200")) ++tally_.num_bad;
  }
  bool has_begun_ = false;
};

}  // namespace

Json RunCrowd(const CrowdOptions& options, const std::function<void()>& on_ready,
              const std::function<bool()>& is_over) {
  EventLoop loop;
  CrowdTally tally;
  std::vector<std::unique_ptr<Member>> members;
  const auto add = [&](auto make, int count) {
    for (int i = 0; i < count; ++i) members.push_back(make(static_cast<int>(members.size())));
  };
  add([&](int n) { return std::make_unique<Idle>(loop, options, tally, n); }, options.num_idle);
  add([&](int n) { return std::make_unique<SlowWriter>(loop, options, tally, n); },
      options.num_slow_writers);
  add([&](int n) { return std::make_unique<SlowReader>(loop, options, tally, n); },
      options.num_slow_readers);
  double when_s = EventLoop::Now();
  for (const auto& member : members) {
    loop.At(when_s, [&member] { member->Open(); });
    when_s += 1.0 / options.opened_per_s;
  }
  // Everybody has spoken once by then.
  loop.At(when_s + 2, on_ready);
  loop.Run(is_over);
  return JsonObject{
      {"opened", tally.num_opened}, {"cut", tally.num_cut}, {"unconnected", tally.num_unconnected},
      {"asked", tally.num_asked},   {"bad", tally.num_bad}, {"open", tally.num_open},
      {"most", tally.max_open}};
}

}  // namespace hearth
