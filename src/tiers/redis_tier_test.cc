// SPDX-License-Identifier: Apache-2.0
// Against a real redis-server, which each test starts, and against servers that say what they like.
#include "tiers/redis_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "testing/real_redis.h"
#include "testing/temp_dir.h"

extern char** environ;

namespace hearth {
namespace {

using ::testing::HasSubstr;
using testing::RealRedis;
using testing::Until;

TierKey KeyOf(uint64_t number) { return {{number * 0x9e3779b97f4a7c15u, number}, 0}; }

std::vector<std::byte> RecordOf(uint64_t number, size_t size = 5000) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(number * 31 + i * 7);
  return bytes;
}

class Heard : public TierListener {
 public:
  void OnTransfer(TierDone done) override {
    const MutexLock lock(mu_);
    done_[done.id].push_back(std::move(done));
  }
  bool Has(TransferId id) {
    const MutexLock lock(mu_);
    return done_.contains(id);
  }
  // Waits for it.
  TierDone Of(TransferId id) {
    EXPECT_TRUE(Until([&] { return Has(id); })) << "no answer to " << id;
    const MutexLock lock(mu_);
    EXPECT_EQ(done_[id].size(), 1u) << "one answer";
    return done_[id].empty() ? TierDone() : done_[id][0];
  }

 private:
  Mutex mu_;
  std::map<TransferId, std::vector<TierDone>> done_ HEARTH_GUARDED_BY(mu_);
};

class RedisTierTest : public ::testing::Test {
 protected:
  std::string Socket(const std::string& name = "a") { return dir_.path() + "/" + name + ".sock"; }
  RedisTierOptions Options(const std::vector<std::string>& servers, const char* secret = "secret") {
    RedisTierOptions options;
    for (const std::string& server : servers) {
      Result<RedisAddress> address = ParseRedisAddress(server);
      EXPECT_TRUE(address.ok()) << address.status().message();
      options.servers.push_back(*address);
    }
    options.link.seal = std::make_shared<RecordSeal>(secret);
    options.link.stall_us = 300'000;
    options.link.first_retry_us = 20'000;
    options.link.last_retry_us = 100'000;
    options.link.say = [this](const std::string& line) {
      const MutexLock lock(mu_);
      said_.push_back(line);
    };
    return options;
  }
  std::unique_ptr<RedisTier> Open(const RedisTierOptions& options, bool waits = true) {
    auto tier = std::make_unique<RedisTier>(options);
    tier->Connect(&heard_);
    if (waits) {
      EXPECT_TRUE(Until([&] { return IsUp(*tier); }));
    }
    return tier;
  }
  static bool IsUp(const RedisTier& tier) {
    return tier.stats().is_reading && tier.stats().is_writing;
  }
  std::string Said() {
    const MutexLock lock(mu_);
    std::string all;
    for (const std::string& line : said_) all += line + "\n";
    return all;
  }
  TierOutcome Put(RedisTier& tier, uint64_t number, size_t size = 5000) {
    const TransferId id = next_++;
    tier.Store(id, KeyOf(number), 0, RecordOf(number, size));
    return heard_.Of(id).outcome;
  }
  TierDone Get(RedisTier& tier, uint64_t number) {
    const TransferId id = next_++;
    tier.Fetch(id, KeyOf(number), 0);
    return heard_.Of(id);
  }
  bool Ask(RedisTier& tier, const std::vector<TierKey>& keys) {
    const TransferId id = next_++;
    if (!tier.Ask(id, keys)) return false;
    return heard_.Of(id).outcome == TierOutcome::kDone;
  }

