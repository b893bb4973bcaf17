// SPDX-License-Identifier: Apache-2.0
#include "http/linger.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <string>
#include <utility>

namespace hearth {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// Nobody looks at what is written here, so all lingering connections of a thread share it: they
// cost no memory of their own, and reads can be large. 64 KiB: beyond that a read's own cost no
// longer shows beside the copying.
asio::mutable_buffer Discarded() {
  thread_local std::array<char, size_t{64} << 10> bytes;
  return asio::buffer(bytes);
}

template <class Stream>
asio::awaitable<void> StopSendingAndDiscard(Stream& stream, const HttpOptions& options,
                                            Clock::time_point end, LaneTurns& turns,
                                            std::string client) {
  error_code ec;
  stream.socket().shutdown(asio::socket_base::shutdown_send, ec);
  size_t discarded = 0;
  while (!ec && discarded < options.max_linger_bytes) {
    if (discarded >= LaneTurns::kPiece) {
      co_await turns.Take(client, LaneTurns::ForBytes(LaneTurns::kPiece));
    }
    stream.expires_at(std::min(end, Clock::now() + options.times.linger_silence));
    discarded +=
        co_await stream.async_read_some(Discarded(), asio::redirect_error(asio::use_awaitable, ec));
  }
}

// The alert alone. Asio's async_shutdown would also wait for the client's, and fail at the first
// byte of a body that is still coming. Nothing can be sent through `tls` afterwards.
std::string MakeCloseNotify(SSL* tls) {
  BIO* out = BIO_new(BIO_s_mem());
  if (out == nullptr) return {};
  SSL_set0_wbio(tls, out);  // which owns it from here on
  SSL_shutdown(tls);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

}  // namespace

asio::awaitable<void> Linger(TcpStream& stream, const HttpOptions& options, LaneTurns& turns,
                             std::string client) {
  co_await StopSendingAndDiscard(stream, options, Clock::now() + options.times.linger, turns,
                                 std::move(client));
}

asio::awaitable<void> Linger(LocalStream& stream, const HttpOptions& options, LaneTurns& turns,
                             std::string client) {
  co_await StopSendingAndDiscard(stream, options, Clock::now() + options.times.linger, turns,
                                 std::move(client));
}

asio::awaitable<void> Linger(TlsStream& stream, const HttpOptions& options, LaneTurns& turns,
                             std::string client) {
  const Clock::time_point end = Clock::now() + options.times.linger;
  TcpStream& below = stream.next_layer();
  const std::string close_notify = MakeCloseNotify(stream.native_handle());
  below.expires_at(end);
  error_code ec;
  co_await asio::async_write(below, asio::buffer(close_notify),
                             asio::redirect_error(asio::use_awaitable, ec));
  if (!ec) co_await StopSendingAndDiscard(below, options, end, turns, std::move(client));
}

}  // namespace hearth
