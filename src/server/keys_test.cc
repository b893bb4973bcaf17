// SPDX-License-Identifier: Apache-2.0
#include "server/keys.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(KeyRing, KnowsTheKeysItMade) {
  const auto a = *KeyRing::Make("laptop", false), b = *KeyRing::Make("ops", true);
  auto ring = KeyRing::Parse("{\"keys\": [" + a.entry + "," + b.entry + "]}");
  ASSERT_TRUE(ring.ok()) << ring.status().message();
  ASSERT_NE(ring->Find(a.key), nullptr);
  EXPECT_EQ(ring->Find(a.key)->id, "laptop");
  EXPECT_FALSE(ring->Find(a.key)->is_admin);
  EXPECT_EQ(ring->Find(b.key)->tenant, 2u);
  EXPECT_TRUE(ring->Find(b.key)->is_admin);
  EXPECT_EQ(ring->Find(""), nullptr);
  EXPECT_EQ(ring->Find(a.key + "0"), nullptr);
  EXPECT_EQ(ring->Find(a.key.substr(0, a.key.size() - 1)), nullptr);
  EXPECT_EQ(ring->Find(std::string(100'000, 'x')), nullptr);
  EXPECT_EQ(a.entry.find(a.key), std::string::npos) << "the file must not hold the key";
}

TEST(KeyRing, RefusesMalformedFiles) {
  const std::string good = (*KeyRing::Make("a", false)).entry;
  const std::string hash(64, 'a'), salt(16, 'b');
  const std::string bad[] = {
      "",
      "[]",
      "{}",
      "{\"keys\": {}}",
      "{\"keys\": [], \"more\": 1}",
      "{\"keys\": [1]}",
      "{\"keys\": [" + good + "," + good + "]}",
      "{\"keys\": [{\"id\": \"\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash + "\"}]}",
      "{\"keys\": [{\"id\": \"a b\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash + "\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"short\", \"sha256\": \"" + hash + "\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"abc\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash.substr(1) +
          "g\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash +
          "\", \"x\": \"y\"}]}",
      "{\"keys\": [{\"id\": \"a\", \"salt\": \"" + salt + "\", \"sha256\": \"" + hash +
          "\", \"admin\": 1}]}",
  };
  for (const std::string& text : bad) EXPECT_FALSE(KeyRing::Parse(text).ok()) << text;
  EXPECT_FALSE(KeyRing::Make("no blanks", false).ok());
}

}  // namespace
}  // namespace hearth
