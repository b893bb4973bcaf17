// SPDX-License-Identifier: Apache-2.0
#include "server/access/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace hearth {

std::string ClientOf(const HttpRequest& http) {
  if (!http.key_id.empty()) return "key " + http.key_id;
  in6_addr address{};
  if (::inet_pton(AF_INET6, http.peer.c_str(), &address) != 1) return http.peer;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return http.peer;
  std::fill(address.s6_addr + 8, address.s6_addr + 16, 0);
  char text[INET6_ADDRSTRLEN];
  return ::inet_ntop(AF_INET6, &address, text, sizeof text);
}

bool SeesOthers(const HttpRequest& http) { return http.key_id.empty() || http.is_admin; }

}  // namespace hearth
