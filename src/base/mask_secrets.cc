// SPDX-License-Identifier: Apache-2.0
#include "base/mask_secrets.h"

#include <algorithm>
#include <initializer_list>

#include "base/ascii.h"

namespace hearth {
namespace {

constexpr std::string_view kMask = "***";
constexpr auto kNone = std::string_view::npos;

bool IsLetter(char c) { return LowerAscii(c) >= 'a' && LowerAscii(c) <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameByte(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '-'; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// Where the scheme of the "://" at `colon` begins.
size_t SchemeBegin(std::string_view text, size_t colon) {
  size_t begin = colon;
  while (begin > 0 && (IsNameByte(text[begin - 1]) || text[begin - 1] == '+')) --begin;
  return begin;
}

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

struct Url {
  size_t authority = 0, end = 0;
  std::string scheme;
};

// The URL whose "://" is at `colon`; it ends where the next one of a list begins.
Url UrlAt(std::string_view text, size_t colon, bool is_value) {
  Url url;
  url.scheme = LowerAscii(text.substr(SchemeBegin(text, colon), colon - SchemeBegin(text, colon)));
  url.authority = colon + 3;
  const bool is_web = IsOneOf(url.scheme, {"http", "https", "tcp"});
  // A password with blanks is no URL, but somebody may have written one: addresses of databases go
  // on over blanks when an '@' follows.
  url.end = text.find_first_of(is_value ? "\n" : "\n\"'<>", url.authority);
  url.end = std::min(url.end, text.size());
  const size_t blank = std::min(text.find_first_of(" \t", url.authority), url.end);
  if (const size_t next = text.find("://", url.authority); next < url.end) {
    url.end = std::max(SchemeBegin(text, next), url.authority);
  }
  if (!is_value && blank < url.end) {
    const bool goes_on = !is_web && text.substr(blank, url.end - blank).find('@') != kNone &&
                         text.substr(url.authority, blank - url.authority).find('@') == kNone;
    if (!goes_on) url.end = blank;
  }
  return url;
}

// Where "?name=" begins.
size_t QueryBegin(std::string_view url) {
  for (size_t at = url.find('?'); at != kNone; at = url.find('?', at + 1)) {
    size_t end = at + 1;
    while (end < url.size() && IsNameByte(url[end])) ++end;
    if (end > at + 1 && end < url.size() && url[end] == '=') return at;
  }
  return kNone;
}

// Where the user and the password end: at the last '@', for an unescaped one in a password is
// common, as is a '/'. One in the path of a web address is no such thing, and none in a query, but
// where what would be the port is no number the host has not begun yet.
size_t LoginEnd(std::string_view text, const Url& url) {
  if (IsOneOf(url.scheme, {"unix", "file", "ipc"})) return kNone;
  const std::string_view rest = text.substr(url.authority, url.end - url.authority);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  const size_t colon = host.ends_with(']') ? kNone : host.rfind(':');
  const std::string_view port = colon == kNone ? std::string_view() : host.substr(colon + 1);
  const bool has_host = host.find('@') == kNone && std::ranges::all_of(port, IsDigit);
  if (has_host && IsOneOf(url.scheme, {"http", "https"})) return kNone;
  size_t last = rest.substr(0, QueryBegin(rest)).rfind('@');
  if (last == kNone && !has_host) last = rest.rfind('@');
  return last == kNone ? kNone : url.authority + last;
}

// Appends the login of the URL at `colon`, masked; returns where it ends, in front of its '@'.
size_t CopyLogin(std::string_view text, size_t colon, bool is_value, std::string& out) {
  const Url url = UrlAt(text, colon, is_value);
  out += text.substr(colon, 3);
  const size_t end = LoginEnd(text, url);
  if (end == kNone) return url.authority;
  const std::string_view login = text.substr(url.authority, end - url.authority);
  const size_t mark = login.find(':');
  if (mark != kNone) {
    out.append(login.substr(0, mark + 1)).append(kMask);
  } else {
    const bool is_name =
        IsOneOf(url.scheme, {"postgres", "postgresql"}) &&
        std::ranges::all_of(login, [](char c) { return IsNameByte(c) || c == '.'; });
    out += is_name ? login : kMask;
  }
  return end;
}

bool EndsIn(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

// Names of parameters whose value is a secret. In a query all names are parameters; elsewhere
// those alone that are nothing else in prose.
bool IsSecretName(const std::string& name, bool is_query) {
  if (EndsIn(name, {"password", "passwd", "pwd", "secret", "api_key", "api-key", "apikey"})) {
    return true;
  }
  if (!is_query)
    return EndsIn(name, {"_token", "-token"}) || IsOneOf(name, {"token", "passphrase"});
  return EndsIn(name, {"token", "pass", "passphrase", "signature", "credential", "auth", "key"}) ||
         IsOneOf(name, {"sig", "authorization", "jwt", "code"});
}

// The end of the value at `at`, behind its closing quote if it has one. Behind '?' and '&' a value
// ends at the next '&'.
size_t ValueEnd(std::string_view text, size_t at, bool is_query, bool is_value) {
  if (at < text.size() && (text[at] == '\'' || text[at] == '"')) {
    for (size_t i = at + 1; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == text[at]) {
        return i + 1;
      }
    }
    return text.size();
  }
  size_t end = at;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '\n' || (is_query && (c == '&' || c == '#'))) break;
    if ((IsBlank(c) && !(is_query && is_value)) || (!is_value && c == '"')) break;
    if (c == '\\' && !is_query) ++end;  // as libpq escapes a blank
  }
  return std::min(end, text.size());
}

// If a parameter's name begins at `at`: where its value begins, behind '=' or what else assigns.
size_t ValueOf(std::string_view text, size_t at, bool& is_query) {
  size_t end = at;
  while (end < text.size() && IsNameByte(text[end])) ++end;
  is_query = at > 0 && (text[at - 1] == '?' || text[at - 1] == '&' || text[at - 1] == '#');
  const bool is_json = end < text.size() && text[end] == '"' && at > 0 && text[at - 1] == '"';
  if (!IsSecretName(LowerAscii(text.substr(at, end - at)), is_query)) return kNone;
  if (is_json) ++end;
  while (!is_query && end < text.size() && IsBlank(text[end])) ++end;
  const bool is_given = end < text.size() && (text[end] == '=' || (is_json && text[end] == ':'));
  if (!is_given) return kNone;
  ++end;
  while (!is_query && end < text.size() && IsBlank(text[end])) ++end;
  return end;
}

// What names in front of a blank are followed by.
size_t CredentialAfter(std::string_view text, size_t at) {
  for (const std::string_view scheme : {"bearer ", "basic "}) {
    const std::string_view found = text.substr(at, scheme.size());
    if (LowerAscii(found) != scheme) continue;
    size_t end = at + scheme.size();
    while (end < text.size() && static_cast<unsigned char>(text[end]) > ' ' && text[end] != '"') {
      ++end;
    }
    // Shorter ones are words of a sentence.
    constexpr size_t kLeast = 12;
    if (end - at - scheme.size() >= kLeast) return end;
  }
  return kNone;
}

// Of a login without "://", USER:PASSWORD@HOST: where it ends; `colon` is where the user does. A
// number is a port, and what follows a '/' belongs to a URL.
size_t LooseLoginEnd(std::string_view text, size_t at, bool is_value, size_t& colon) {
  colon = at;
  if (at > 0 && std::string_view("/@:.?&=#").find(text[at - 1]) != kNone) return kNone;
  while (colon < text.size() && (IsNameByte(text[colon]) || text[colon] == '.')) ++colon;
  if (text.substr(colon, 1) != ":" || text.substr(colon, 3) == "://") return kNone;
  size_t end = text.find_first_of(is_value ? "\n" : " \t\n\"'<>", colon);
  end = std::min({end, text.find("://", colon), text.size()});
  const size_t mark = text.substr(0, end).rfind('@');
  if (mark == kNone || mark <= colon + 1) return kNone;
  const bool is_port = std::ranges::all_of(text.substr(colon + 1, mark - colon - 1), IsDigit);
  return is_port ? kNone : mark;
}

std::string Masked(std::string_view text, bool is_value) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at, 3) == "://") {
      at = CopyLogin(text, at, is_value, out);
      continue;
    }
    const bool begins_word = IsNameByte(text[at]) && (at == 0 || !IsNameByte(text[at - 1]));
    if (begins_word) {
      bool is_query = false;
      if (const size_t value = ValueOf(text, at, is_query); value != kNone) {
        out.append(text.substr(at, value - at)).append(kMask);
        at = ValueEnd(text, value, is_query, is_value);
        continue;
      }
      if (const size_t end = CredentialAfter(text, at); end != kNone) {
        out.append(text.substr(at, text.find(' ', at) + 1 - at)).append(kMask);
        at = end;
        continue;
      }
      size_t colon = 0;
      if (const size_t end = LooseLoginEnd(text, at, is_value, colon); end != kNone) {
        out.append(text.substr(at, colon + 1 - at)).append(kMask);
        at = end;
        continue;
      }
    }
    out += text[at++];
  }
  return out;
}

}  // namespace

std::string MaskSecrets(std::string_view text) { return Masked(text, false); }

std::string MaskSecretValue(std::string_view value) { return Masked(value, true); }

}  // namespace hearth
