// SPDX-License-Identifier: Apache-2.0
// HTTP as downloads see it: several requests at a time, each with a sink for its bytes. An
// interface, so that downloads are tested against faults that no server makes on demand.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
namespace hearth {

struct HttpFetch {
  std::string url{};
  // Sent to the host of `url` alone: a redirect to another host goes without it.
  std::string token{};
  std::optional<uint64_t> first{};  // of the bytes wanted; none means the whole, without a range
  uint64_t last = 0;                // inclusive
  bool is_head = false;
};

// What an answer says before its bytes.
struct HttpHead {
  long status = 0;
  std::optional<uint64_t> length{};       // of this answer's body
  std::optional<uint64_t> range_first{};  // of Content-Range
  std::optional<uint64_t> range_total{};  // the same, if it is known there
  std::string etag{};                     // without quotes
  std::string linked_etag{};              // of the file itself, also from before a redirect
  std::optional<uint64_t> linked_size{};  // likewise
  std::string retry_after{};              // as sent: seconds or a date
};

// Thread: the one that calls Transport::Wait.
class FetchSink {
 public:
  virtual ~FetchSink() = default;
  // Once, before the first byte. False ends the request.
  virtual bool OnHead(const HttpHead& head) = 0;
  virtual bool OnBytes(std::span<const std::byte> bytes) = 0;
};

enum class FetchTrouble : unsigned char {
  kNone,
  kNoHost,        // its name is not known: no network, or a typing error
  kNoConnection,  // nobody listens, or the way is closed
  kTls,           // the certificate is not to be trusted
  kInterrupted,   // began, and did not end
  kStopped,       // by the sink
};

struct FetchOutcome {
  int slot = 0;
  FetchTrouble trouble = FetchTrouble::kNone;
  std::string why{};  // for people
  HttpHead head{};
};

// Thread: one.
class Transport {
 public:
  virtual ~Transport() = default;
  // Slots are small numbers; each has one request at a time. `sink` must live until the request is
  // over or cancelled.
  virtual void Begin(int slot, const HttpFetch& fetch, FetchSink& sink) = 0;
  virtual void Cancel(int slot) = 0;
  // Moves bytes for at most `time`, and returns earlier with requests that are over.
  virtual std::vector<FetchOutcome> Wait(std::chrono::milliseconds time) = 0;
};

// By libcurl. Redirects are followed, from https to https only; proxies are taken from the usual
// variables. `connect_time` bounds a connection's opening.
Result<std::unique_ptr<Transport>> OpenCurlTransport(std::chrono::milliseconds connect_time);

}  // namespace hearth
