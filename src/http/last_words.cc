// SPDX-License-Identifier: Apache-2.0
#include "http/last_words.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "http/outbox.h"
#include "http/refusal.h"

namespace hearth {

LastWords::LastWords(const Router& router, const Describe& describe) {
  std::vector<std::string> beginnings{""};
  for (const Route& route : router.routes()) {
    beginnings.push_back(route.pattern.substr(0, route.pattern.find('{')));
  }
  std::sort(beginnings.begin(), beginnings.end());
  beginnings.erase(std::unique(beginnings.begin(), beginnings.end()), beginnings.end());
  for (std::string& beginning : beginnings) {
    HttpRefusal refusal{503, "the server could not finish this request; try again"};
    refusal.path = beginning;
    refusal.retry_after_s = 1;
    Outbox outbox({.keep_alive = false});
    outbox.Send(503, RefusalHeaders(refusal),
                describe ? describe(refusal) : DefaultRefusal(refusal));
    std::string reply = outbox.Take().bytes;
    const size_t head_bytes = reply.find("\r\n\r\n") + 4;
    rows_.push_back({std::move(beginning), std::move(reply), head_bytes});
  }
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return a.beginning.size() > b.beginning.size();
  });
}

std::string_view LastWords::For(std::string_view head) const noexcept {
  const size_t space = head.find(' ');
  const std::string_view path = space == head.npos ? "" : head.substr(space + 1);
  for (const Row& row : rows_) {
    if (!path.starts_with(row.beginning)) continue;
    const std::string_view reply = row.reply;
    return head.starts_with("HEAD ") ? reply.substr(0, row.head_bytes) : reply;
  }
  return {};
}

void SayLast(int socket, const LastWords& words, std::string_view reply) noexcept {
  std::array<char, 4096> bytes;  // not cleared: only what was read is looked at
  for (int i = 0; i < 16; ++i) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) break;
    if (reply.empty()) reply = words.For({bytes.data(), static_cast<size_t>(got)});
  }
  // As much as fits: nothing was sent before it, so all of it does.
  if (!reply.empty()) ::send(socket, reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace hearth
