// SPDX-License-Identifier: Apache-2.0
#include "server/access/base64.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Bytes = std::vector<unsigned char>;

TEST(Base64, IsWhatTheStandardLists) {
  const std::pair<std::string_view, std::string_view> vectors[] = {{"", ""},
                                                                   {"f", "Zg=="},
                                                                   {"fo", "Zm8="},
                                                                   {"foo", "Zm9v"},
                                                                   {"foob", "Zm9vYg=="},
                                                                   {"fooba", "Zm9vYmE="},
                                                                   {"foobar", "Zm9vYmFy"},
                                                                   {"\xfb\xff", "+/8="}};
  for (const auto& [plain, letters] : vectors) {
    const Bytes bytes(plain.begin(), plain.end());
    EXPECT_EQ(AsBase64(bytes), letters);
    if (!letters.empty()) {
      EXPECT_EQ(FromBase64(letters), bytes) << letters;
    }
  }
}

TEST(Base64, HasOneSpellingForEverything) {
  for (const char* odd : {"", "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm 9",
                          "Zm9v\n", "Zm9-"}) {
    EXPECT_EQ(FromBase64(odd), std::nullopt) << odd;
  }
}

}  // namespace
}  // namespace hearth
