// SPDX-License-Identifier: Apache-2.0
// One HTTP exchange as handlers see it. No socket, no Boost type, nothing about models.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
namespace hearth {

class RequestHold;

struct HttpHeader {
  std::string name, value;  // names in lower case; values without surrounding blanks
};

struct HttpRequest {
  std::string method;
  std::string path;   // as sent, never percent-decoded: no route needs it, and decoding forges
  std::string query;  // after '?', as sent
  std::vector<HttpHeader> headers;
  std::string body;
  std::string peer;                        // the other side's address, "unix" for a local socket
  std::string key_id;                      // whose key it came with; empty when none was asked for
  bool is_admin = false;                   // that key is an admin's
  std::vector<std::string> path_captures;  // what the route's {…} parts matched, in order
  std::shared_ptr<RequestHold> hold = nullptr;  // what it holds; null when nobody counts
  std::shared_ptr<void> body_hold = nullptr;    // its body's part of that, for as long as it lives

  // The first header of that (lower-case) name, or nothing.
  std::string_view header(std::string_view name) const {
    for (const HttpHeader& h : headers) {
      if (h.name == name) return h.value;
    }
    return {};
  }
};

// Where a handler answers. Either one Send, or StartStream, any number of Writes and End.
// Thread: any, also long after the handler returned. Nothing here blocks: bytes are queued for the
// connection's own thread. What is written to a connection that is gone is dropped.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  using Headers = std::vector<HttpHeader>;
  virtual void Send(int status, Headers headers, std::string body) = 0;
  virtual void StartStream(int status, Headers headers) = 0;
  virtual void Write(std::string bytes) = 0;
  virtual void End() = 0;
  // Ends the stream as broken: the connection is cut, so that no client takes the part for whole.
  virtual void Abort() = 0;
  // Bytes queued that the other side has not taken: how a writer notices a slow reader.
  virtual size_t unsent_bytes() const = 0;
  // Bytes that somebody must still take before all that was said is heard. Only for one that is
  // heard elsewhere than where it is written these are others.
  virtual size_t unheard_bytes() const { return unsent_bytes(); }
  // The other side has gone: nobody will read what is said.
  virtual bool is_gone() const { return false; }
  // Called once, on the connection's thread, when the other side has gone before the end; at once
  // when it is gone already.
  virtual void OnGone(std::function<void()> gone) = 0;
};

}  // namespace hearth
