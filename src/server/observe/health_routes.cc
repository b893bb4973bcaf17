// SPDX-License-Identifier: Apache-2.0
#include "server/observe/health_routes.h"

#include <memory>

namespace hearth {
namespace {

void SendText(HttpReply& reply, int status, const std::string& text) {
  reply.Send(status, {{"content-type", "text/plain"}, {"cache-control", "no-store"}}, text);
}

}  // namespace

void AddHealthRoutes(const SnapshotSource& source, Router& router, const HealthNotes& notes) {
  router.Add("GET", "/livez", Auth::kPublic,
             [notes](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
               if (notes.is_wedged && notes.is_wedged()) return SendText(*reply, 503, "stalled\n");
               SendText(*reply, 200, "alive\n");
             });
  const std::string more = notes.restarts.empty() ? "" : notes.restarts + "\n";
  router.Add("GET", "/readyz", Auth::kPublic,
             [source, more, is_leaving = notes.is_leaving](
                 const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
               const auto snapshot = source();
               const bool leaves = is_leaving && is_leaving();
               if (leaves || snapshot->is_draining)
                 return SendText(*reply, 503, "draining\n" + more);
               if (snapshot->is_stalled) return SendText(*reply, 503, "stalled\n" + more);
               SendText(*reply, 200, "ready\n" + more);
             });
}

}  // namespace hearth
