// SPDX-License-Identifier: Apache-2.0
#include "visit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hearth::testing {
namespace {

// Nobody who reads waits longer, whatever the others do: everything that all visitors of a seed can
// ask for together is a fraction of it.
constexpr int64_t kPatienceUs = 20'000'000;
constexpr int kMaxTries = 200;

// Whether a reply that ended early is the start of the whole: where it ended within a character,
// it says that something is missing there.
bool IsStart(std::string_view text, std::string_view whole) {
  constexpr std::string_view kMissing = "\xef\xbf\xbd";
  if (whole.starts_with(text)) return true;
  return text.ends_with(kMissing) && whole.starts_with(text.substr(0, text.size() - 3));
}

}  // namespace

Visit::Visit(const Visitor& visitor, int number, SimServer& server, const std::string& name,
             PlayCounts& counts)
    : visitor_(visitor),
      number_(number),
      server_(server),
      name_(name),
      counts_(counts),
      random_(server.scene.os.seed * 31 + static_cast<uint64_t>(number)),
      next_us_(SimOs::Get().now_us() + visitor.begins_us),
      began_us_(next_us_),
      unasked_(visitor.asks.begin(), visitor.asks.end()) {}

Visit::~Visit() {
  if (socket_ >= 0) ::close(socket_);
}

void Visit::Fail(const std::string& what) {
  if (failure_.empty()) failure_ = Printf("visitor %d: %s", number_, what.c_str());
  is_done_ = true;
}

void Visit::GiveUp() {
  const Ask& ask = pending_.empty() ? unasked_.front() : pending_.front().ask;
  Fail(Printf(
      "(manner %d) still waits for an answer: kind %d, dialect %d, %s; %zu bytes unsent, %zu "
      "asked, %zu not yet; what came: '%s'",
      static_cast<int>(visitor_.manner), static_cast<int>(ask.what), static_cast<int>(ask.tongue),
      ask.streams ? "a stream" : "whole", out_.size(), pending_.size(), unasked_.size(),
      reader_.Part().body.c_str()));
}

const std::string& Visit::key(const Ask& ask) const {
  const int owner = ask.what == Ask::What::kForeign ? (visitor_.key + 1) % kNumKeys : visitor_.key;
  return SimHouse::Get().secrets[static_cast<size_t>(owner)];
}

// A request of this client may end in an error of the server's.
bool Visit::MayFail() const {
  return server_.num_failed_steps > 0 || SimOs::Get().num_store_failures() > 0 ||
         server_.is_draining || MayLose();
}

// The connection may end without an answer: cut for memory, drained, or of a client that does not
// read or send as it must.
bool Visit::MayLose() const {
  return !visitor_.is_polite() || server_.is_draining || server_.accounts->counts().cut > 0 ||
         server_.scene.max_unsent_bytes < 10'000;
}

bool Visit::Connect() {
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name_.data(), name_.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0) {
    ::fcntl(socket_, F_SETFL, O_NONBLOCK);
    return true;
  }
  if (!server_.is_draining) Fail("is not let in");
  is_done_ = true;
  return false;
}

void Visit::Queue(Ask ask) {
  ++counts_.asks;
  out_ += WriteAsk(ask, key(ask));
  const bool is_last = unasked_.empty();
  if (visitor_.manner == Visitor::Manner::kHalfBody && is_last && ask.what == Ask::What::kTurn) {
    out_.resize(out_.size() - 10);
  }
  pending_.push_back({std::move(ask)});
}

void Visit::Send() {
  while (!unasked_.empty() && (pending_.empty() || visitor_.pipelines)) {
    Ask next = std::move(unasked_.front());
    unasked_.pop_front();
    Queue(std::move(next));
  }
  if (out_.empty() || is_cut_) return;
  const ssize_t sent = ::send(socket_, out_.data(), std::min(out_.size(), visitor_.send_piece),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    is_cut_ = errno != EAGAIN;  // what was answered before is still there to be read
    return;
  }
  out_.erase(0, static_cast<size_t>(sent));
  if (!out_.empty()) return;
  for (Pending& one : pending_) {
    if (one.sent_us < 0) one.sent_us = SimOs::Get().now_us();
  }
}

