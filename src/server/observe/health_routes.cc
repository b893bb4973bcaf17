// SPDX-License-Identifier: Apache-2.0
#include "server/observe/health_routes.h"

#include <memory>

namespace hearth {
namespace {

void SendText(HttpReply& reply, int status, const char* text) {
  reply.Send(status, {{"content-type", "text/plain"}, {"cache-control", "no-store"}}, text);
}

}  // namespace

void AddHealthRoutes(const Engine& engine, Router& router) {
  router.Add("GET", "/livez", Auth::kPublic,
             [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
               SendText(*reply, 200, "alive\n");
             });
  router.Add("GET", "/readyz", Auth::kPublic,
             [&engine](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
               const auto snapshot = engine.snapshot();
               if (snapshot->is_draining) return SendText(*reply, 503, "draining\n");
               if (snapshot->is_stalled) return SendText(*reply, 503, "stalled\n");
               SendText(*reply, 200, "ready\n");
             });
}

void AddFrontPage(Router& router) {
  router.Add("GET", "/", Auth::kPublic,
             [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
               SendText(*reply, 200, "This is Hearth. The API is under /v1.\n");
             });
}

}  // namespace hearth
