// SPDX-License-Identifier: Apache-2.0
// Every seeded bug in what keeps keys apart, passwords out of messages and texts off the terminal
// must be noticed.
#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "base/mask_secrets.h"
#include "base/terminal.h"
#include "server/access/request_digest.h"
#include "testing/mutants.h"
namespace hearth {
namespace {

using testing::MutantFate;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in patches/secrets.
constexpr int kFirst = 340;
constexpr const char* kBugs[] = {
    "a request's digest leaves the key out", "parameters of a query are no names of secrets",
    "a login ends at the first '@'",         "a user without a password is shown",
    "quoted values end at a blank",          "the controls of eight bits pass",
    "bytes that are no text pass",
};

std::string AllChecks() {
  if (DigestOfRequest("ada", "/v1/x", "{}") == DigestOfRequest("bob", "/v1/x", "{}")) {
    return "two keys have one digest";
  }
  for (const char* text :
       {"redis://:hunter2@h", "redis://:a@hunter2@h", "https://hunter2@h", "https://h/?key=hunter2",
        "postgresql://h/?a=b&password=hunter2", "password='a hunter2' host=h"}) {
    const std::string masked = MaskSecrets(text);
    if (masked.find("hunter2") != std::string::npos) return masked;
  }
  for (const char* text : {"\x1b[31m", "\xc2\x9b", "\x9b", "\u202e", "\u2028", "\x7f"}) {
    if (ForTerminal(text).find(text) != std::string::npos) return "a terminal would obey";
  }
  return "";
}

TEST(SecretsMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(AllChecks(), "");
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(SecretsMutants, EachIsNoticed) {
  for (int i = 0; i < static_cast<int>(std::size(kBugs)); ++i) {
    EXPECT_EQ(testing::RunMutant(kFirst + i, AllChecks), MutantFate::kReported)
        << "mutant " << kFirst + i << ": " << kBugs[i];
  }
}

}  // namespace
}  // namespace hearth
