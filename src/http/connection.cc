// SPDX-License-Identifier: Apache-2.0
#include "http/connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <utility>

#include "base/json.h"
#include "http/linger.h"
#include "http/outbox.h"

namespace hearth {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using RequestParser = http::request_parser<http::string_body>;

// A connection between two requests keeps no more than this.
constexpr size_t kReadBytes = 4096;
// Beyond a head. A chunk's size or a trailer that never ends is refused here: the library alone
// would collect it for as long as it comes fast enough.
constexpr size_t kMaxUnparsed = size_t{64} << 10;
// How often a client that has already sent more is asked whether it is still there.
constexpr auto kWatchEvery = std::chrono::milliseconds(200);

std::string_view AsText(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.data().size()};
}

// Said in clear: whoever forgot the s of https sees why, instead of an empty reply.
constexpr std::string_view kNeedsTls =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 41\r\n"
    "connection: close\r\n\r\nthis port speaks TLS alone: use https://\n";

// Of a handshake that failed: what came was the beginning of a request.
bool IsPlainHttp(const error_code& ec) {
  return ec.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(ec.value())) == SSL_R_HTTP_REQUEST;
}

std::string DefaultRefusal(const HttpRefusal& refusal) {
  return WriteJson(JsonObject{{"error", JsonObject{{"message", refusal.message}}}});
}

// Wakes a waiting coroutine from any thread. The flag covers a wake that comes before the wait.
class Bell : public std::enable_shared_from_this<Bell> {
 public:
  explicit Bell(const asio::any_io_executor& executor) : executor_(executor), timer_(executor) {}
  void Ring() {
    if (rung_.exchange(true)) return;
    asio::post(executor_, [self = shared_from_this()] { self->timer_.cancel(); });
  }
  asio::awaitable<void> Wait() {
    if (!rung_.load()) {
      timer_.expires_at(asio::steady_timer::time_point::max());
      error_code ignored;
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    rung_.store(false);
  }

 private:
  asio::any_io_executor executor_;
  asio::steady_timer timer_;
  std::atomic<bool> rung_{false};
};

// Ends the waking of a coroutine with its frame, also when a server that goes destroys it where it
// waits.
struct Silence {
  Outbox& outbox;
  ~Silence() { outbox.set_wake(nullptr); }
};

// Likewise: a connection is idle for as long as this lives.
struct Idling {
  IdleConnections& idle;
  IdleConnections::Member& member;
  Idling(IdleConnections& i, IdleConnections::Member& m) : idle(i), member(m) {
    idle.Enter(member);
  }
  ~Idling() { idle.Leave(member); }
  Idling(const Idling&) = delete;
  Idling& operator=(const Idling&) = delete;
};

template <class Stream>
class Connection final : public IdleConnections::Member {
 public:
  Connection(Stream& stream, HttpShared& shared, IdleConnections& idle, std::string peer)
      : stream_(stream),
        shared_(shared),
        idle_(idle),
        peer_(std::move(peer)),
        buffer_(max_buffered()) {}

  void CloseIdle() override { lowest().close(); }

  asio::awaitable<void> Run() {
    while (!shared_.draining->load()) {
      const bool have_head = co_await ReadHead();
      if (!have_head) co_return;
      const bool go_on = co_await ServeOne();
      if (!go_on) co_return;
      if (buffer_.size() == 0)
        buffer_ = beast::flat_buffer(max_buffered());  // idle, it holds nothing
    }
  }

 private:
  auto& lowest() { return beast::get_lowest_layer(stream_); }
  size_t max_buffered() const { return shared_.options.limits.max_head_bytes + kMaxUnparsed; }

  asio::awaitable<bool> ReadSome() {
    error_code ec;
    const size_t n = co_await stream_.async_read_some(
        buffer_.prepare(kReadBytes), asio::redirect_error(asio::use_awaitable, ec));
    buffer_.commit(n);
    co_return !ec;
  }

