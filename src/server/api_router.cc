// SPDX-License-Identifier: Apache-2.0
#include "server/api_router.h"

#include "server/model_routes.h"
#include "server/observe/health_routes.h"
#include "server/observe/status_route.h"
#include "server/ui/page_routes.h"

namespace hearth {

Router ApiRouter(const ApiParts& parts) {
  Router router;
  AddFrontPage(router);
  AddHealthRoutes(parts.snapshot, router, parts.health);
  const Auth metrics_auth = parts.public_metrics ? Auth::kPublic : parts.status_auth;
  AddMetricsRoute(parts.snapshot, parts.metrics, metrics_auth, router);
  AddStatusRoute(parts.snapshot, parts.service, parts.metrics, parts.status_auth, router);
  AddModelRoutes(parts.service, router);
  for (const auto& dialect : parts.dialects) parts.service.AddRoutes(router, dialect);
  return router;
}

}  // namespace hearth
