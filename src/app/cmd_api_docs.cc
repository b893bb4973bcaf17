// SPDX-License-Identifier: Apache-2.0
// hearth api-docs: the server's API as a page or as OpenAPI, from the tables it reads requests
// with.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "server/api_docs.h"

namespace hearth {

void AddApiDocs(CLI::App& app, Command& chosen) {
  auto as_openapi = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("api-docs", "Describe what hearth serve understands");
  sub->add_flag("--openapi", *as_openapi, "As OpenAPI 3.1 in JSON; Markdown unless given");
  sub->callback([&chosen, as_openapi] {
    chosen = [as_openapi] {
      const std::string text =
          *as_openapi ? WriteJson(ApiOpenApi(HEARTH_VERSION), 2) + "\n" : ApiMarkdown();
      std::fputs(text.c_str(), stdout);
      return Status();
    };
  });
}

}  // namespace hearth
