// SPDX-License-Identifier: Apache-2.0
#include "tiers/redis_body.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace hearth {
namespace {

TEST(RedisBody, TakesALongValueInPieces) {
  const std::string value(5000, 'v');
  RedisBody body;
  EXPECT_FALSE(body.is_open());
  EXPECT_EQ(body.Begin("$5000\r\nvvv", 10'000), 7u);
  EXPECT_TRUE(body.is_open());
  const std::string all = value + "\r\n";
  for (size_t at = 0; at < all.size(); at += 1234) {
    EXPECT_FALSE(body.is_whole());
    const size_t count = std::min<size_t>(1234, body.rest().size());
    std::memcpy(body.rest().data(), all.data() + at, count);
    body.Took(count);
  }
  EXPECT_TRUE(body.is_whole());
  const auto taken = body.Take();
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->bytes.size(), 5000u);
  EXPECT_EQ(std::memcmp(taken->bytes.data(), value.data(), value.size()), 0);
  EXPECT_FALSE(body.is_open());
}

TEST(RedisBody, LeavesTheRestToOthers) {
  RedisBody body;
  for (const char* data : {"", "$", "$5000", "$5000\r", "$-1\r\n", "$4095\r\n", "$20000\r\n",
                           ":5000\r\n", "$5000x\r\n", "$+5000\r\n", "$ 5000\r\n", "*1\r\n$5000\r\n",
                           "$99999999999999999999\r\n", "$000000000000000000000005000\r\n"}) {
    EXPECT_EQ(body.Begin(data, 10'000), 0u) << data;
    EXPECT_FALSE(body.is_open());
  }
}

TEST(RedisBody, AValueThatGoesOnAfterItsEndIsNone) {
  RedisBody body;
  body.Begin("$5000\r\n", 10'000);
  std::memset(body.rest().data(), 'x', 5002);
  body.Took(5002);
  EXPECT_FALSE(body.Take());
}

TEST(RedisBody, KnowsWhereShortRepliesEnd) {
  EXPECT_EQ(RedisReplyBytes("+OK\r\n$3\r\nabc\r\n"), 5u);
  EXPECT_EQ(RedisReplyBytes(":12\r\n:13\r\n"), 5u);
  EXPECT_EQ(RedisReplyBytes("-ERR no\r\n+OK\r\n"), 9u);
  EXPECT_EQ(RedisReplyBytes("$3\r\nabc\r\n+OK\r\n"), 9u);
  EXPECT_EQ(RedisReplyBytes("$3\r\nabc"), 7u);
  EXPECT_EQ(RedisReplyBytes("$18446744073709551615\r\nab"), 25u) << "no more than is here";
  EXPECT_EQ(RedisReplyBytes("+OK"), 3u);
  EXPECT_EQ(RedisReplyBytes("$-1\r\n+OK\r\n"), 10u) << "hiredis tells";
  EXPECT_EQ(RedisReplyBytes("*1\r\n:1\r\n+OK\r\n"), 13u);
}

}  // namespace
}  // namespace hearth