  // Until a whole head is in the buffer. Says no when the connection is to be closed.
  asio::awaitable<bool> ReadHead() {
    lowest().expires_after(buffer_.size() > 0 ? shared_.options.times.head
                                              : shared_.options.times.idle);
    while (!(head_bytes_ = HeadEnd(AsText(buffer_)))) {
      if (buffer_.size() > shared_.options.limits.max_head_bytes) {
        HttpRefusal refusal{431, "the head is too long"};
        co_await Refuse(refusal);
        co_return false;
      }
      const bool first = buffer_.size() == 0;
      bool more = false;
      if (first) {
        const Idling idling(idle_, *this);
        more = co_await ReadSome();
      } else {
        more = co_await ReadSome();
      }
      if (!more) co_return false;
      // The clock of a head starts with its first byte and is not wound up by later ones.
      if (first) lowest().expires_after(shared_.options.times.head);
    }
    co_return true;
  }

  asio::awaitable<bool> WriteAll(std::string_view bytes) {
    while (!bytes.empty()) {
      lowest().expires_after(shared_.options.times.write_stall);
      error_code ec;
      const size_t n = co_await stream_.async_write_some(
          asio::buffer(bytes.data(), bytes.size()), asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return false;
      bytes.remove_prefix(n);
    }
    co_return true;
  }

  asio::awaitable<void> Refuse(const HttpRefusal& refusal) {
    shared_.refusals_total.fetch_add(1);
    Outbox outbox({.keep_alive = false});
    const auto& describe = shared_.options.describe_refusal;
    outbox.Send(refusal.status, {{"content-type", "application/json"}},
                describe ? describe(refusal) : DefaultRefusal(refusal));
    const Outbox::Taken taken = outbox.Take();
    buffer_ = beast::flat_buffer(max_buffered());  // lingering, it holds nothing
    const bool written = co_await WriteAll(taken.bytes);
    if (written) co_await Linger(stream_, shared_.options);
  }

  // Whether the client has sent more than the request that was answered.
  bool HasUnread() {
    error_code ec;
    return buffer_.size() > 0 || lowest().socket().available(ec) > 0;
  }

  // One request from its checked head to the end of its answer. Says whether to go on.
  asio::awaitable<bool> ServeOne() {
    const HttpLimits& limits = shared_.options.limits;
    std::optional<HttpRefusal> refusal = CheckHead(AsText(buffer_).substr(0, *head_bytes_), limits);
    if (refusal) {
      co_await Refuse(*refusal);
      co_return false;
    }
    RequestParser parser;
    parser.header_limit(static_cast<uint32_t>(limits.max_head_bytes + 1));
    parser.body_limit(limits.max_body_bytes);
    error_code ec;
    buffer_.consume(parser.put(buffer_.data(), ec));
    if (ec || !parser.is_header_done()) {
      refusal = HttpRefusal{400, "malformed request"};
      if (ec == http::error::body_limit) refusal = TooLong();
      co_await Refuse(*refusal);
      co_return false;
    }
    shared_.requests_total.fetch_add(1);
    HttpRequest request = FromParser(parser);
    auto found = shared_.router.Find(request.method, request.path);
    refusal = CheckRoute(found, request);
    if (refusal) {
      refusal->path = request.path;
      co_await Refuse(*refusal);
      co_return false;
    }
    refusal = co_await ReadBody(parser);
    if (refusal) {
      std::string().swap(parser.get().body());
      refusal->path = request.path;
      if (refusal->status != 0) co_await Refuse(*refusal);
      co_return false;
    }
    request.body = std::move(parser.get().body());
    request.path_captures = std::move(std::get<Router::Match>(found).captures);
    const Outbox::Form form{.http_1_0 = parser.get().version() == 10,
                            .keep_alive = parser.get().keep_alive(),
                            .omit_body = parser.get().method() == http::verb::head,
                            .max_unsent_bytes = shared_.options.max_unsent_bytes,
                            .draining = shared_.draining};
    const bool go_on = co_await Answer(request, *std::get<Router::Match>(found).route, form);
    co_return go_on;
  }

  HttpRequest FromParser(RequestParser& parser) {
    HttpRequest request;
    const auto& message = parser.get();
    const std::string_view target(message.target().data(), message.target().size());
    const size_t question = target.find('?');
    request.method = std::string(message.method_string());
    request.path = target.substr(0, question);
    if (question != target.npos) request.query = target.substr(question + 1);
    for (const auto& field : message) {
      HttpHeader header{std::string(field.name_string()), std::string(field.value())};
      std::transform(header.name.begin(), header.name.end(), header.name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      request.headers.push_back(std::move(header));
    }
    request.peer = peer_;
    return request;
  }

  std::optional<HttpRefusal> CheckRoute(const std::variant<Router::Match, Router::Miss>& found,
                                        HttpRequest& request) {
    if (const auto* miss = std::get_if<Router::Miss>(&found)) {
      if (!miss->path_exists) {
        const bool is_near = !miss->nearest.empty();
        return HttpRefusal{
            404, "Not found" + (is_near ? "; did you mean " + miss->nearest + "?" : std::string())};
      }
      return HttpRefusal{405, "this path takes " + miss->allowed};
    }
    const Auth auth = std::get<Router::Match>(found).route->auth;
    if (shared_.options.authorize) return shared_.options.authorize(request, auth);
    // Without anybody to ask, only what is public is answered.
    if (auth == Auth::kPublic) return std::nullopt;
    return HttpRefusal{401, "a key is needed"};
  }

  HttpRefusal TooLong() const {
    return {413, Printf("the body is longer than the %zu bytes that are taken",
                        shared_.options.limits.max_body_bytes)};
  }

  // Status 0: the connection is closed without a word: the client has gone, or was so slow that the
  // library has closed it already.
  asio::awaitable<std::optional<HttpRefusal>> ReadBody(RequestParser& parser) {
    const HttpLimits& limits = shared_.options.limits;
    if (!parser.is_done() && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const bool told = co_await WriteAll("HTTP/1.1 100 Continue\r\n\r\n");
      if (!told) co_return HttpRefusal{0, ""};
    }
    int chunks = 0;
    auto on_chunk = [&](uint64_t, beast::string_view extensions, error_code& ec) {
      // Chunk extensions have no use here and a history of smuggling.
      if (++chunks > limits.max_chunks || !extensions.empty()) ec = http::error::bad_chunk;
    };
    parser.on_chunk_header(on_chunk);
    parser.eager(true);
    const Clock::time_point start = Clock::now();
    size_t read = 0;
    while (!parser.is_done()) {
      const auto pace = std::chrono::milliseconds(static_cast<int64_t>(read) * 1000 /
                                                  shared_.options.times.body_bytes_per_s);
      lowest().expires_at(start + shared_.options.times.body_grace + pace);
      error_code ec;
      read += co_await http::async_read_some(stream_, buffer_, parser,
                                             asio::redirect_error(asio::use_awaitable, ec));
      if (!ec) continue;
      if (ec == http::error::body_limit) co_return TooLong();
      if (ec.category() == http::make_error_code(http::error::bad_chunk).category() &&
          ec != http::error::partial_message && ec != http::error::end_of_stream) {
        co_return HttpRefusal{400, "malformed chunked body"};
      }
      co_return HttpRefusal{0, ""};
    }
    co_return std::nullopt;
  }

  // By reference, and no co_await inside a condition: GCC 12 destroys the temporaries of both
  // twice.
  asio::awaitable<bool> Answer(HttpRequest& request, const Route& route, const Outbox::Form& form) {
    auto outbox = std::make_shared<Outbox>(form);
    route.handler(std::move(request), outbox);
    bool whole = false;
    const Outbox::Taken taken = outbox->Take();
    if (taken.ended) {
      // Answered at once, as small requests are: no need to watch for the client's leaving.
      whole = co_await WriteAll(taken.bytes);
    } else {
      const bool started = co_await WriteAll(taken.bytes);
      if (started && !taken.aborted) whole = co_await WriteRest(*outbox);
    }
    outbox->Gone();
    if (!whole) {
      // Cut, not closed: a broken answer must not look like a whole one.
      error_code ec;
      lowest().socket().set_option(asio::socket_base::linger(true, 0), ec);
      lowest().close();
      co_return false;
    }
    const bool go_on = outbox->keep_alive();
    if (!go_on && HasUnread()) co_await Linger(stream_, shared_.options);
    co_return go_on;
  }

  // What the handler's threads write after it returned. True when the whole answer was written.
  asio::awaitable<bool> WriteRest(Outbox& outbox) {
    using namespace asio::experimental::awaitable_operators;
    auto bell = std::make_shared<Bell>(co_await asio::this_coro::executor);
    outbox.set_wake([bell] { bell->Ring(); });  // what came before, the first Take finds
    const Silence silence{outbox};
    const auto first = co_await (WriteOut(outbox, *bell) || WatchPeer());
    co_return first.index() == 0 && std::get<0>(first);
  }

  // True when the whole answer was written.
  asio::awaitable<bool> WriteOut(Outbox& outbox, Bell& bell) {
    while (true) {
      const Outbox::Taken taken = outbox.Take();
      if (taken.aborted) co_return false;
      const bool written = co_await WriteAll(taken.bytes);
      if (!written) co_return false;
      if (taken.ended) co_return true;
      if (taken.bytes.empty()) co_await bell.Wait();
    }
  }

  // Returns when the other side has closed. Looks without reading: bytes that are there may be the
  // next request. A client that only stops sending counts as gone; none that we know does that.
  asio::awaitable<void> WatchPeer() {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (true) {
      error_code ec;
      co_await lowest().socket().async_wait(asio::socket_base::wait_read,
                                            asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return;
      pollfd fd{lowest().socket().native_handle(), POLLRDHUP, 0};
      if (::poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0) co_return;
      timer.expires_after(kWatchEvery);
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return;
    }
  }

  Stream& stream_;
  HttpShared& shared_;
  IdleConnections& idle_;
  std::string peer_;
  beast::flat_buffer buffer_;
  std::optional<size_t> head_bytes_;
};

}  // namespace

void IdleConnections::Enter(Member& member) {
  member.place_ = members_.size();
  members_.push_back(&member);
}

void IdleConnections::Leave(Member& member) {
  members_.back()->place_ = member.place_;
  std::swap(members_[member.place_], members_.back());
  members_.pop_back();
}

void IdleConnections::CloseAll() {
  for (Member* member : members_) member->CloseIdle();  // each leaves when its wait has ended
}

asio::awaitable<void> Serve(TcpStream stream, HttpShared& shared, IdleConnections& idle,
                            std::string peer) {
  Connection connection(stream, shared, idle, std::move(peer));
  co_await connection.Run();
}

asio::awaitable<void> Serve(LocalStream stream, HttpShared& shared, IdleConnections& idle,
                            std::string peer) {
  Connection connection(stream, shared, idle, std::move(peer));
  co_await connection.Run();
}

asio::awaitable<void> Serve(TlsStream stream, HttpShared& shared, IdleConnections& idle,
                            std::string peer) {
  beast::get_lowest_layer(stream).expires_after(shared.options.times.head);
  error_code ec;
  co_await stream.async_handshake(asio::ssl::stream_base::server,
                                  asio::redirect_error(asio::use_awaitable, ec));
  if (ec && IsPlainHttp(ec)) {
    co_await asio::async_write(stream.next_layer(), asio::buffer(kNeedsTls),
                               asio::redirect_error(asio::use_awaitable, ec));
    if (!ec) co_await Linger(stream.next_layer(), shared.options);
    co_return;
  }
  if (ec) co_return;
  Connection connection(stream, shared, idle, std::move(peer));
  co_await connection.Run();
}

}  // namespace hearth
