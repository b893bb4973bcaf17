// SPDX-License-Identifier: Apache-2.0
// hearth api-docs: the server's API as a page or as OpenAPI, from the tables it reads requests
// with.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/print.h"
#include "server/api_docs.h"

namespace hearth {

void AddApiDocs(CLI::App& app, Command& chosen) {
  auto as_openapi = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("api-docs", "Print the API reference of `hearth serve`");
  sub->add_flag("--openapi", *as_openapi, "Print OpenAPI 3.1 JSON instead of Markdown");
  sub->callback([&chosen, as_openapi] {
    chosen = [as_openapi] {
      if (*as_openapi) {
        PrintJson(ApiOpenApi(HEARTH_VERSION));
      } else {
        PrintOut(ApiMarkdown());
      }
      return Status();
    };
  });
}

}  // namespace hearth
