// SPDX-License-Identifier: Apache-2.0
#include "tiers/redis_address.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(RedisAddress, HasDefaults) {
  Result<RedisAddress> address = ParseRedisAddress("redis://cache");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address->host, "cache");
  EXPECT_EQ(address->port, 6379);
  EXPECT_EQ(address->database, 0);
  EXPECT_FALSE(address->has_tls);
  EXPECT_TRUE(address->user.empty() && address->password.empty());
}

TEST(RedisAddress, HasParts) {
  Result<RedisAddress> address = ParseRedisAddress("rediss://us%3aer:p%40ss:w@10.0.0.7:6380/3");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_TRUE(address->has_tls);
  EXPECT_EQ(address->user, "us:er");
  EXPECT_EQ(address->password, "p@ss:w");
  EXPECT_EQ(address->host, "10.0.0.7");
  EXPECT_EQ(address->port, 6380);
  EXPECT_EQ(address->database, 3);
  EXPECT_EQ(address->name(), "rediss://10.0.0.7:6380/3") << "no password";
}

TEST(RedisAddress, MayBeAPasswordAlone) {
  Result<RedisAddress> address = ParseRedisAddress("redis://:secret@cache");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->user, "");
  EXPECT_EQ(address->password, "secret");
}

TEST(RedisAddress, KnowsIpv6AndUnixSockets) {
  Result<RedisAddress> six = ParseRedisAddress("redis://[::1]:7000");
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->port, 7000);
  EXPECT_EQ(six->name(), "redis://[::1]:7000");
  Result<RedisAddress> local = ParseRedisAddress("unix:///run/redis.sock");
  ASSERT_TRUE(local.ok());
  EXPECT_TRUE(local->is_unix);
  EXPECT_EQ(local->host, "/run/redis.sock");
}

TEST(RedisAddress, RefusesWhatItCannotRead) {
  for (const char* text :
       {"", "cache:6379", "http://cache", "redis://", "redis://:6379", "redis://cache:0",
        "redis://cache:65536", "redis://cache:x", "redis://cache/x", "redis://cache/-1",
        "redis://[::1", "redis://[::1]x", "redis://[[]:1", "redis://a b", "redis://a@b]",
        "redis://a%4:b@cache", "redis://user@cache", "unix://relative"}) {
    EXPECT_FALSE(ParseRedisAddress(text).ok()) << text;
  }
  const Status status = ParseRedisAddress("redis://u:hidden%zz@cache").status();
  EXPECT_EQ(status.message().find("hidden"), std::string::npos) << status.message();
}

TEST(RedisAddress, MayBeSeveral) {
  Result<std::vector<RedisAddress>> two = ParseRedisAddresses("redis://a,redis://b:7000");
  ASSERT_TRUE(two.ok()) << two.status().message();
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[1].name(), "redis://b:7000");
  EXPECT_FALSE(ParseRedisAddresses("").ok());
  EXPECT_FALSE(ParseRedisAddresses("redis://a,").ok());
  EXPECT_FALSE(ParseRedisAddresses("redis://a,,redis://b").ok());
  EXPECT_FALSE(ParseRedisAddresses("redis://a,redis://a:6379").ok()) << "twice";
}

}  // namespace
}  // namespace hearth