void Visit::Read() {
  char bytes[65'536];
  const ssize_t got =
      ::recv(socket_, bytes, std::min(sizeof bytes, visitor_.read_piece), MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return OnClosed();
  reader_.Feed({bytes, static_cast<size_t>(got)});
  while (!is_done_) {
    const std::optional<HttpAnswer> answer = reader_.Next();
    if (!reader_.failure().empty()) Fail(reader_.failure());
    if (!answer) return;
    if (pending_.empty()) return Fail("hears an answer to nothing");
    Take(*answer);
  }
}

void Visit::OnClosed() {
  is_done_ = true;
  if (pending_.empty() && unasked_.empty()) return;
  if (pending_.empty()) {
    if (!server_.is_draining) Fail("was sent away between two requests");
    return;
  }
  counts_.unanswered += static_cast<int64_t>(pending_.size());
  if (!MayLose()) return Fail("lost its connection for no reason");
  const HttpAnswer part = reader_.Part();
  const bool reads_well = visitor_.is_polite() && visitor_.read_piece > 60'000;
  const bool has_reason =
      server_.accounts->counts().cut > 0 || server_.scene.max_unsent_bytes < 10'000;
  if (part.status != 0 && pending_.front().ask.what == Ask::What::kTurn && reads_well &&
      !has_reason && server_.has_told_all) {
    return Fail(Printf("was cut in the middle of an answer: dialect %d%s, status %d, %zu bytes",
                       static_cast<int>(pending_.front().ask.tongue),
                       pending_.front().ask.background ? " in the background" : "", part.status,
                       part.body.size()));
  }
  if (part.status != 200 || pending_.front().ask.what != Ask::What::kTurn) return;
  if (pending_.front().ask.streams) {
    JudgeText(pending_.front().ask, Understand(pending_.front().ask, part), false);
  }
}

void Visit::Leave() {
  ++counts_.left;
  ::close(socket_);
  socket_ = -1;
  is_done_ = true;
}

void Visit::Take(const HttpAnswer& answer) {
  const Pending one = std::move(pending_.front());
  pending_.pop_front();
  const int64_t now_us = SimOs::Get().now_us();
  if (one.sent_us >= 0 && visitor_.is_polite() && now_us - one.sent_us > kPatienceUs) {
    return Fail(Printf("waited %.1f s", static_cast<double>(now_us - one.sent_us) * 1e-6));
  }
  SimOs::Get().Note(static_cast<uint64_t>(answer.status) + answer.body.size() * 1024);
  if (answer.status != 200) {
    JudgeRefusal(one.ask, answer);
  } else if (one.ask.what == Ask::What::kTurn) {
    JudgeTurn(one.ask, answer);
  } else if (one.ask.what != Ask::What::kHealth) {
    JudgeStored(one.ask, answer);
  }
  if (answer.header("connection") != "close" || is_done_) return;
  is_done_ = true;
  if (answer.status < 400 && !server_.is_draining) Fail("was sent away after a good answer");
}

void Visit::JudgeRefusal(const Ask& ask, const HttpAnswer& answer) {
  ++counts_.refused;
  const int status = answer.status;
  if ((status == 429 || status == 503) && answer.header("retry-after").empty()) {
    return Fail("was refused and not told when to come back");
  }
  const std::string id(answer.header("x-request-id"));
  if (!id.empty()) {
    const Ledger::Entry entry = server_.ledger.Find(id);
    if (entry.count != 1 || entry.status != status) return Fail("was refused and not counted so");
  }
  if (ask.what == Ask::What::kForeign && status == 404) return;
  const bool may_miss = ask.what == Ask::What::kRetrieve || ask.what == Ask::What::kDelete ||
                        ask.what == Ask::What::kCancel;
  if (may_miss && (status == 404 || status == 400)) {
    // Gone only if it was never kept, or somebody ended it.
    if (status == 400 && ask.what != Ask::What::kRetrieve) return;
    if (MayFail()) return;
    return Fail(Printf("finds status %d instead of its response", status));
  }
  // A reply that nobody made: the connection's last words are as good as none.
  if (answer.body.find("could not finish this request") != std::string::npos) {
    ++counts_.unanswered;
    if (!MayLose()) Fail("got no answer for no reason");
    return;
  }
  if (status == 429 || status == 503) return;
  if (status == 500 && MayFail()) return;
  Fail(Printf("was refused with status %d: %s", status, answer.body.c_str()));
}

void Visit::JudgeText(const Ask& ask, const Understood& heard, bool is_whole) {
  if (!heard.trouble.empty()) return Fail(heard.trouble);
  if (ask.is_endless) return;
  if (is_whole && heard.text != ask.expected) {
    return Fail("hears '" + heard.text + "' instead of '" + ask.expected + "'");
  }
  if (!IsStart(heard.text, ask.expected)) {
    return Fail("hears '" + heard.text + "', no start of '" + ask.expected + "'");
  }
  if (is_whole && heard.tokens >= 0 && heard.tokens != ask.expected_tokens) {
    return Fail(Printf("pays for %d tokens of %d", heard.tokens, ask.expected_tokens));
  }
}

void Visit::JudgeTurn(const Ask& ask, const HttpAnswer& answer) {
  const std::string id(answer.header("x-request-id"));
  const Ledger::Entry entry = server_.ledger.Find(id);
  if (!ask.background) {
    if (entry.count != 1) return Fail("has an answer that was not counted once");
    if (entry.key != Printf("k%d", visitor_.key)) return Fail("has another key's answer");
  }
  const Understood heard = Understand(ask, answer);
  if (ask.background && !ask.streams) {
    ++counts_.background;
    if (heard.id.empty()) return Fail("has a background response without a name");
    return FollowUp(ask, heard);
  }
  ++(ask.streams ? counts_.streamed : counts_.whole);
  const bool is_cancelled = heard.state == "cancelled";
  if (!heard.error.empty() || !heard.is_ended) {
    ++counts_.failed;
    if (!MayFail() && !(ask.background && is_cancelled)) {
      return Fail("has a stream that ended badly: " + heard.error);
    }
    return JudgeText(ask, heard, false);
  }
  JudgeText(ask, heard, true);
  if (ask.stores && failure_.empty()) FollowUp(ask, heard);
}

// Asks for what was kept, of its own and with another's key, and for the end of what runs.
void Visit::FollowUp(const Ask& ask, const Understood& heard) {
  if (ask.tongue != Tongue::kResponses || ask.tries > 0) return;
  if (visitor_.manner == Visitor::Manner::kHalfBody) return;  // it would send the missing bytes
  ++counts_.stored;
  Ask next = ask;
  next.id = heard.id;
  next.streams = false;
  next.what = random_.Chance(0.3)                     ? Ask::What::kForeign
              : ask.background && random_.Chance(0.3) ? Ask::What::kCancel
                                                      : Ask::What::kRetrieve;
  next.tries = 1;
  unasked_.push_front(std::move(next));
}

void Visit::JudgeStored(const Ask& ask, const HttpAnswer& answer) {
  if (ask.what == Ask::What::kForeign) return Fail("sees another key's response");
  if (ask.what == Ask::What::kDelete) return;
  const Understood heard = Understand(ask, answer);
  if (!heard.trouble.empty()) return Fail(heard.trouble);
  if (heard.id != ask.id) return Fail("is shown another response");
  if (!ask.is_endless && !IsStart(heard.text, ask.expected)) {
    return Fail("finds '" + heard.text + "' (" + heard.state + "), no start of '" + ask.expected +
                "'");
  }
  if (heard.is_ended) {
    JudgeText(ask, heard, true);
    if (failure_.empty() && ask.what == Ask::What::kRetrieve && random_.Chance(0.5)) {
      Ask next = ask;
      next.what = Ask::What::kDelete;
      unasked_.push_front(std::move(next));
    }
    return;
  }
  if (ask.what == Ask::What::kCancel) {
    ++counts_.cancelled;
    if (heard.state == "cancelled") return;
    if (MayFail()) return;
    return Fail("cancelled a response that is " + heard.state);
  }
  if (heard.state == "failed" || heard.state == "cancelled") {
    return MayFail() ? void() : Fail("finds its response " + heard.state);
  }
  if (ask.tries > kMaxTries) {
    if (!MayFail()) Fail("has a response without an end: " + heard.state);
    return;
  }
  Ask next = ask;
  ++next.tries;
  unasked_.push_front(std::move(next));
}

void Visit::Tick() {
  const int64_t now_us = SimOs::Get().now_us();
  if (socket_ < 0 && !Connect()) return;
  Send();
  Read();
  if (!is_done_ && visitor_.leaves_us >= 0 && now_us >= began_us_ + visitor_.leaves_us) Leave();
  if (pending_.empty() && unasked_.empty()) is_done_ = true;
  if (is_done_ && socket_ >= 0) {
    ::close(socket_);
    socket_ = -1;
  }
  SimOs::Get().TouchNetwork();
  const int64_t tick_us = visitor_.tick_us;
  next_us_ = now_us + random_.BetweenUs(tick_us / 2 + 1, tick_us * 3 / 2 + 1);
}

}  // namespace hearth::testing
