// SPDX-License-Identifier: Apache-2.0
#include "http/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
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
#include <new>
#include <type_traits>
#include <utility>

#include "base/ascii.h"
#include "http/bell.h"
#include "http/cutter.h"
#include "http/linger.h"
#include "http/outbox.h"
#include "http/pace.h"
#include "http/refusal.h"
#include "http/request_head.h"

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

// How a TLS handshake begins, which no request does.
constexpr std::string_view kTlsHandshake("\x16\x03", 2);

// What a body takes in memory. With a length it was reserved at once, and costs nothing before it
// is filled.
size_t BytesOf(RequestParser& parser) {
  const std::string& body = parser.get().body();
  return parser.chunked() ? body.capacity() : body.size();
}

template <class Stream>
class Connection final : public IdleConnections::Member {
 public:
  Connection(Stream& stream, HttpShared& shared, LaneShared& lane, std::string peer)
      : stream_(stream),
        shared_(shared),
        lane_(lane),
        peer_(std::move(peer)),
        client_(peer_),
        buffer_(max_buffered()) {}
  ~Connection() {
    Disarm();
    // Its coroutine was lost for want of memory; through TLS nothing can be said without any.
    if constexpr (!std::is_same_v<Stream, TlsStream>) {
      if (is_owed_ && !shared_.is_stopping) {
        SayLast(lowest().socket().native_handle(), shared_.last_words, words());
      }
    }
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void CloseIdle() override { lowest().close(); }

  asio::awaitable<void> Run() {
    bool is_lost = false;
    try {
      co_await ServeAll();
    } catch (const std::bad_alloc&) {
      is_lost = true;
    }
    if (is_lost && is_owed_) co_await Apologise();
    is_owed_ = false;
  }

 private:
  asio::awaitable<void> ServeAll() {
    while (!shared_.draining->load()) {
      is_owed_ = true;
      words_ = {};
      const bool have_head = co_await ReadHead();
      if (!have_head) co_return;
      words_ = shared_.last_words.For(AsText(buffer_));
      const bool go_on = co_await ServeOne();
      Disarm();
      if (!go_on) co_return;
      if (buffer_.size() == 0)
        buffer_ = beast::flat_buffer(max_buffered());  // idle, it holds nothing
    }
  }

  // What can be said without memory: nothing, where no request has come.
  std::string_view words() const {
    if (!words_.empty() || buffer_.size() == 0) return words_;
    return shared_.last_words.For(AsText(buffer_));
  }

  // Instead of a reply for which there was no memory, as long as none of it has gone.
  asio::awaitable<void> Apologise() {
    std::array<char, 512> bytes;
    std::string_view reply = words();
    if (reply.empty()) {
      lowest().expires_after(shared_.options.times.head);
      error_code ec;
      const size_t n = co_await stream_.async_read_some(
          asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return;
      reply = shared_.last_words.For({bytes.data(), n});
    }
    shared_.refusals_total.fetch_add(1);
    buffer_ = beast::flat_buffer(max_buffered());
    const bool written = co_await WriteAll(reply);
    if (written) co_await Linger(stream_, shared_.options, lane_.turns, client_);
  }

  auto& lowest() { return beast::get_lowest_layer(stream_); }
  size_t max_buffered() const { return shared_.options.limits.max_head_bytes + kMaxUnparsed; }

  void Disarm() {
    if (cutter_ != nullptr) cutter_->Disarm();
    cutter_ = nullptr;
  }

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
      if (AsText(buffer_).starts_with(kTlsHandshake)) {
        // It would wait for its peer's part of the handshake until the head's time is over.
        HttpRefusal refusal{400, "this port does not speak TLS: use http://"};
        co_await Refuse(refusal);
        co_return false;
      }
      if (buffer_.size() > shared_.options.limits.max_head_bytes) {
        HttpRefusal refusal{431, "the request headers are too long"};
        co_await Refuse(refusal);
        co_return false;
      }
      const bool first = buffer_.size() == 0;
      bool more = false;
      if (first) {
        const Idling idling(lane_.idle, *this);
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
    const HttpTimes& times = shared_.options.times;
    Pace pace(Clock::now(), times.write_stall, times.write_stall, times.reply_bytes_per_s);
    for (bool is_first = true; !bytes.empty(); is_first = false) {
      const size_t piece = std::min(bytes.size(), LaneTurns::kPiece);
      if (!is_first) {
        pace.Forgive(co_await lane_.turns.Take(client_, LaneTurns::ForBytes(piece)));
      }
      lowest().expires_at(pace.deadline());
      error_code ec;
      const size_t n = co_await stream_.async_write_some(
          asio::buffer(bytes.data(), piece), asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return false;
      bytes.remove_prefix(n);
      is_owed_ = false;
      pace.Add(n, Clock::now());
    }
    co_return true;
  }

  std::string Describe(const HttpRefusal& refusal) const {
    const auto& describe = shared_.options.describe_refusal;
    return describe ? describe(refusal) : DefaultRefusal(refusal);
  }

  asio::awaitable<void> Refuse(const HttpRefusal& refusal, HttpReply::Headers headers = {}) {
    shared_.refusals_total.fetch_add(1);
    Outbox outbox({.keep_alive = false, .headers = std::move(headers)});
    outbox.Send(refusal.status, RefusalHeaders(refusal), Describe(refusal));
    const Outbox::Taken taken = outbox.Take();
    buffer_ = beast::flat_buffer(max_buffered());  // lingering, it holds nothing
    const bool written = co_await WriteAll(taken.bytes);
    if (written) co_await Linger(stream_, shared_.options, lane_.turns, client_);
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
    max_body_bytes_ = shared_.router.MaxBody(AsText(buffer_), limits.max_body_bytes);
    parser.body_limit(max_body_bytes_);
    error_code ec;
    buffer_.consume(parser.put(buffer_.data(), ec));
    if (ec || !parser.is_header_done()) {
      refusal = HttpRefusal{400, "malformed request"};
      if (ec == http::error::body_limit) refusal = TooLong();
      co_await Refuse(*refusal);
      co_return false;
    }
    shared_.requests_total.fetch_add(1);
    HttpRequest request = AsRequest(parser.get(), peer_);
    const auto& answer_headers = shared_.options.answer_headers;
    HttpReply::Headers headers;
    if (answer_headers) headers = answer_headers(request);
    auto found = shared_.router.Find(request.method, request.path);
    refusal = CheckRoute(shared_.options, found, request);
    client_ = request.key_id.empty() ? peer_ : "key " + request.key_id;
    if (refusal) {
      refusal->path = request.path;
      co_await Refuse(*refusal, std::move(headers));
      co_return false;
    }
    const bool is_public = std::get<Router::Match>(found).route->auth == Auth::kPublic;
    refusal = OpenHold(parser, is_public, request);
    if (!refusal) refusal = co_await ReadBody(parser, request.hold.get());
    if (refusal) {
      std::string().swap(parser.get().body());
      request.hold = nullptr;
      refusal->path = request.path;
      if (refusal->status != 0) co_await Refuse(*refusal, std::move(headers));
      co_return false;
    }
    request.body = std::move(parser.get().body());
    if (request.hold != nullptr) {
      request.body_hold = {nullptr, [hold = request.hold](void*) { hold->SetBody(0); }};
    }
    request.path_captures = std::move(std::get<Router::Match>(found).captures);
    const Outbox::Form form{.http_1_0 = parser.get().version() == 10,
                            .keep_alive = parser.get().keep_alive(),
                            .omit_body = parser.get().method() == http::verb::head,
                            .max_unsent_bytes = shared_.options.max_unsent_bytes,
                            .headers = std::move(headers),
                            .draining = shared_.draining,
                            .hold = request.hold};
    const bool go_on = co_await Answer(request, *std::get<Router::Match>(found).route, form);
    co_return go_on;
  }

  // Why the budget does not let it in.
  std::optional<HttpRefusal> OpenHold(RequestParser& parser, bool is_public, HttpRequest& request) {
    RequestBudget* budget = shared_.options.budget;
    if (budget == nullptr || is_public) return std::nullopt;
    std::optional<uint64_t> length;
    if (const auto said = parser.content_length()) length = *said;
    // For this request alone: what it leaves behind must not cut the next one.
    cutter_ = std::make_shared<Cutter>();
    cutter_->Arm([executor = lowest().get_executor(), weak = std::weak_ptr(cutter_), this] {
      // On this connection's own thread, so that it cannot go in between.
      asio::post(executor, [weak, this] {
        const auto cutter = weak.lock();
        if (cutter != nullptr && cutter->is_armed()) lowest().close();
      });
    });
    RequestBudget::Opened opened =
        budget->Open(request, length, [cutter = cutter_] { cutter->Cut(); });
    request.hold = std::move(opened.hold);
    return std::move(opened.refusal);
  }

  HttpRefusal TooLong() const {
    return {413, Printf("the request body is longer than the %zu bytes allowed", max_body_bytes_)};
  }

  // Status 0: the connection is closed without a word: the client has gone, or was so slow that the
  // library has closed it already.
  asio::awaitable<std::optional<HttpRefusal>> ReadBody(RequestParser& parser, RequestHold* hold) {
    const HttpLimits& limits = shared_.options.limits;
    if (!parser.is_done() && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const bool told = co_await WriteAll("HTTP/1.1 100 Continue\r\n\r\n");
      if (!told) co_return HttpRefusal{0, ""};
      is_owed_ = true;
    }
    int chunks = 0;
    auto on_chunk = [&](uint64_t, beast::string_view extensions, error_code& ec) {
      // Chunk extensions have no use here and a history of smuggling.
      if (++chunks > limits.max_chunks || !extensions.empty()) ec = http::error::bad_chunk;
    };
    parser.on_chunk_header(on_chunk);
    parser.eager(true);
    const HttpTimes& times = shared_.options.times;
    Pace pace(Clock::now(), times.body_grace, times.body_credit, times.body_bytes_per_s);
    for (size_t done = 0; !parser.is_done();) {
      if (std::max<uint64_t>(done, parser.content_length().value_or(0)) > LaneTurns::kPiece) {
        // Asked first: whoever has left need not be read, nor stand in line.
        if (HasLeft()) co_return HttpRefusal{0, ""};
        pace.Forgive(co_await lane_.turns.Take(client_, LaneTurns::ForBytes(LaneTurns::kPiece)));
        if (HasLeft()) co_return HttpRefusal{0, ""};
      }
      lowest().expires_at(pace.deadline());
      error_code ec;
      const size_t read = co_await http::async_read_some(
          stream_, buffer_, parser, asio::redirect_error(asio::use_awaitable, ec));
      done += read;
      pace.Add(read, Clock::now());
      std::optional<HttpRefusal> refusal;
      if (hold != nullptr) refusal = hold->SetBody(BytesOf(parser));
      if (refusal) co_return refusal;
      if (!ec) continue;
      if (ec == http::error::body_limit) co_return TooLong();
      if (ec.category() == http::make_error_code(http::error::bad_chunk).category() &&
          ec != http::error::partial_message && ec != http::error::end_of_stream) {
        co_return HttpRefusal{400, "malformed chunked request body"};
      }
      co_return HttpRefusal{0, ""};
    }
    co_return std::nullopt;
  }

  // By reference, and no co_await inside a condition: GCC 12 destroys the temporaries of both
  // twice.
  asio::awaitable<bool> Answer(HttpRequest& request, const Route& route, const Outbox::Form& form) {
    auto outbox = std::make_shared<Outbox>(form);
    // A reply that everybody let go of will never come: somebody had no memory even to say so.
    std::shared_ptr<HttpReply> handle(outbox.get(), [outbox](HttpReply*) { outbox->Abort(); });
    HttpRefusal refusal{503, "the server has no memory for this request"};
    refusal.path = request.path;
    refusal.retry_after_s = 1;
    try {
      route.handler(std::move(request), handle);
    } catch (const std::bad_alloc&) {  // this request has no memory; others go on
      shared_.refusals_total.fetch_add(1);
      outbox->SendIfUnstarted(503, RefusalHeaders(refusal), Describe(refusal));
    }
    handle = nullptr;
    bool whole = false;
    try {
      whole = co_await WriteReply(*outbox);
    } catch (const std::bad_alloc&) {  // it is cut, and its handler must hear of that
    }
    outbox->Gone();
    if (!whole) {
      if (is_owed_ && !HasLeft()) {
        co_await Apologise();
        co_return false;
      }
      // Cut, not closed: a broken answer must not look like a whole one.
      error_code ec;
      lowest().socket().set_option(asio::socket_base::linger(true, 0), ec);
      lowest().close();
      co_return false;
    }
    const bool go_on = outbox->keep_alive();
    if (!go_on && HasUnread()) co_await Linger(stream_, shared_.options, lane_.turns, client_);
    co_return go_on;
  }

  // True when the whole answer was written.
  asio::awaitable<bool> WriteReply(Outbox& outbox) {
    const Outbox::Taken taken = outbox.Take();
    if (taken.aborted) co_return false;
    const bool written = co_await WriteAll(taken.bytes);
    // Answered at once, as small requests are: no need to watch for the client's leaving.
    if (taken.ended || !written) co_return written;
    const bool whole = co_await WriteRest(outbox);
    co_return whole;
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

  bool HasLeft() {
    pollfd fd{lowest().socket().native_handle(), POLLRDHUP, 0};
    return ::poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
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
      if (HasLeft()) co_return;
      timer.expires_after(kWatchEvery);
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
      if (ec) co_return;
    }
  }

  Stream& stream_;
  HttpShared& shared_;
  LaneShared& lane_;
  const std::string peer_;
  std::string client_;  // who takes turns: the key of the last request, or the address
  beast::flat_buffer buffer_;
  std::optional<size_t> head_bytes_;
  size_t max_body_bytes_ = 0;  // of the request that is being served
  bool is_owed_ = false;       // no byte of a reply has gone to the request that may have come
  std::string_view words_;     // for it, in the words of its API; empty before its head is here
  std::shared_ptr<Cutter> cutter_;  // of the request that is being served
};

}  // namespace

asio::awaitable<void> Serve(TcpStream stream, HttpShared& shared, LaneShared& lane,
                            std::string peer) {
  co_await lane.turns.Take(peer, LaneTurns::kConnection);
  Connection connection(stream, shared, lane, std::move(peer));
  co_await connection.Run();
}

asio::awaitable<void> Serve(LocalStream stream, HttpShared& shared, LaneShared& lane,
                            std::string peer) {
  Connection connection(stream, shared, lane, std::move(peer));
  co_await connection.Run();
}

asio::awaitable<void> Serve(TlsStream stream, HttpShared& shared, LaneShared& lane,
                            std::string peer) {
  co_await lane.turns.Take(peer, LaneTurns::kHandshake);
  beast::get_lowest_layer(stream).expires_after(shared.options.times.head);
  error_code ec;
  co_await stream.async_handshake(asio::ssl::stream_base::server,
                                  asio::redirect_error(asio::use_awaitable, ec));
  if (ec && IsPlainHttp(ec)) {
    co_await asio::async_write(stream.next_layer(), asio::buffer(kNeedsTls),
                               asio::redirect_error(asio::use_awaitable, ec));
    if (!ec) co_await Linger(stream.next_layer(), shared.options, lane.turns, peer);
    co_return;
  }
  if (ec) co_return;
  Connection connection(stream, shared, lane, std::move(peer));
  co_await connection.Run();
}

}  // namespace hearth
