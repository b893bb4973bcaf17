// SPDX-License-Identifier: Apache-2.0
// What the shared tier costs beside bare Redis: fetches through the tier, encrypted as always, and
// the same bytes by pipelined GETs of a client that does nothing but read; and what sealing and
// opening a record takes. redis_tier_bench REDIS_PORT [RECORDS]: a Redis on this machine, which is
// filled.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "testing/tier_records.h"
#include "tiers/record_seal.h"
#include "tiers/redis_tier.h"

namespace hearth {
namespace {

using Steady = std::chrono::steady_clock;
using testing::KeyOf;
using testing::RecordOf;
using testing::TierAnswers;

constexpr size_t kRecordBytes = 192 << 10;  // of gpt-oss-20b: 16 tokens of 12 layers
constexpr size_t kAtOnce = 64;
constexpr double kMega = 1e6;

double Since(Steady::time_point began) {
  return std::chrono::duration<double>(Steady::now() - began).count();
}

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

std::string WordOf(std::string_view word) {
  return "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
}

int Connect(int port) {
  const int link = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(link, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) Fail("no Redis");
  return link;
}

void SendAll(int link, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent = send(link, text.data() + at, text.size() - at, 0);
    if (sent <= 0) Fail("Redis has gone");
    at += static_cast<size_t>(sent);
  }
}

// Reads and forgets.
void ReadAll(int link, size_t num_bytes, std::vector<char>& buffer) {
  while (num_bytes > 0) {
    const ssize_t got = recv(link, buffer.data(), std::min(buffer.size(), num_bytes), 0);
    if (got <= 0) Fail("Redis has gone");
    num_bytes -= static_cast<size_t>(got);
  }
}

// MB/s of GETs of values as long as a sealed record, as many under way as through the tier.
double Bare(int port, size_t num_records, size_t value_bytes) {
  const int link = Connect(port);
  std::vector<char> buffer(256 << 10);
  const std::string value(value_bytes, 'x');
  const auto name = [](size_t i) { return "bare" + std::to_string(1000 + i % 64); };
  for (size_t i = 0; i < 64; ++i) {
    SendAll(link, "*3\r\n" + WordOf("SET") + WordOf(name(i)) + WordOf(value));
    ReadAll(link, 5, buffer);
  }
  const size_t reply = 1 + std::to_string(value_bytes).size() + 2 + value_bytes + 2;
  const auto began = Steady::now();
  for (size_t i = 0; i < num_records; i += kAtOnce) {
    std::string asked;
    const size_t count = std::min(kAtOnce, num_records - i);
    for (size_t k = 0; k < count; ++k) asked += "*2\r\n" + WordOf("GET") + WordOf(name(i + k));
    SendAll(link, asked);
    ReadAll(link, count * reply, buffer);
  }
  const double took = Since(began);
  close(link);
  return static_cast<double>(num_records * value_bytes) / took / kMega;
}

double Fetched(int port, size_t num_records, const std::shared_ptr<const RecordSeal>& seal) {
  RedisTierOptions options;
  RedisAddress address;
  address.host = "127.0.0.1";
  address.port = port;
  options.servers = {address};
  options.link.seal = seal;
  options.link.connect.max_reply_bytes = 2 * kRecordBytes;
  RedisTier tier(options);
  TierAnswers answers;
  tier.Connect(&answers);
  while (!tier.stats().is_reading || !tier.stats().is_writing) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (uint64_t i = 0; i < 64; ++i) {
    tier.Store(i + 1, KeyOf(i), 0, RecordOf(i, kRecordBytes));
    if (answers.Wait(i + 1)->outcome != TierOutcome::kDone) Fail("a store failed");
  }
  TransferId next = 1000;
  const auto began = Steady::now();
  for (size_t i = 0; i < num_records; i += kAtOnce) {
    const size_t count = std::min(kAtOnce, num_records - i);
    for (size_t k = 0; k < count; ++k) tier.Fetch(next + k, KeyOf((i + k) % 64), 0);
    for (size_t k = 0; k < count; ++k) {
      const auto done = answers.Wait(next + k);
      if (!done || done->outcome != TierOutcome::kDone) Fail("a fetch failed");
    }
    next += count;
  }
  const double took = Since(began);
  tier.Connect(nullptr);
  return static_cast<double>(num_records * kRecordBytes) / took / kMega;
}

// MB/s of sealing and of opening, on one thread.
void Seals(const RecordSeal& seal, size_t num_records) {
  const std::vector<std::byte> record = RecordOf(1, kRecordBytes);
  auto began = Steady::now();
  std::vector<std::byte> sealed;
  for (size_t i = 0; i < num_records; ++i) sealed = seal.Seal(KeyOf(1), record);
  const double sealing = Since(began);
  began = Steady::now();
  for (size_t i = 0; i < num_records; ++i) {
    if (!seal.Open(KeyOf(1), sealed)) Fail("a seal does not open");
  }
  const double bytes = static_cast<double>(num_records * record.size()) / kMega;
  std::printf("encrypt %.0f MB/s, decrypt %.0f MB/s, on one thread; %zu bytes more a record\n",
              bytes / sealing, bytes / Since(began), sealed.size() - record.size());
}

int Run(int port, size_t num_records) {
  const auto seal = std::make_shared<const RecordSeal>("a secret of 16 bytes or more");
  Seals(*seal, 2000);
  const size_t bytes = seal->Seal(KeyOf(1), RecordOf(1, kRecordBytes)).size();
  for (int round = 0; round < 3; ++round) {
    const double bare = Bare(port, num_records, bytes), tier = Fetched(port, num_records, seal);
    std::printf("bare GET %.0f MB/s, through the tier %.0f MB/s: %.0f %%\n", bare, tier,
                100 * tier / bare);
  }
  return 0;
}

int NumberIn(std::string_view text, int otherwise) {
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int count = argc > 2 ? hearth::NumberIn(argv[2], 5000) : 5000;
  return hearth::Run(hearth::NumberIn(argv[1], 0), static_cast<size_t>(count));
}
