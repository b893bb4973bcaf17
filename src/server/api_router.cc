// SPDX-License-Identifier: Apache-2.0
#include "server/api_router.h"

#include "server/dialects/messages/anthropic_routes.h"
#include "server/dialects/responses/responses_routes.h"
#include "server/observe/health_routes.h"
#include "server/observe/status_route.h"
#include "server/openai_routes.h"

namespace hearth {

Router ApiRouter(const ApiParts& parts) {
  Router router;
  AddFrontPage(router);
  AddHealthRoutes(parts.engine, router);
  AddMetricsRoute(parts.engine, parts.metrics, router);
  AddStatusRoute(parts.engine, parts.service, parts.metrics, parts.status_auth, router);
  AddOpenAiRoutes(parts.service, router);
  AddResponsesRoutes(parts.service, parts.responses, router);
  AddAnthropicRoutes(parts.service, router);
  return router;
}

}  // namespace hearth
