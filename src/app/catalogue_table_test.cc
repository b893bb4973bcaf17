// SPDX-License-Identifier: Apache-2.0
#include "app/catalogue_table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "store/catalogue.h"

namespace hearth {
namespace {

// The table's line of this model.
std::string LineOf(const std::string& table, const std::string& name) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return line;
  }
  return "";
}

TEST(CatalogueTable, SaysWhatFits) {
  const std::string roomy = CatalogueTable(uint64_t{64} << 30);
  EXPECT_TRUE(LineOf(roomy, "gpt-oss-20b").ends_with("fits"));
  EXPECT_NE(LineOf(roomy, "gpt-oss-20b").find("12.1 GB"), std::string::npos);
  // The weights alone would fit, but nothing beside them.
  const std::string tight = CatalogueTable(12'200'000'000);
  EXPECT_TRUE(LineOf(tight, "gpt-oss-20b").ends_with("too large"));
  EXPECT_TRUE(LineOf(tight, "qwen3-4b").ends_with("fits"));
}

TEST(CatalogueTable, HasEveryModelAndMarksEstimates) {
  const std::string table = CatalogueTable(0);
  for (const CatalogueEntry& entry : Catalogue()) {
    const std::string line = LineOf(table, std::string(entry.name));
    ASSERT_FALSE(line.empty()) << entry.name;
    EXPECT_EQ(line.find('~') != std::string::npos, entry.about_bytes == 0) << line;
    EXPECT_TRUE(line.ends_with("too large")) << line;
  }
  EXPECT_NE(LineOf(table, "smollm2-1.7b").find("~1.06 GB"), std::string::npos) << table;
}

}  // namespace
}  // namespace hearth
