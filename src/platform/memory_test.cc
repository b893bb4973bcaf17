// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

namespace hearth {
namespace {

bool AllZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

TEST(LargeBuffer, IsAlignedZeroedAndWritable) {
  const size_t huge = LargeBuffer::kAlignment;
  for (const size_t size : {size_t{1}, size_t{4097}, huge - 1, huge, huge + 1, 5 * huge}) {
    Result<LargeBuffer> made = LargeBuffer::Make(size);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const std::span<std::byte> bytes = made->bytes();
    ASSERT_EQ(bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % LargeBuffer::kAlignment, 0u);
    EXPECT_TRUE(AllZero(bytes));
    std::fill(bytes.begin(), bytes.end(), std::byte{0x5a});
    EXPECT_EQ(bytes.back(), std::byte{0x5a});
  }
}

TEST(LargeBuffer, MovesWithoutLosingOrFreeingTwice) {
  LargeBuffer first = *LargeBuffer::Make(100);
  first.bytes()[0] = std::byte{1};
  LargeBuffer second = std::move(first);
  EXPECT_EQ(second.bytes()[0], std::byte{1});
  LargeBuffer third = *LargeBuffer::Make(200);
  third = std::move(second);
  EXPECT_EQ(third.bytes().size(), 100u);
  EXPECT_EQ(third.bytes()[0], std::byte{1});
}

TEST(LargeBuffer, RefusesWhatCannotBe) {
  EXPECT_EQ(LargeBuffer::Make(0).status().code(), Code::kInvalid);
  EXPECT_EQ(LargeBuffer::Make(SIZE_MAX).status().code(), Code::kExhausted);
  EXPECT_EQ(LargeBuffer::Make(SIZE_MAX / 2).status().code(), Code::kExhausted);
  EXPECT_EQ(LargeBuffer::Make(size_t{1} << 60).status().code(), Code::kExhausted);
}

TEST(LargeBuffer, TakesAPartAndKeepsWhatIsInIt) {
  Result<LargeBuffer> buffer = LargeBuffer::Make(size_t{64} << 20);
  ASSERT_TRUE(buffer.ok());
  const auto bytes = buffer->bytes();
  bytes[100] = std::byte{7};
  ASSERT_TRUE(buffer->Take(50, size_t{8} << 20).ok());
  EXPECT_EQ(bytes[100], std::byte{7});
  std::vector<unsigned char> pages(bytes.size() / 4096);
  ASSERT_EQ(::mincore(bytes.data(), bytes.size(), pages.data()), 0);
  for (size_t i = 0; i < 2048; ++i) EXPECT_EQ(pages[i] & 1, 1) << i;
  EXPECT_EQ(pages.back() & 1, 0) << "nobody asked for that part";
  EXPECT_TRUE(buffer->Take(0, 0).ok());
}

uint64_t AddressSpacePages() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST(LargeBuffer, GivesEverythingBack) {
  const uint64_t before = AddressSpacePages();
  ASSERT_GT(before, 0u);
  for (size_t i = 0; i < 64; ++i) ASSERT_TRUE(LargeBuffer::Make((i << 20) + 1).ok());
  // One lost piece per round would be 64 huge pages, 32768 small ones.
  EXPECT_LT(AddressSpacePages(), before + 1024);
}

TEST(SparseBytes, HoldsWhatWasFilledAndNothingElse) {
  Result<SparseBytes> made = SparseBytes::Make(size_t{1} << 40);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const std::vector<std::byte> part(5000, std::byte{7});
  ASSERT_TRUE(made->Fill(100, part).ok());
  ASSERT_TRUE(made->Fill(4096 * 9 + 1, part).ok());
  const SparseBytes moved = *std::move(made);
  EXPECT_EQ(moved.bytes().size(), size_t{1} << 40);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), moved.bytes().begin() + 100));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), moved.bytes().begin() + 4096 * 9 + 1));
  EXPECT_TRUE(AllZero(moved.bytes().first(100)));
  EXPECT_TRUE(AllZero(moved.bytes().subspan(5100, 4096 * 9 + 1 - 5100)));
  EXPECT_TRUE(AllZero(moved.bytes().subspan(size_t{1} << 39, 10000)));
  EXPECT_FALSE(SparseBytes::Make(0).ok());
  EXPECT_EQ(SparseBytes::Make(SIZE_MAX / 2).status().code(), Code::kExhausted);
}

// Every machine has node 0; no machine has node 900.
TEST(LargeBuffer, PrefersMemoryNodes) {
  auto buffer = LargeBuffer::Make(size_t{4} << 20);
  ASSERT_TRUE(buffer.ok());
  const int zero = 0, far = 900, impossible = 5000;
  if (!buffer->Prefer(0, size_t{2} << 20, {&zero, 1})) GTEST_SKIP() << "mbind is refused here";
  EXPECT_FALSE(buffer->Prefer(0, size_t{2} << 20, {&far, 1}));
  EXPECT_FALSE(buffer->Prefer(0, size_t{2} << 20, {&impossible, 1}));
  const int both[] = {0, 0};
  EXPECT_TRUE(buffer->Prefer(size_t{2} << 20, size_t{2} << 20, both));
  buffer->bytes()[0] = std::byte{1};  // taken from there, and as good as any
  EXPECT_TRUE(buffer->Take(0, size_t{4} << 20).ok());
  EXPECT_EQ(buffer->bytes()[0], std::byte{1});
}

}  // namespace
}  // namespace hearth
