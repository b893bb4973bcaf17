// SPDX-License-Identifier: Apache-2.0
// Who is meant by a Host or Origin header: the one reader of `host:port` and `scheme://host:port`,
// which takes nothing that another reader of URLs could take for another host. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>
namespace hearth {

// A host and perhaps a port.
struct Authority {
  std::string host;  // in small letters; an IPv6 address in its shortest form, in brackets
  int port = -1;     // -1: none is named
  bool operator==(const Authority&) const = default;
};

// A name of letters, digits, `-`, `_` and single dots between them; four plain numbers; or an IPv6
// address in brackets. Behind it nothing, or a colon and a port in digits. Refused, beside
// malformed text: users (`a@b`), zones, escapes, names that end in a number but are no IPv4
// address (`127.1`: some readers take it for one), numbers with leading zeros, empty ports.
std::optional<Authority> ParseAuthority(std::string_view text);

// Where a web page comes from, as browsers write it: no path, not even a slash.
struct WebOrigin {
  std::string scheme;   // in small letters
  Authority authority;  // without the port that its scheme has anyway
  std::string Text() const;
  bool operator==(const WebOrigin&) const = default;
};

std::optional<WebOrigin> ParseOrigin(std::string_view text);

// Whether only this machine can reach the host of an authority.
bool IsLoopbackHost(const Authority& authority);

}  // namespace hearth