  testing::TempDir dir_;
  Heard heard_;
  TransferId next_ = 1;
  Mutex mu_;
  std::vector<std::string> said_ HEARTH_GUARDED_BY(mu_);
};

TEST_F(RedisTierTest, AnotherReplicaFindsWhatOneStored) {
  const RealRedis redis(Socket());
  const auto one = Open(Options({"unix://" + Socket()}));
  for (uint64_t i = 1; i <= 100; ++i) {
    EXPECT_TRUE(one->Wants(KeyOf(i)));
    ASSERT_EQ(Put(*one, i, i * 997), TierOutcome::kDone);
    EXPECT_FALSE(one->Wants(KeyOf(i)));
    EXPECT_TRUE(one->MayHave(KeyOf(i)));
  }
  const auto two = Open(Options({"unix://" + Socket()}));
  std::vector<TierKey> keys;
  for (uint64_t i = 1; i <= 120; ++i) keys.push_back(KeyOf(i));
  EXPECT_FALSE(two->MayHave(keys[0])) << "nobody asked yet";
  ASSERT_TRUE(Ask(*two, keys));
  for (uint64_t i = 1; i <= 120; ++i) EXPECT_EQ(two->MayHave(KeyOf(i)), i <= 100) << i;
  for (uint64_t i = 1; i <= 100; ++i) {
    const TierDone done = Get(*two, i);
    ASSERT_EQ(done.outcome, TierOutcome::kDone);
    ASSERT_EQ(done.record, RecordOf(i, i * 997));
  }
  EXPECT_EQ(Get(*two, 120).outcome, TierOutcome::kMissing);
  EXPECT_FALSE(Ask(*two, {KeyOf(7)})) << "known already";
  const TierStats stats = two->stats();
  EXPECT_EQ(stats.num_hits, 100u);
  EXPECT_EQ(stats.num_misses, 1u);
  EXPECT_GT(stats.bytes_read, 0);
  EXPECT_EQ(one->stats().num_stored, 100u);
}

TEST_F(RedisTierTest, AnotherSecretFindsNothing) {
  const RealRedis redis(Socket());
  const auto one = Open(Options({"unix://" + Socket()}));
  ASSERT_EQ(Put(*one, 1), TierOutcome::kDone);
  const auto stranger = Open(Options({"unix://" + Socket()}, "another"));
  EXPECT_EQ(Get(*stranger, 1).outcome, TierOutcome::kMissing);
  EXPECT_EQ(stranger->stats().num_corrupt, 1u);
}

TEST_F(RedisTierTest, SeveralServersShareTheBlocks) {
  const RealRedis a(Socket("a")), b(Socket("b")), c(Socket("c"));
  const std::vector<std::string> servers = {"unix://" + Socket("a"), "unix://" + Socket("b"),
                                            "unix://" + Socket("c")};
  const auto all = Open(Options(servers));
  for (uint64_t i = 1; i <= 60; ++i) ASSERT_EQ(Put(*all, i), TierOutcome::kDone);
  for (const std::string& server : servers) {
    const auto alone = Open(Options({server}));
    std::vector<TierKey> keys;
    for (uint64_t i = 1; i <= 60; ++i) keys.push_back(KeyOf(i));
    ASSERT_TRUE(Ask(*alone, keys));
    int count = 0;
    for (const TierKey& key : keys) count += alone->MayHave(key);
    EXPECT_GE(count, 5) << server;
    EXPECT_LE(count, 40) << server;
  }
}

TEST(RedisServers, MoveLittleWhenOneComes) {
  const std::vector<uint64_t> three = {11, 22, 33}, four = {11, 22, 33, 44};
  int moved = 0, wrong = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const size_t before = RedisTier::ServerOf(KeyOf(i), three);
    const size_t after = RedisTier::ServerOf(KeyOf(i), four);
    moved += before != after;
    wrong += before != after && after != 3;
  }
  EXPECT_EQ(wrong, 0) << "what moves goes to the new one";
  EXPECT_GT(moved, 800);
  EXPECT_LT(moved, 1200);
}

TEST_F(RedisTierTest, AServerThatGoesAndComesBackEmpty) {
  RealRedis redis(Socket());
  const auto tier = Open(Options({"unix://" + Socket()}));
  ASSERT_EQ(Put(*tier, 1), TierOutcome::kDone);
  redis.Stop();
  ASSERT_TRUE(Until([&] { return !tier->stats().is_reading && !tier->stats().is_writing; }));
  EXPECT_FALSE(tier->MayHave(KeyOf(1))) << "nobody waits for what is away";
  EXPECT_FALSE(tier->Wants(KeyOf(2)));
  EXPECT_EQ(Get(*tier, 1).outcome, TierOutcome::kFailed);
  EXPECT_NE(Put(*tier, 2), TierOutcome::kDone);
  EXPECT_FALSE(Ask(*tier, {KeyOf(9)}));
  // Said by the link's thread, after nobody asks it any more.
  EXPECT_TRUE(
      Until([&] { return Said().find("serving goes on without it") != std::string::npos; }));
  redis.Start();
  ASSERT_TRUE(Until([&] { return IsUp(*tier); }));
  EXPECT_EQ(Get(*tier, 1).outcome, TierOutcome::kMissing);
  EXPECT_TRUE(tier->Wants(KeyOf(1))) << "to be stored again";
  EXPECT_EQ(Put(*tier, 1), TierOutcome::kDone);
  EXPECT_EQ(Get(*tier, 1).record, RecordOf(1));
}

