// SPDX-License-Identifier: Apache-2.0
// The disk tier after the worst: its process killed at any moment, its files damaged. Every start
// succeeds, what it gives back is what was stored, and it stays within its bound.
// disk_trial crash COUNT, disk_trial damage COUNT: so many times. `fill DIR SEED` is for crash.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "testing/tier_records.h"
#include "tiers/disk_tier.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using testing::KeyOf;
using testing::RecordOf;
using testing::TierAnswers;

constexpr int64_t kMaxBytes = int64_t{16} << 20;
constexpr uint64_t kNumbers = 1500;  // 48 MiB of records, for room of 16
constexpr uint64_t kFitting = 240;

[[noreturn]] void Fail(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

DiskTierOptions Options() {
  DiskTierOptions options;
  options.store.max_bytes = kMaxBytes;
  options.flush_after_us = 20'000;
  return options;
}

std::unique_ptr<DiskTier> OpenTier(const fs::path& folder, const char* when) {
  Result<std::unique_ptr<DiskTier>> tier = DiskTier::Open(folder.string(), Options());
  if (!tier.ok()) Fail(std::string("no start ") + when + ": " + tier.status().message());
  return std::move(*tier);
}

int64_t BytesIn(const fs::path& folder) {
  int64_t sum = 0;
  for (const auto& each : fs::directory_iterator(folder)) {
    std::error_code gone;
    const auto size = each.file_size(gone);
    if (!gone) sum += static_cast<int64_t>(size);
  }
  return sum;
}

// How many of all records are there; each is what it should be.
uint64_t CheckAll(DiskTier& tier, TierAnswers& answers) {
  static TransferId next = 1;
  const TransferId first = next;
  std::vector<uint64_t> asked;
  for (uint64_t number = 0; number < kNumbers; ++number) {
    if (!tier.MayHave(KeyOf(number))) continue;
    asked.push_back(number);
    tier.Fetch(next++, KeyOf(number), 0);
  }
  uint64_t num_hits = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto done = answers.Wait(first + i);
    if (!done) Fail("a fetch without an answer");
    if (done->outcome != TierOutcome::kDone) continue;
    if (done->record != RecordOf(asked[i]))
      Fail("wrong bytes of record " + std::to_string(asked[i]));
    ++num_hits;
  }
  return num_hits;
}

void FillOnce(DiskTier& tier, TierAnswers& answers, uint64_t first, uint64_t count) {
  static TransferId next = TransferId{1} << 40;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t number = (first + i) % kNumbers;
    tier.Store(next, KeyOf(number), 0, RecordOf(number));
    if (!answers.Wait(next++)) Fail("a store without an answer");
  }
}

[[noreturn]] void Fill(const fs::path& folder, uint64_t seed) {
  TierAnswers answers;
  const auto tier = OpenTier(folder, "to fill it");
  tier->Connect(&answers);
  if (write(STDOUT_FILENO, "\n", 1) != 1) Fail("nobody listens");
  std::mt19937_64 random(seed);
  while (true) {
    FillOnce(*tier, answers, random() % kNumbers, random() % 40);
    if (random() % 8 == 0) CheckAll(*tier, answers);
  }
}

struct Filler {
  pid_t process = 0;
  int said = -1;  // a byte when its tier is open
};

Filler StartFilling(const fs::path& folder, uint64_t seed) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Fail("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string program = "/proc/self/exe", verb = "fill", where = folder.string(),
              number = std::to_string(seed);
  char* const arguments[] = {program.data(), verb.data(), where.data(), number.data(), nullptr};
  Filler filler{.said = ends[0]};
  if (posix_spawn(&filler.process, program.c_str(), &actions, nullptr, arguments, environ) != 0) {
    Fail("cannot start a process");
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  return filler;
}

void Crash(const fs::path& folder, int count) {
  std::mt19937_64 random(1);
  uint64_t num_hits = 0;
  int64_t most = 0;
  for (int i = 0; i < count; ++i) {
    const Filler filler = StartFilling(folder, random());
    char byte = 0;
    // Some die while they open it, however fast the machine is.
    if (i % 4 != 0 && read(filler.said, &byte, 1) != 1) Fail("no start in another process");
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % (i % 4 == 0 ? 20 : 250)));
    kill(filler.process, SIGKILL);
    close(filler.said);
    int state = 0;
    waitpid(filler.process, &state, 0);
    if (!WIFSIGNALED(state)) Fail("the process ended by itself");
    if (!fs::exists(folder)) continue;  // it had no time at all
    TierAnswers answers;
    const auto tier = OpenTier(folder, "after a kill");
    tier->Connect(&answers);
    num_hits += CheckAll(*tier, answers);
    if (tier->stats().num_corrupt > 0) Fail("a kill damaged a record");
    most = std::max(most, BytesIn(folder));
    tier->Connect(nullptr);
  }
  std::printf("%d kills: %llu records found and right, at most %.1f of %.0f MiB on disk\n", count,
              static_cast<unsigned long long>(num_hits), static_cast<double>(most) / (1 << 20),
              static_cast<double>(kMaxBytes) / (1 << 20));
  if (num_hits == 0) Fail("nothing survived");
  if (most > kMaxBytes + (1 << 20)) Fail("more on disk than the bound");
}

