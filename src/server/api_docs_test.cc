// SPDX-License-Identifier: Apache-2.0
#include "server/api_docs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "testing/data.h"

namespace hearth {
namespace {

// After a change of a table: build/release/bin/hearth api-docs > docs/api.md
TEST(ApiDocs, PageIsCurrent) {
  std::ifstream file(testing::RepoPath("docs/api.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), ApiMarkdown());
}

TEST(ApiDocs, OpenApiHasEveryFieldThatIsNotRefused) {
  const Json api = ApiOpenApi("1");
  for (const Endpoint& endpoint : Endpoints()) {
    const Json* path = api.Find("paths")->Find(endpoint.path);
    ASSERT_NE(path, nullptr) << endpoint.path;
    const std::string text = WriteJson(*path);
    for (const Field& field : endpoint.fields) {
      const bool is_there = text.find("\"" + std::string(field.name) + "\":") != std::string::npos;
      EXPECT_EQ(is_there, field.use != FieldUse::kRefused) << field.name;
    }
  }
}

}  // namespace
}  // namespace hearth
