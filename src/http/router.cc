// SPDX-License-Identifier: Apache-2.0
#include "http/router.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/near_match.h"

namespace hearth {
namespace {

std::string_view TakeSegment(std::string_view& rest) {
  rest.remove_prefix(1);  // its '/'
  const size_t end = rest.find('/');
  const std::string_view segment = rest.substr(0, end);
  rest.remove_prefix(segment.size());
  return segment;
}

// What the braces matched, or nothing when the path is another one. Segments are compared as sent:
// "%2e", "//" and a trailing '/' are simply other paths.
std::optional<std::vector<std::string>> MatchPattern(std::string_view pattern,
                                                     std::string_view path) {
  std::vector<std::string> captures;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view want = TakeSegment(pattern), have = TakeSegment(path);
    if (want.starts_with('{')) {
      if (have.empty()) return std::nullopt;
      captures.emplace_back(have);
    } else if (want != have) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return captures;
}

// For people who forget the version, double it or mistype a letter or two.
std::string Nearest(const std::vector<Route>& routes, std::string_view path) {
  constexpr size_t kLongest = 64, kMostLetters = 2;
  if (path.size() < 4 || path.size() > kLongest) return "";
  std::string nearest;
  size_t least = kMostLetters + 1;
  for (const Route& route : routes) {
    const std::string& pattern = route.pattern;
    if (pattern.find('{') != std::string::npos) continue;
    const bool is_end = pattern.ends_with(path) || path.ends_with(pattern);
    const size_t distance = is_end ? 0 : EditDistance(pattern, path);
    if (distance >= least) continue;
    least = distance;
    nearest = pattern;
  }
  return nearest;
}

}  // namespace

void Router::Add(std::string method, std::string pattern, Auth auth, HttpHandler handler,
                 size_t max_body_bytes) {
  HEARTH_CHECK(pattern.starts_with('/') && handler != nullptr);
  for (const Route& route : routes_) {
    HEARTH_CHECK(route.method != method || route.pattern != pattern);
  }
  HEARTH_CHECK(max_body_bytes == 0 || pattern.find('{') == std::string::npos);
  routes_.push_back(
      {std::move(method), std::move(pattern), auth, std::move(handler), max_body_bytes});
}

size_t Router::MaxBody(std::string_view head, size_t otherwise) const {
  const size_t space = head.find(' ');
  if (space == std::string_view::npos) return otherwise;
  const std::string_view method = head.substr(0, space), target = head.substr(space + 1);
  for (const Route& route : routes_) {
    if (route.max_body_bytes == 0 || route.method != method) continue;
    if (!target.starts_with(route.pattern) || target.size() == route.pattern.size()) continue;
    const char next = target[route.pattern.size()];
    if (next == ' ' || next == '?') return route.max_body_bytes;
  }
  return otherwise;
}

std::variant<Router::Match, Router::Miss> Router::Find(std::string_view method,
                                                       std::string_view path) const {
  Miss miss;
  if (!path.starts_with('/')) return miss;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    auto captures = MatchPattern(route.pattern, path);
    if (!captures) continue;
    if (route.method == wanted) return Match{&route, *std::move(captures)};
    miss.path_exists = true;
    if (!miss.allowed.empty()) miss.allowed += ", ";
    miss.allowed += route.method;
  }
  if (!miss.path_exists) miss.nearest = Nearest(routes_, path);
  return miss;
}

}  // namespace hearth