TEST_F(RedisTierTest, AStalledServerIsGivenUp) {
  RealRedis redis(Socket());
  const auto tier = Open(Options({"unix://" + Socket()}));
  ASSERT_EQ(Put(*tier, 1), TierOutcome::kDone);
  redis.Signal(SIGSTOP);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Get(*tier, 1).outcome, TierOutcome::kFailed);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  EXPECT_THAT(Said(), HasSubstr("does not answer"));
  redis.Signal(SIGCONT);
  ASSERT_TRUE(Until([&] { return IsUp(*tier); }));
  EXPECT_EQ(Get(*tier, 1).record, RecordOf(1));
}

TEST_F(RedisTierTest, AWrongPasswordIsSaidOnce) {
  const RealRedis redis(Socket(), {"--requirepass", "right"});
  RedisTierOptions options = Options({"unix://" + Socket()});
  options.servers[0].password = "wrong";
  const auto tier = Open(options, false);
  ASSERT_TRUE(Until([&] { return !Said().empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // several tries
  EXPECT_THAT(Said(), HasSubstr("refuses our password"));
  {
    const MutexLock lock(mu_);
    EXPECT_EQ(said_.size(), 1u);
  }
  EXPECT_EQ(Get(*tier, 1).outcome, TierOutcome::kFailed);
  options.servers[0].password = "right";
  const auto welcome = Open(options);
  EXPECT_EQ(Put(*welcome, 1), TierOutcome::kDone);
}

TEST_F(RedisTierTest, AFullServerRefusesAndServingGoesOn) {
  const RealRedis redis(Socket(), {"--maxmemory", "3mb", "--maxmemory-policy", "noeviction"});
  const auto tier = Open(Options({"unix://" + Socket()}));
  int num_full = 0;
  for (uint64_t i = 1; i <= 40; ++i) num_full += Put(*tier, i, 200'000) == TierOutcome::kFull;
  EXPECT_GT(num_full, 0);
  EXPECT_TRUE(IsUp(*tier));
  EXPECT_GT(tier->stats().num_declined, 0u);
}

TEST_F(RedisTierTest, SaysHowLargeTheServersAre) {
  const RealRedis redis(Socket(), {"--maxmemory", "64mb"});
  const auto tier = Open(Options({"unix://" + Socket()}));
  EXPECT_EQ(tier->stats().capacity_bytes, 0) << "nobody asked";
  Put(*tier, 1);
  EXPECT_TRUE(Until([&] { return tier->stats().capacity_bytes == 64 << 20; }));
  EXPECT_GT(tier->stats().used_bytes, 0);
  EXPECT_EQ(tier->stats().num_records, -1);
}

TEST_F(RedisTierTest, BesideOthersATenantWritesItsShareAndNoMore) {
  const RealRedis redis(Socket(), {"--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru"});
  const auto tier = Open(Options({"unix://" + Socket()}));
  const auto put = [&](uint64_t number, uint32_t tenant) {
    tier->Store(next_, KeyOf(number), tenant, RecordOf(number, 100'000));
    return heard_.Of(next_++).outcome;
  };
  ASSERT_EQ(put(1, 7), TierOutcome::kDone);
  ASSERT_TRUE(Until([&] { return tier->stats().capacity_bytes > 0; }));
  ASSERT_EQ(put(2, 7), TierOutcome::kDone);
  int num_stored = 0;
  for (uint64_t i = 100; i < 200; ++i) num_stored += put(i, 8) == TierOutcome::kDone;
  EXPECT_GE(num_stored, 40) << "half of 8 MiB";
  EXPECT_LE(num_stored, 45);
  EXPECT_EQ(put(3, 7), TierOutcome::kDone) << "the other one's share is its own";
  EXPECT_GT(tier->stats().num_declined, 50u);
}

TEST_F(RedisTierTest, ManyAtOnce) {
  const RealRedis redis(Socket());
  const auto tier = Open(Options({"unix://" + Socket()}));
  std::vector<TransferId> ids;
  for (uint64_t i = 1; i <= 300; ++i) {
    tier->Store(next_, KeyOf(i), 0, RecordOf(i, 50'000));
    ids.push_back(next_++);
  }
  for (const TransferId id : ids) ASSERT_EQ(heard_.Of(id).outcome, TierOutcome::kDone);
  const TransferId first = next_;
  for (uint64_t i = 1; i <= 300; ++i) tier->Fetch(next_++, KeyOf(i), 0);
  for (uint64_t i = 1; i <= 300; ++i) {
    ASSERT_EQ(heard_.Of(first + i - 1).record, RecordOf(i, 50'000)) << i;
  }
}

// Says `greeting` to the login and `rest` to everything after it.
class Liar {
 public:
  Liar(const std::string& socket, std::string rest) : rest_(std::move(rest)) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    socket.copy(to.sun_path, sizeof to.sun_path - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    listen(listener_, 8);
    thread_ = std::thread([this] { Run(); });
  }
  ~Liar() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (std::thread& each : talks_) each.join();
    close(listener_);
  }

 private:
  void Run() {
    while (true) {
      const int one = accept(listener_, nullptr, nullptr);
      if (one < 0) return;
      talks_.emplace_back([this, one] { Talk(one); });
    }
  }
  void Talk(int one) {
    char buffer[65536];
    if (recv(one, buffer, sizeof buffer, 0) > 0) {
      send(one, "+OK\r\n", 5, MSG_NOSIGNAL);
      while (recv(one, buffer, sizeof buffer, 0) > 0) {
        if (send(one, rest_.data(), rest_.size(), MSG_NOSIGNAL) < 0) break;
      }
    }
    close(one);
  }
  const std::string rest_;
  int listener_ = -1;
  std::thread thread_;
  std::vector<std::thread> talks_;
};

TEST_F(RedisTierTest, NothingThatAServerSaysIsBelieved) {
  std::string swapped;  // sealed well, for another key
  {
    const RecordSeal seal("secret");
    const std::vector<std::byte> sealed = seal.Seal(KeyOf(2), RecordOf(2));
    swapped = "$" + std::to_string(sealed.size()) + "\r\n" +
              std::string(reinterpret_cast<const char*>(sealed.data()), sealed.size()) + "\r\n";
  }
  const std::vector<std::string> lies = {
      "$5\r\nhello\r\n",
      swapped,
      "$0\r\n\r\n",
      "$-1\r\n",
      "$-7\r\n",
      "$99999999999999999999\r\n",
      "$2147483647\r\nxx",
      "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
      "*1000000000\r\n",
      "*-1\r\n",
      ":1\r\n",
      "+OK\r\n",
      "-ERR no\r\n",
      "-OOM no\r\n",
      "?what\r\n",
      std::string(300'000, 'x'),
      std::string(1000, '\0'),
      "\r\n\r\n\r\n",
      "$5\r\nhelloXX",
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    const std::string socket = Socket("liar" + std::to_string(i));
    Liar liar(socket, lies[i]);
    RedisTierOptions options = Options({"unix://" + socket});
    options.link.connect.max_reply_bytes = 1 << 20;
    options.info_us = 0;  // it answers what comes together once
    const auto tier = Open(options);
    for (int round = 0; round < 3; ++round) {
      const TierDone done = Get(*tier, 1);
      EXPECT_NE(done.outcome, TierOutcome::kDone) << lies[i].substr(0, 40);
      EXPECT_TRUE(done.record.empty());
    }
    Ask(*tier, {KeyOf(1), KeyOf(3)});
    Put(*tier, 5);
  }
}

TEST_F(RedisTierTest, StoresGiveWayToFetchesButNotForEver) {
  const RealRedis redis(Socket());
  const RedisTierOptions options = Options({"unix://" + Socket()});
  std::atomic<bool> is_fetching = true;
  std::atomic<int> num_stored = 0;
  RedisLinkOptions patient = options.link;
  patient.gives_way = [&] { return is_fetching.load(); };
  RedisLink link(options.servers[0], patient, [&](const RedisAnswer&) { ++num_stored; });
  ASSERT_TRUE(Until([&] { return link.is_up(); }));
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(link.Push({RedisTask::Kind::kSet, i, {KeyOf(i)}, RecordOf(i)}));
  }
  EXPECT_TRUE(link.is_busy());
  // One after 0.2 s; without giving way all twenty would be there at once.
  ASSERT_TRUE(Until([&] { return num_stored > 0; }));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(190));
  EXPECT_LT(num_stored, 20);
  is_fetching = false;
  EXPECT_TRUE(Until([&] { return num_stored == 20; }));
  EXPECT_FALSE(link.is_busy());
}

}  // namespace
}  // namespace hearth
