// SPDX-License-Identifier: Apache-2.0
// Lingering close, for a connection whose client may still be sending. Closing a socket that has
// unread bytes resets the connection: the client's next write fails, and it may lose an answer that
// it has not read yet. Internal to the room.
#pragma once
#include <string>

#include "http/connection.h"
namespace hearth {

// Stops sending, then reads and discards until the client closes or a bound of `options` is
// reached: the time of the whole, the time without a byte, or the bytes. The caller closes then.
// Whatever was to be sent must have been written before. Beyond a piece it takes turns as `client`.
// Never throws.
boost::asio::awaitable<void> Linger(TcpStream& stream, const HttpOptions& options, LaneTurns& turns,
                                    std::string client);
boost::asio::awaitable<void> Linger(LocalStream& stream, const HttpOptions& options,
                                    LaneTurns& turns, std::string client);
// Sends TLS's close_notify first. What comes then is discarded without decrypting it.
boost::asio::awaitable<void> Linger(TlsStream& stream, const HttpOptions& options, LaneTurns& turns,
                                    std::string client);

}  // namespace hearth
