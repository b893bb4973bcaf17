// SPDX-License-Identifier: Apache-2.0
// Fetch against recompute: the time to the first token of a prompt that is computed, in memory, or
// in a tier, by its length, and what the engine chooses (tier_curve_bench MODEL LONGEST WHERE...);
// and a reply beside a disk tier at its full rate (MODEL beside DIR NICENESS...).
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/open_backend.h"
#include "app/open_model.h"
#include "engine/clock.h"
#include "engine/engine_core.h"
#include "testing/memory_tier.h"
#include "testing/tier_records.h"
#include "tiers/disk_tier.h"
#include "tiers/redis_tier.h"

namespace hearth {
namespace {

constexpr int kShortest = 32;
constexpr int kRounds = 3;
constexpr uint64_t kKeySeed = 17;  // the same in every engine: they find each other's blocks
// Prompts to be measured, and others of the same lengths that the policy learns from.
constexpr uint64_t kMeasured = 1, kLearned = 2, kUnseen = 3;

struct Ear : EventSink {
  int Room() const override { return 1 << 20; }
  void OnToken(const TokenEvent&) override { ++num_tokens; }
  void OnFinish(const RequestRecord& ended) override { record = ended; }
  int num_tokens = 0;
  RequestRecord record;
};

struct Machine {
  std::unique_ptr<Model> model;
  std::unique_ptr<Backend> backend;
  EngineOptions options;
  SteadyClock clock;
};

std::vector<Token> PromptOf(const Machine& machine, uint64_t set, int length) {
  const auto vocab = static_cast<uint64_t>(machine.backend->vocab_size());
  std::vector<Token> prompt;
  uint64_t state = MixBits(set * 1'000'003 + static_cast<uint64_t>(length));
  for (int i = 0; i < length; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    prompt.push_back(static_cast<Token>((state >> 33) % vocab));
  }
  return prompt;
}

void RunUntil(EngineCore& core, const std::function<bool()>& is_over) {
  while (!is_over()) {
    if (core.Step()) continue;
    const int64_t sleep_us = core.SleepUs();
    core.inbox().Wait(sleep_us < 0 ? 1000 : std::min<int64_t>(sleep_us, 1000));
  }
}

RequestRecord Ask(EngineCore& core, std::vector<Token> prompt, int max_tokens = 1) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  const auto ear = std::make_shared<Ear>();
  if (!core.Submit(std::move(request), ear).ok()) return {};
  RunUntil(core, [&] { return ear->record.finish != Finish::kNone; });
  if (ear->record.first_token_us == 0) {
    std::fprintf(stderr, "a request of %d tokens ended without one: %s, %s\n",
                 ear->record.num_prompt, NameOf(ear->record.finish), ear->record.detail.c_str());
    std::exit(1);
  }
  return ear->record;
}

double FirstTokenUs(const RequestRecord& record) {
  return static_cast<double>(record.first_token_us - record.arrived_us);
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::vector<int> LengthsTo(int longest) {
  std::vector<int> lengths;
  for (int length = kShortest; length <= longest; length *= 2) lengths.push_back(length);
  return lengths;
}

struct Point {
  int length = 0;
  double computed_us = 0, memory_us = 0;
  std::vector<TierKey> keys;  // of the measured prompt, of the blocks that are fetched for it
};

using Records = std::map<TierKey, std::vector<std::byte>>;

// Computes all prompts once, with a tier in memory that keeps what is stored.
std::vector<Point> Compute(Machine& machine, int longest, Records& records) {
  std::vector<Point> points;
  for (const int length : LengthsTo(longest)) {
    Point point;
    point.length = length;
    std::vector<double> computed, memory;
    for (const uint64_t set : {kUnseen, kLearned, kMeasured}) {
      testing::MemoryTier tier;
      EngineCore core(*machine.backend, machine.options, machine.clock, nullptr, &tier);
      computed.push_back(FirstTokenUs(Ask(core, PromptOf(machine, set, length))));
      memory.push_back(FirstTokenUs(Ask(core, PromptOf(machine, set, length))));
      RunUntil(core, [&] {
        const EngineSnapshot now = core.TakeSnapshot();
        return now.tier->storing == 0 && !now.tier->has_more;
      });
      records.insert(tier.records.begin(), tier.records.end());
      if (set == kMeasured) {
        // Fetched once, to see which of them are needed: of windows only the last.
        EngineCore again(*machine.backend, machine.options, machine.clock, nullptr, &tier);
        tier.fetched.clear();
        Ask(again, PromptOf(machine, set, length));
        point.keys = tier.fetched;
      }
    }
    point.computed_us = MedianOf(computed);
    point.memory_us = MedianOf(memory);
    points.push_back(std::move(point));
  }
  return points;
}

// disk=DIR, NAME=REDIS, or NAME=REDIS,FILL.
struct Where {
  std::string name;
  std::string path;     // of a disk
  std::string address;  // or of a Redis server
  std::string fill;     // the same server, by another way
};

std::unique_ptr<Tier> OpenTierAt(const Where& where, const std::string& address,
                                 int niceness = DiskTierOptions().niceness) {
  if (!where.path.empty()) {
    DiskTierOptions options;
    options.store.max_bytes = int64_t{4} << 30;
    options.writes.bytes_per_s = options.writes.burst_bytes = 1e12;
    options.max_waiting_bytes = int64_t{1} << 40;
    options.niceness = niceness;
    Result<std::unique_ptr<DiskTier>> tier = DiskTier::Open(where.path, options);
    if (!tier.ok()) return nullptr;
    return *std::move(tier);
  }
  RedisTierOptions options;
  Result<RedisAddress> parsed = ParseRedisAddress(address);
  if (!parsed.ok()) return nullptr;
  options.servers = {*parsed};
  options.link.seal = std::make_shared<const RecordSeal>("a secret of 16 bytes or more");
  options.link.max_waiting_bytes = int64_t{1} << 40;
  auto tier = std::make_unique<RedisTier>(options);
  for (int i = 0; i < 1000 && !(tier->stats().is_reading && tier->stats().is_writing); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return tier;
}

bool Fill(const Where& where, const Records& records) {
  const std::unique_ptr<Tier> tier = OpenTierAt(where, where.fill);
  if (tier == nullptr) return false;
  testing::TierAnswers answers;
  tier->Connect(&answers);
  TransferId id = 0;
  for (const auto& [key, record] : records) tier->Store(++id, key, 0, record);
  bool is_filled = true;
  for (; id > 0; --id) is_filled = answers.Wait(id)->outcome == TierOutcome::kDone && is_filled;
  tier->Connect(nullptr);
  return is_filled;
}

// From the first question to the last block.
double FetchUs(Tier& tier, const Machine& machine, const std::vector<TierKey>& keys) {
  testing::TierAnswers answers;
  tier.Connect(&answers);
  static TransferId next = TransferId{1} << 40;
  const int64_t began_us = machine.clock.now_us();
  const TransferId ask = next++;
  if (tier.Ask(ask, keys)) answers.Wait(ask);
  const TransferId first = next;
  for (const TierKey& key : keys) tier.Fetch(next++, key, 0);
  bool is_whole = true;
  for (TransferId id = first; id < next; ++id) {
    const auto done = answers.Wait(id);
    is_whole = is_whole && done && done->outcome == TierOutcome::kDone;
  }
  const auto took_us = static_cast<double>(machine.clock.now_us() - began_us);
  tier.Connect(nullptr);
  return is_whole ? took_us : -1;
}

// An engine that has seen both ways, and then a prompt that is in the tier: what it does by itself.
// One that has nothing in its memory each time.
std::vector<double> ChosenUs(Machine& machine, Tier& tier, const std::vector<Point>& points,
                             std::vector<int>& num_fetched) {
  EngineCore core(*machine.backend, machine.options, machine.clock, nullptr, &tier);
  for (const int length : {64, 256}) {
    Ask(core, PromptOf(machine, machine.clock.now_us() + kUnseen, length));
  }
  for (const Point& point : points) Ask(core, PromptOf(machine, kLearned, point.length));
  std::vector<double> chosen;
  for (size_t i = 0; i < points.size(); ++i) {
    const RequestRecord record = Ask(core, PromptOf(machine, kMeasured, points[i].length));
    chosen.push_back(FirstTokenUs(record));
    num_fetched[i] += record.num_loaded > 0;
  }
  return chosen;
}

void Measure(Machine& machine, const Where& where, const std::vector<Point>& points,
             const Records& records) {
  if (!Fill(where, records)) return void(std::printf("%s: cannot be filled\n", where.name.c_str()));
  std::vector<std::vector<double>> fetched(points.size()), chosen(points.size());
  std::vector<int> num_fetched(points.size(), 0);
  for (int round = 0; round < kRounds; ++round) {
    // New each time: one that was asked before knows what it has.
    std::unique_ptr<Tier> tier = OpenTierAt(where, where.address);
    for (size_t i = 0; i < points.size(); ++i) {
      fetched[i].push_back(FetchUs(*tier, machine, points[i].keys));
    }
    tier.reset();
    tier = OpenTierAt(where, where.address);
    const std::vector<double> once = ChosenUs(machine, *tier, points, num_fetched);
    for (size_t i = 0; i < points.size(); ++i) chosen[i].push_back(once[i]);
  }
  for (size_t i = 0; i < points.size(); ++i) {
    // What comes from a tier still has to be put in place, and its last token computed.
    const double fetched_us = MedianOf(fetched[i]) + points[i].memory_us;
    const double best_us = std::min(fetched_us, points[i].computed_us);
    std::printf("%s,%d,%.2f,%.2f,%.2f,%.2f,%d of %d,%.2f\n", where.name.c_str(), points[i].length,
                points[i].computed_us / 1e3, points[i].memory_us / 1e3, fetched_us / 1e3,
                MedianOf(chosen[i]) / 1e3, num_fetched[i], kRounds, MedianOf(chosen[i]) / best_us);
  }
  std::fflush(stdout);
}

// ---- decode beside full-rate fetching and storing ----

// Fetches what is there and stores what is not, without a rest, until it is told to stop.
class Traffic : public TierListener {
 public:
  Traffic(Tier& tier, size_t num_records) : tier_(tier), num_records_(num_records) {
    tier_.Connect(this);
  }
  ~Traffic() override { tier_.Connect(nullptr); }
  void OnTransfer(TierDone done) override {
    bytes += static_cast<int64_t>(done.record.size());
    --num_waiting_;
  }
  void Run() {
    TransferId next = 1;
    uint64_t fresh = num_records_;
    while (!stops) {
      if (num_waiting_ > 64) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        continue;
      }
      for (uint64_t i = 0; i < 32; ++i, ++num_waiting_) {
        tier_.Fetch(next, testing::KeyOf(MixBits(next) % num_records_), 0);
        ++next;
      }
      ++num_waiting_;
      tier_.Store(next++, testing::KeyOf(fresh), 0, testing::RecordOf(fresh, kRecordBytes));
      ++fresh;
    }
    while (num_waiting_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  static constexpr size_t kRecordBytes = 192 << 10;
  std::atomic<bool> stops{false};
  std::atomic<int64_t> bytes{0};

 private:
  Tier& tier_;
  const uint64_t num_records_;
  std::atomic<int> num_waiting_{0};
};

double TokensPerSecond(Machine& machine, uint64_t set) {
  constexpr int kTokens = 200;
  EngineCore core(*machine.backend, machine.options, machine.clock);
  const RequestRecord record = Ask(core, PromptOf(machine, set, 32), kTokens);
  return 1e6 * (record.num_generated - 1) /
         static_cast<double>(record.ended_us - record.first_token_us);
}

int Beside(Machine& machine, const std::string& folder, int niceness) {
  constexpr uint64_t kRecords = 1000;
  const Where where{"disk", folder, "", ""};
  const std::unique_ptr<Tier> tier = OpenTierAt(where, "", niceness);
  if (tier == nullptr) return 1;
  {
    testing::TierAnswers answers;
    tier->Connect(&answers);
    for (uint64_t i = 0; i < kRecords; ++i) {
      tier->Store(i + 1, testing::KeyOf(i), 0, testing::RecordOf(i, Traffic::kRecordBytes));
      answers.Wait(i + 1);
    }
    tier->Connect(nullptr);
  }
  std::vector<double> alone, beside, rates;
  for (uint64_t round = 0; round < 5; ++round) {
    alone.push_back(TokensPerSecond(machine, 10 + round));
    Traffic traffic(*tier, kRecords);
    std::thread thread([&] { traffic.Run(); });
    const int64_t began_us = machine.clock.now_us();
    beside.push_back(TokensPerSecond(machine, 10 + round));
    rates.push_back(static_cast<double>(traffic.bytes) /
                    static_cast<double>(machine.clock.now_us() - began_us));
    traffic.stops = true;
    thread.join();
  }
  std::printf("nice %d: %.1f tokens/s alone, %.1f beside %.0f MB/s of fetches: %.1f %% less\n",
              niceness, MedianOf(alone), MedianOf(beside), MedianOf(rates),
              100 * (1 - MedianOf(beside) / MedianOf(alone)));
  return 0;
}

Result<Machine> OpenMachine(const std::string& path, int longest) {
  HEARTH_ASSIGN(Model opened, OpenModelFor(path, "cpu"));
  Machine machine;
  machine.model = std::make_unique<Model>(std::move(opened));
  HEARTH_ASSIGN(BackendOptions options, OptionsFrom(BackendFlags()));
  options.max_step_tokens = 512;
  HEARTH_ASSIGN(BackendPlan plan, PlanBackend(*machine.model, options));
  SetBlocks(plan.kv, 4 * longest / 16 + 64);  // enough for what is learned and measured
  HEARTH_ASSIGN(machine.backend, OpenBackend(*machine.model, plan));
  machine.options.scheduler.max_context = longest + 256;
  machine.options.scheduler.max_step_tokens = options.max_step_tokens;
  machine.options.kv.key_seed = kKeySeed;
  machine.options.tier.stores_per_step = 64;
  return machine;
}

int Run(const std::vector<std::string>& args) {
  if (args.size() < 3) return 2;
  int longest = 512;
  const bool is_beside = args[1] == "beside";
  if (!is_beside) std::from_chars(args[1].data(), args[1].data() + args[1].size(), longest);
  Result<Machine> machine = OpenMachine(args[0], longest);
  if (!machine.ok()) return std::fprintf(stderr, "%s\n", machine.status().message().c_str()), 1;
  for (size_t i = 3; is_beside && i < args.size(); ++i) {
    int niceness = 0;
    std::from_chars(args[i].data(), args[i].data() + args[i].size(), niceness);
    if (const int failed = Beside(*machine, args[2] + "/" + args[i], niceness)) return failed;
  }
  if (is_beside) return 0;
  Records records;
  const std::vector<Point> points = Compute(*machine, longest, records);
  std::printf(
      "where,tokens,computed ms,memory ms,fetched ms,chosen ms,chose to fetch,chosen/best\n");
  for (size_t i = 2; i < args.size(); ++i) {
    const size_t equals = args[i].find('='), comma = args[i].find(',');
    Where where{args[i].substr(0, equals), "", "", ""};
    const std::string first = args[i].substr(equals + 1, comma - equals - 1);
    (where.name == "disk" ? where.path : where.address) = first;
    where.fill = comma == std::string::npos ? first : args[i].substr(comma + 1);
    Measure(*machine, where, points, records);
  }
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Run({argv + 1, argv + argc}); }