// One of the ways in which files go bad, to a file that matters.
std::string DamageOne(const fs::path& folder, std::mt19937_64& random) {
  std::vector<fs::path> files;
  for (const auto& each : fs::directory_iterator(folder)) {
    const std::string name = each.path().filename().string();
    if (name != "LOCK" && !name.starts_with("LOG")) files.push_back(each.path());
  }
  std::ranges::sort(files);
  const fs::path file = files[random() % files.size()], other = files[random() % files.size()];
  const auto size = fs::file_size(file);
  const std::string name = file.filename().string();
  switch (random() % 4) {
    case 0:
      fs::resize_file(file, size == 0 ? 0 : random() % size);
      return "truncated " + name;
    case 1:
      for (uint64_t i = 0, flips = 1 + random() % 64; i < flips && size > 0; ++i) {
        std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
        const auto at = static_cast<std::streamoff>(random() % size);
        bytes.seekg(at);
        const int old = bytes.get();
        bytes.seekp(at);
        bytes.put(static_cast<char>(old ^ (1 << random() % 8)));
      }
      return "flipped bits of " + name;
    case 2:
      fs::remove(file);
      return "removed " + name;
    default:
      fs::rename(file, folder / "swap");
      if (file != other) fs::rename(other, file);
      fs::rename(folder / "swap", file != other ? other : file);
      return "swapped " + name + " and " + other.filename().string();
  }
}

void Damage(const fs::path& folder, int count) {
  const fs::path good = folder.string() + "-good";
  {
    TierAnswers answers;
    const auto tier = OpenTier(good, "at first");
    tier->Connect(&answers);
    FillOnce(*tier, answers, 0, kFitting);
    if (CheckAll(*tier, answers) != kFitting) Fail("records were lost without any damage");
    tier->Connect(nullptr);
  }
  std::mt19937_64 random(2);
  uint64_t num_hits = 0;
  int num_noticed = 0;
  for (int i = -1; i < count; ++i) {
    fs::remove_all(folder);
    fs::copy(good, folder, fs::copy_options::recursive);
    std::string what = i < 0 ? "nothing" : DamageOne(folder, random);
    if (i >= 0 && random() % 3 == 0) what += ", " + DamageOne(folder, random);
    TierAnswers answers;
    const auto tier = OpenTier(folder, what.c_str());
    tier->Connect(&answers);
    const uint64_t hits = CheckAll(*tier, answers);
    if (i < 0 && hits != kFitting) Fail("a copy lost " + std::to_string(kFitting - hits));
    if (i >= 0) num_hits += hits;
    num_noticed += hits < kFitting;
    FillOnce(*tier, answers, 400, 5);  // and it goes on
    for (uint64_t number = 400; number < 405; ++number) {
      if (!tier->MayHave(KeyOf(number))) Fail("nothing can be stored after: " + what);
    }
    tier->Connect(nullptr);
  }
  std::printf("%d damages: %d noticed, %.0f %% of the records still found, none wrong\n", count,
              num_noticed, 100.0 * static_cast<double>(num_hits) / kFitting / count);
  if (num_noticed * 3 < count) Fail("the damage does not damage");
}

uint64_t NumberIn(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "fill" && argc == 4) hearth::Fill(argv[2], hearth::NumberIn(argv[3]));
  if (argc != 3) return 2;
  std::string folder = (hearth::fs::temp_directory_path() / "disk-trial-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  const auto count = static_cast<int>(hearth::NumberIn(argv[2]));
  const hearth::fs::path store = hearth::fs::path(folder) / "blocks";
  if (verb == "crash") hearth::Crash(store, count);
  if (verb == "damage") hearth::Damage(store, count);
  hearth::fs::remove_all(folder);
  return 0;
}
