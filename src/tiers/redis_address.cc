// SPDX-License-Identifier: Apache-2.0
#include "tiers/redis_address.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace hearth {
namespace {

constexpr std::string_view kForm = "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]";

// The text up to `mark`, which goes with it; none: there is no mark.
std::optional<std::string_view> TakeUntil(std::string_view& text, char mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

std::optional<int> NumberIn(std::string_view text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < least || number > most) return std::nullopt;
  return number;
}

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

// Never repeats the address: it may hold a password.
Status Wrong(std::string_view what) {
  return Error(Code::kInvalid, "not an address of a Redis server: %.*s; it is written as %.*s",
               static_cast<int>(what.size()), what.data(), static_cast<int>(kForm.size()),
               kForm.data());
}

Status ReadLogin(std::string_view login, RedisAddress& address) {
  const auto user = TakeUntil(login, ':');
  const auto name = Unescaped(user.value_or(login));
  const auto password = Unescaped(user ? login : std::string_view());
  if (!name || !password) return Wrong("user or password have a % without two hexadecimal digits");
  address.user = *name;
  address.password = *password;
  if (!address.user.empty() && address.password.empty()) return Wrong("a user without a password");
  return {};
}

Status ReadHost(std::string_view text, RedisAddress& address) {
  std::string_view port;
  if (text.starts_with('[')) {  // an IPv6 address has colons of its own
    text.remove_prefix(1);
    const auto host = TakeUntil(text, ']');
    if (!host) return Wrong("'[' without ']'");
    address.host = *host;
    if (!text.empty() && !text.starts_with(':')) return Wrong("what follows ']'");
    port = text.empty() ? text : text.substr(1);
  } else if (const auto host = TakeUntil(text, ':')) {
    address.host = *host;
    port = text;
  } else {
    address.host = text;
  }
  if (address.host.empty()) return Wrong("no host");
  // Those of names and addresses, with an IPv6 zone.
  const auto is_usual = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-._:%").find(c) != std::string_view::npos;
  };
  if (!std::ranges::all_of(address.host, is_usual)) {
    return Wrong("the host has other letters than names and addresses have");
  }
  if (port.empty()) return {};
  const auto number = NumberIn(port, 1, 65535);
  if (!number) return Wrong("the port is not a number from 1 to 65535");
  address.port = *number;
  return {};
}

}  // namespace

std::string RedisAddress::name() const {
  if (is_unix) return "unix://" + host;
  const bool has_colons = host.find(':') != std::string::npos;
  return (has_tls ? "rediss://" : "redis://") + (has_colons ? "[" + host + "]" : host) + ":" +
         std::to_string(port) + (database > 0 ? "/" + std::to_string(database) : "");
}

Result<RedisAddress> ParseRedisAddress(std::string_view text) {
  RedisAddress address;
  if (text.starts_with("unix://")) {
    address.is_unix = true;
    address.host = text.substr(7);
    if (!address.host.starts_with('/')) return Wrong("the path of a unix socket begins with '/'");
    return address;
  }
  address.has_tls = text.starts_with("rediss://");
  if (!address.has_tls && !text.starts_with("redis://")) {
    return Wrong("it begins with neither redis:// nor rediss:// nor unix://");
  }
  text.remove_prefix(address.has_tls ? 9 : 8);
  // The last '@': an unescaped one in a password is common.
  if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
    HEARTH_TRY(ReadLogin(text.substr(0, at), address));
    text.remove_prefix(at + 1);
  }
  std::string_view host = text;
  if (const auto before = TakeUntil(text, '/')) {
    host = *before;
    const auto database = text.empty() ? 0 : NumberIn(text, 0, 1'000'000);
    if (!database) return Wrong("the database is not a number");
    address.database = *database;
  }
  HEARTH_TRY(ReadHost(host, address));
  return address;
}

Result<std::vector<RedisAddress>> ParseRedisAddresses(std::string_view text) {
  std::vector<RedisAddress> addresses;
  bool is_last = false;
  while (!is_last) {
    const auto before = TakeUntil(text, ',');
    is_last = !before;
    HEARTH_ASSIGN(RedisAddress address, ParseRedisAddress(before.value_or(text)));
    if (std::ranges::find(addresses, address) != addresses.end()) {
      return Error(Code::kInvalid, "%s is named twice", address.name().c_str());
    }
    addresses.push_back(std::move(address));
  }
  return addresses;
}

}  // namespace hearth
