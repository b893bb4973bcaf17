// SPDX-License-Identifier: Apache-2.0
#include "server/ui/page_routes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace hearth {
namespace {

// The page may load and ask this server alone, run no script that is not a file of its own, and
// turn no text into markup (trusted types): what a model writes stays text, even through a mistake
// of ours.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

// Whether a list such as "gzip, br;q=0.5" names `word` and does not refuse it.
bool Accepts(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    while (item.starts_with(' ')) item.remove_prefix(1);
    const std::string_view name = item.substr(0, item.find_first_of("; "));
    if (name != word) continue;
    const size_t weight = item.find("q=0");
    return weight == std::string_view::npos ||
           item.find_first_of("123456789", weight) != std::string_view::npos;
  }
  return false;
}

bool Matches(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || if_none_match.find(etag) != std::string_view::npos;
}

void SendFile(const HttpRequest& request, HttpReply& reply, const PageFile& file) {
  const bool is_gzip = !file.gzip.empty() && Accepts(request.header("accept-encoding"), "gzip");
  // Strong tags name bytes, so the two encodings have different ones.
  const std::string etag = "\"" + std::string(file.hash) + (is_gzip ? "-gzip\"" : "\"");
  HttpReply::Headers headers{
      {"etag", etag},
      // Names under /ui/ change with their content; the page itself is asked for again each time.
      {"cache-control", file.path == "/" ? "no-cache" : "public, max-age=31536000, immutable"},
      {"vary", file.path == "/" ? "accept, accept-encoding" : "accept-encoding"},
      {"content-security-policy", kPolicy},
      {"x-content-type-options", "nosniff"},
      {"x-frame-options", "DENY"},
      {"referrer-policy", "no-referrer"},
      {"cross-origin-opener-policy", "same-origin"},
      {"cross-origin-resource-policy", "same-origin"}};
  if (Matches(request.header("if-none-match"), etag)) {
    return reply.Send(304, std::move(headers), "");
  }
  headers.push_back({"content-type", std::string(file.type)});
  if (is_gzip) headers.push_back({"content-encoding", "gzip"});
  reply.Send(200, std::move(headers), std::string(is_gzip ? file.gzip : file.plain));
}

void SendText(HttpReply& reply, int status, std::string text) {
  reply.Send(status, {{"content-type", "text/plain"}, {"cache-control", "no-store"}},
             std::move(text));
}

const PageFile* Find(std::span<const PageFile> files, std::string_view path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace

void AddFrontPage(Router& router, std::span<const PageFile> files) {
  router.Add("GET", "/", Auth::kPublic,
             [files](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
               const PageFile* page = Find(files, "/");
               if (page != nullptr && Accepts(request.header("accept"), "text/html")) {
                 return SendFile(request, *reply, *page);
               }
               std::string text = "Hearth is running. The API is under /v1, Ollama's under /api.\n";
               if (page == nullptr) text += "This program was built without the web page.\n";
               SendText(*reply, 200, std::move(text));
             });
  router.Add("GET", "/ui/{file}", Auth::kPublic,
             [files](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
               const PageFile* file = Find(files, request.path);
               if (file == nullptr) return SendText(*reply, 404, "Not found\n");
               SendFile(request, *reply, *file);
             });
}

}  // namespace hearth
