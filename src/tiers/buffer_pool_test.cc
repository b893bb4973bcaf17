// SPDX-License-Identifier: Apache-2.0
#include "tiers/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace hearth {
namespace {

TEST(BufferPool, GivesTheSameMemoryAgain) {
  const auto pool = std::make_shared<BufferPool>();
  Buffer buffer = TakeBuffer(pool, 100'000);
  ASSERT_EQ(buffer.bytes.size(), 100'000u);
  const std::byte* const at = buffer.bytes.data();
  buffer = {};
  EXPECT_EQ(TakeBuffer(pool, 99'000).bytes.data(), at) << "nearly as long";
  const Buffer longer = TakeBuffer(pool, 300'000);
  std::memset(longer.bytes.data(), 1, longer.bytes.size());
  const Buffer other = TakeBuffer(pool, 100'000);
  EXPECT_NE(other.bytes.data(), longer.bytes.data()) << "in use";
}

TEST(BufferPool, LivesAsLongAsWhatCameOutOfIt) {
  auto pool = std::make_shared<BufferPool>();
  const std::weak_ptr<BufferPool> seen = pool;
  Buffer buffer = TakeBuffer(pool, 50'000);
  pool.reset();
  EXPECT_FALSE(seen.expired());
  std::memset(buffer.bytes.data(), 7, buffer.bytes.size());
  buffer = {};
  EXPECT_TRUE(seen.expired());
}

TEST(BufferPool, ManyThreadsHaveEachTheirOwn) {
  const auto pool = std::make_shared<BufferPool>();
  std::vector<std::thread> threads;
  for (int number = 1; number <= 4; ++number) {
    threads.emplace_back([&pool, number] {
      for (int i = 0; i < 500; ++i) {
        const Buffer buffer = TakeBuffer(pool, static_cast<size_t>(40'000 + 97 * i));
        std::memset(buffer.bytes.data(), number, buffer.bytes.size());
        for (const std::byte each : {buffer.bytes.front(), buffer.bytes.back()}) {
          ASSERT_EQ(each, static_cast<std::byte>(number));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hearth
