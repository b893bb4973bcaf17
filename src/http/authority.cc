// SPDX-License-Identifier: Apache-2.0
#include "http/authority.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"

namespace hearth {
namespace {

// The length of a name in the DNS, and of one part of it.
constexpr size_t kMostOfName = 253, kMostOfLabel = 63;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return LowerAscii(c) >= 'a' && LowerAscii(c) <= 'z'; }

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

// Decimal, at most `most`, and written in one way only.
std::optional<int> Number(std::string_view text, int most) {
  if (!IsDigits(text) || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return {};
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  if (value > most) return {};
  return value;
}

bool IsIpv4(std::string_view text) {
  for (int parts = 1;; ++parts) {
    const size_t dot = std::min(text.find('.'), text.size());
    if (!Number(text.substr(0, dot), 255)) return false;
    if (dot == text.size()) return parts == 4;
    if (parts == 4) return false;
    text.remove_prefix(dot + 1);
  }
}

// Readers of URLs take a name whose last part is a number, or looks like one in base 16, for an
// IPv4 address.
bool LooksLikeNumber(std::string_view label) {
  if (IsDigits(label)) return true;
  return label.size() >= 2 && label[0] == '0' && LowerAscii(label[1]) == 'x' &&
         std::all_of(label.begin() + 2, label.end(), [](char c) {
           return IsDigit(c) || (LowerAscii(c) >= 'a' && LowerAscii(c) <= 'f');
         });
}

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > kMostOfName) return false;
  while (true) {
    const size_t dot = std::min(text.find('.'), text.size());
    const std::string_view label = text.substr(0, dot);
    if (label.empty() || label.size() > kMostOfLabel) return false;
    const bool clean = std::all_of(label.begin(), label.end(), [](char c) {
      return IsLetter(c) || IsDigit(c) || c == '-' || c == '_';
    });
    if (!clean) return false;
    if (dot == text.size()) return !LooksLikeNumber(label);
    text.remove_prefix(dot + 1);
  }
}

std::optional<std::string> ShortestIpv6(std::string_view text) {
  const std::string terminated(text);
  in6_addr address{};
  char out[INET6_ADDRSTRLEN] = {};
  // A NUL inside would end the text early for the library.
  if (terminated.find('\0') != std::string::npos) return {};
  if (::inet_pton(AF_INET6, terminated.c_str(), &address) != 1) return {};
  if (::inet_ntop(AF_INET6, &address, out, sizeof out) == nullptr) return {};
  return "[" + std::string(out) + "]";
}

}  // namespace

std::optional<Authority> ParseAuthority(std::string_view text) {
  Authority out;
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    const auto host = ShortestIpv6(text.substr(1, end - 1));
    if (!host) return {};
    out.host = *host;
    rest = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    const std::string_view host = text.substr(0, colon);
    if (!IsIpv4(host) && !IsName(host)) return {};
    out.host = LowerAscii(host);
    rest = text.substr(colon);
  }
  if (rest.empty()) return out;
  if (rest[0] != ':') return {};
  const std::optional<int> port = Number(rest.substr(1), 65535);
  if (!port) return {};
  out.port = *port;
  return out;
}

std::string WebOrigin::Text() const {
  std::string text = scheme + "://" + authority.host;
  if (authority.port >= 0) text += ":" + std::to_string(authority.port);
  return text;
}

std::optional<WebOrigin> ParseOrigin(std::string_view text) {
  const size_t end = text.find("://");
  if (end == std::string_view::npos || end == 0 || !IsLetter(text[0])) return {};
  const std::string_view scheme = text.substr(0, end);
  const bool clean = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '+' || c == '-' || c == '.';
  });
  auto authority = ParseAuthority(text.substr(end + 3));
  if (!clean || !authority) return {};
  WebOrigin out{LowerAscii(scheme), *std::move(authority)};
  const int usual = out.scheme == "http" ? 80 : out.scheme == "https" ? 443 : -1;
  if (out.authority.port == usual) out.authority.port = -1;
  return out;
}

bool IsLoopbackHost(const Authority& authority) {
  return authority.host == "localhost" || authority.host == "[::1]" ||
         (authority.host.starts_with("127.") && IsIpv4(authority.host));
}

}  // namespace hearth
