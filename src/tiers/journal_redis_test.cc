// SPDX-License-Identifier: Apache-2.0
// The reply journal in a real redis-server.
#include "tiers/journal_redis.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "testing/real_redis.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using testing::RealRedis;
using testing::Until;

class JournalRedisTest : public ::testing::Test {
 protected:
  std::string Socket(const std::string& name = "a") const {
    return dir_.path() + "/" + name + ".sock";
  }
  std::unique_ptr<JournalRedis> Open(const std::vector<std::string>& sockets,
                                     const char* secret = "secret") {
    JournalRedisOptions options;
    for (const std::string& socket : sockets) {
      options.servers.push_back(*ParseRedisAddress("unix://" + socket));
    }
    options.link.seal = std::make_shared<RecordSeal>(secret);
    options.link.stall_us = 300'000;
    options.link.first_retry_us = 20'000;
    options.link.last_retry_us = 100'000;
    options.patience = std::chrono::milliseconds(5000);  // of a busy machine; answers come at once
    return std::make_unique<JournalRedis>(options);
  }
  // Until it is there: a link comes up when it can, and what is put before that is lost.
  static bool PutUntilThere(JournalRedis& journal, const std::string& name,
                            const std::string& record) {
    return Until([&] {
      journal.Put(name, record);
      return journal.Get(name) == record;
    });
  }
  static std::string Name(char digit) { return std::string(32, digit); }

  const testing::TempDir dir_;
};

TEST_F(JournalRedisTest, AnotherServerGoesOnWhereOneStopped) {
  const RealRedis redis(Socket());
  const auto one = Open({Socket()});
  ASSERT_TRUE(PutUntilThere(*one, Name('1'), "the first words"));
  one->Put(Name('1'), "the first words and more");
  const auto two = Open({Socket()});
  EXPECT_TRUE(Until([&] { return two->Get(Name('1')) == "the first words and more"; }));
  EXPECT_FALSE(two->Get(Name('2'))) << "never written";
  const std::string long_one(300'000, 'x');
  one->Put(Name('3'), long_one);
  EXPECT_EQ(one->Get(Name('3')), long_one) << "links keep the order";
  one->Put(Name('4'), "");
  EXPECT_EQ(one->Get(Name('4')), "");
}

TEST_F(JournalRedisTest, WithoutTheKeyThereIsNothing) {
  const RealRedis redis(Socket());
  const auto one = Open({Socket()});
  ASSERT_TRUE(PutUntilThere(*one, Name('1'), "mine"));
  const auto stranger = Open({Socket()}, "another secret");
  ASSERT_TRUE(PutUntilThere(*stranger, Name('2'), "theirs")) << "it is connected";
  EXPECT_FALSE(stranger->Get(Name('1')));
  EXPECT_FALSE(one->Get(Name('2')));
  for (const char* bad : {"", "x", "../key", "0123456789ABCDEF0123456789ABCDEF"}) {
    one->Put(bad, "x");
    EXPECT_FALSE(one->Get(bad)) << bad;
  }
}

TEST_F(JournalRedisTest, AServerThatDiesIsDoneWithoutAndComesBack) {
  RealRedis redis(Socket());
  const auto journal = Open({Socket()});
  ASSERT_TRUE(PutUntilThere(*journal, Name('1'), "before"));
  redis.Stop();
  EXPECT_TRUE(Until([&] { return !journal->Get(Name('1')); }));
  journal->Put(Name('1'), "lost");
  redis.Start();
  EXPECT_TRUE(PutUntilThere(*journal, Name('2'), "after"));
  EXPECT_FALSE(journal->Get(Name('1'))) << "it began empty";
}

TEST_F(JournalRedisTest, NobodyWaitsForAServerThatIsSilent) {
  RealRedis redis(Socket());
  const auto journal = Open({Socket()});
  ASSERT_TRUE(PutUntilThere(*journal, Name('1'), "before"));
  redis.Signal(SIGSTOP);
  EXPECT_FALSE(journal->Get(Name('1')));
  journal->Put(Name('1'), "lost or not");
  redis.Signal(SIGCONT);
  EXPECT_TRUE(PutUntilThere(*journal, Name('1'), "again"));
}

TEST_F(JournalRedisTest, EachRecordIsOnOneOfTheServers) {
  const RealRedis first(Socket("a"));
  RealRedis second(Socket("b"));
  const auto journal = Open({Socket("a"), Socket("b")});
  const std::string digits = "0123456789abcdef";
  for (const char digit : digits) {
    ASSERT_TRUE(PutUntilThere(*journal, Name(digit), std::string(10, digit)));
  }
  second.Stop();
  int num_left = 0;
  for (const char digit : digits) num_left += journal->Get(Name(digit)).has_value();
  EXPECT_GT(num_left, 0);
  EXPECT_LT(num_left, 16);
}

}  // namespace
}  // namespace hearth
