// SPDX-License-Identifier: Apache-2.0
// Hardware and a store that the engine has never heard of: a backend with three groups of KV in
// blocks of 32 tokens that computes on a thread of its own and gives tokens instead of logits, and
// a tier that answers from another thread. The real engine runs them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "backend/backend.h"
#include "base/mix.h"
#include "engine/engine.h"
#include "kv/tier.h"

namespace hearth {
namespace {

constexpr int kVocab = 40, kBlock = 32;
constexpr int kWindows[] = {0, 100, 7};

// One thread that does what it is told, a little late.
class LateThread {
 public:
  ~LateThread() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void Do(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_all();
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stops_ || !work_.empty(); });
      if (stops_) return;
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      work();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool stops_ = false;
  std::thread thread_{[this] { Loop(); }};
};

// What the toy says after tokens of which group i sees the last kWindows[i].
Token NextAfter(std::span<const Token> tokens, std::span<const std::vector<Token>> seen) {
  uint64_t hash = tokens.size();
  for (const std::vector<Token>& group : seen) {
    for (const Token token : group) hash = MixBits(hash ^ static_cast<uint64_t>(token));
  }
  return static_cast<Token>(hash % kVocab);
}

Token Expected(const std::vector<Token>& tokens) {
  std::vector<std::vector<Token>> seen;
  for (const int window : kWindows) {
    const size_t size = window == 0 ? tokens.size() : std::min<size_t>(tokens.size(), window);
    seen.emplace_back(tokens.end() - static_cast<std::ptrdiff_t>(size), tokens.end());
  }
  return NextAfter(tokens, seen);
}

class ToyBackend : public Backend {
 public:
  explicit ToyBackend(int num_blocks) {
    layout_.block_tokens = kBlock;
    for (const int window : kWindows) {
      layout_.groups.push_back({window, kBlock * sizeof(Token), num_blocks});
      memory_.emplace_back(static_cast<size_t>(num_blocks * kBlock), -1);
    }
  }
  std::string_view name() const override { return "toy"; }
  KvLayout kv_layout() const override { return layout_; }
  int vocab_size() const override { return kVocab; }
  BackendCapabilities capabilities() const override {
    return {.preferred_tokens = 8, .chooses_tokens = true};
  }
  Status Begin(const StepPlan& plan) override {
    is_done_ = false;
    thread_.Do([this, &plan] {
      Compute(plan);
      const std::lock_guard lock(mutex_);
      is_done_ = true;
      done_.notify_all();
    });
    return Status();
  }
  Result<std::span<const RowResult>> Finish() override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return is_done_; });
    return std::span<const RowResult>(rows_);
  }
  std::atomic<int> num_steps{0}, num_copies{0};

 private:
  Token& At(int group, const SeqSlice& slice, int position) {
    const BlockTable& table = slice.tables[static_cast<size_t>(group)];
    const auto block = static_cast<int>(table[static_cast<size_t>(position / kBlock)]);
    return memory_[static_cast<size_t>(group)].at(
        static_cast<size_t>(block * kBlock + position % kBlock));
  }
  void Compute(const StepPlan& plan) {
    ++num_steps;
    for (const BlockCopy& copy : plan.copies) {
      ++num_copies;
      Token* block = &memory_[static_cast<size_t>(copy.group)]
                             [static_cast<size_t>(static_cast<int>(copy.block) * kBlock)];
      if (!copy.to_host.empty()) std::memcpy(copy.to_host.data(), block, copy.to_host.size());
      if (!copy.from_host.empty()) std::memcpy(block, copy.from_host.data(), copy.from_host.size());
    }
    rows_.assign(static_cast<size_t>(plan.num_rows), RowResult());
    logits_.assign(static_cast<size_t>(plan.num_rows * kVocab), 0.0f);
    for (const SeqSlice& slice : plan.slices) {
      for (int i = 0; i < slice.count; ++i) {
        const int position = slice.num_computed + i;
        for (int group = 0; group < 3; ++group) {
          At(group, slice, position) = plan.tokens[static_cast<size_t>(slice.first + i)];
        }
        const int row = i - (slice.count - slice.num_rows);
        if (row >= 0) FillRow(plan, slice, position, slice.first_row + row);
      }
    }
  }
  void FillRow(const StepPlan& plan, const SeqSlice& slice, int position, int row) {
    std::vector<std::vector<Token>> seen(3);
    for (int group = 0; group < 3; ++group) {
      const int window = kWindows[group];
      for (int p = window == 0 ? 0 : std::max(0, position - window + 1); p <= position; ++p) {
        seen[static_cast<size_t>(group)].push_back(At(group, slice, p));
      }
    }
    const Token next = NextAfter(seen[0], seen);
    RowResult& result = rows_[static_cast<size_t>(row)];
    if (plan.AskOf(row).kind == RowAsk::Kind::kToken) {
      result.token = next;
      return;
    }
    const std::span<float> logits =
        std::span(logits_).subspan(static_cast<size_t>(row * kVocab), kVocab);
    logits[static_cast<size_t>(next)] = 9;
    result.logits = logits;
  }

  KvLayout layout_;
  std::vector<std::vector<Token>> memory_;  // by group
  std::vector<RowResult> rows_;
  std::vector<float> logits_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  LateThread thread_;
};

// What outlives an engine: a disk, so to speak.
struct ToyDisk {
  size_t num_records() {
    const std::lock_guard lock(mutex);
    return records.size();
  }
  std::mutex mutex;
  std::map<TierKey, std::vector<std::byte>> records;
};

class ToyTier : public Tier {
 public:
  explicit ToyTier(ToyDisk& disk) : disk_(disk) {}
  std::string_view name() const override { return "toy"; }
  void Connect(TierListener* listener) override {
    const std::lock_guard lock(mutex_);
    listener_ = listener;
  }
  bool MayHave(const TierKey& key) const override {
    const std::lock_guard lock(disk_.mutex);
    return disk_.records.contains(key);
  }
  void Store(TransferId id, const TierKey& key, uint32_t /*tenant*/,
             std::vector<std::byte> record) override {
    thread_.Do([this, id, key, record] {
      {
        const std::lock_guard lock(disk_.mutex);
        disk_.records[key] = record;
      }
      Answer({id, TierOutcome::kDone, {}});
    });
  }
  void Fetch(TransferId id, const TierKey& key, uint32_t /*tenant*/) override {
    thread_.Do([this, id, key] {
      TierDone done{id, TierOutcome::kMissing, {}};
      {
        const std::lock_guard lock(disk_.mutex);
        const auto found = disk_.records.find(key);
        if (found != disk_.records.end()) done = {id, TierOutcome::kDone, found->second};
      }
      Answer(std::move(done));
    });
  }
  void Cancel(TransferId) override {}

 private:
  void Answer(TierDone done) {
    const std::lock_guard lock(mutex_);
    if (listener_ != nullptr) listener_->OnTransfer(std::move(done));
  }
  ToyDisk& disk_;
  std::mutex mutex_;
  TierListener* listener_ = nullptr;
  LateThread thread_;
};

class Heard : public EventSink {
 public:
  int Room() const override { return 1 << 20; }
  void OnToken(const TokenEvent& event) override { tokens.push_back(event.token); }
  void OnFinish(const RequestRecord& done) override {
    const std::lock_guard lock(mutex_);
    record = done;
    is_done_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_done_; });
  }
  std::vector<Token> tokens;
  RequestRecord record;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
};

std::vector<Token> Prompt(uint64_t seed, int size) {
  std::vector<Token> out;
  for (int i = 0; i < size; ++i) {
    out.push_back(static_cast<Token>(MixBits(seed * 1000 + static_cast<uint64_t>(i)) % kVocab));
  }
  return out;
}

std::shared_ptr<Heard> Ask(Engine& engine, const std::vector<Token>& prompt, bool is_greedy) {
  Request request;
  request.prompt = prompt;
  request.max_tokens = 20;
  // Not greedy, and as certain: the likeliest token leads by far.
  request.sampling.temperature = is_greedy ? 0.0f : 0.1f;
  auto sink = std::make_shared<Heard>();
  const Admission admission = engine.Submit(std::move(request), sink);
  EXPECT_TRUE(admission.ok()) << admission.status.message();
  return sink;
}

void ExpectAnswer(std::vector<Token> tokens, const Heard& heard) {
  EXPECT_EQ(heard.record.finish, Finish::kLength) << heard.record.detail;
  ASSERT_EQ(heard.tokens.size(), 20u);
  for (const Token said : heard.tokens) {
    ASSERT_EQ(said, Expected(tokens)) << "after " << tokens.size() << " tokens";
    tokens.push_back(said);
  }
}

EngineOptions Options() {
  EngineOptions options;
  options.scheduler.max_context = 4096;
  options.scheduler.max_sequences = 8;
  options.self_check_every = 1;
  options.tier.max_load_us = 60'000'000;  // on a machine however slow
  return options;
}

TEST(ExtendBackend, AnswersAsItWouldAlone) {
  auto backend = std::make_unique<ToyBackend>(60);
  Engine engine(std::move(backend), Options());
  std::vector<std::vector<Token>> prompts;
  std::vector<std::shared_ptr<Heard>> sinks;
  for (int i = 0; i < 24; ++i) {
    prompts.push_back(Prompt(static_cast<uint64_t>(i % 9), 10 + 37 * i));
    sinks.push_back(Ask(engine, prompts.back(), i % 2 == 0));
  }
  for (size_t i = 0; i < sinks.size(); ++i) {
    sinks[i]->Wait();
    ExpectAnswer(prompts[i], *sinks[i]);
  }
  const auto snapshot = engine.snapshot();
  ASSERT_EQ(snapshot->kv.size(), 3u);
  EXPECT_EQ(snapshot->kv[1].window, 100);
  EXPECT_EQ(snapshot->block_tokens, kBlock);
}

TEST(ExtendTier, ARestartedEngineIsWarm) {
  ToyDisk disk;
  const std::vector<Token> prompt = Prompt(3, 700);
  for (int run = 0; run < 2; ++run) {
    auto backend = std::make_unique<ToyBackend>(60);
    const ToyBackend& toy = *backend;
    Engine engine(std::move(backend), Options(), {}, std::make_unique<ToyTier>(disk));
    const auto heard = Ask(engine, prompt, true);
    heard->Wait();
    ExpectAnswer(prompt, *heard);
    EXPECT_EQ(heard->record.num_loaded, run == 0 ? 0 : 21 * kBlock);
    // Whatever became idle is stored, without anybody asking for anything.
    // 22 full blocks; of the windows those before position 512 and the ends of prompt and answer.
    constexpr size_t kStored = 22 + 4 + 5 + 3;
    for (int i = 0; i < 10'000 && disk.num_records() < kStored; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_EQ(disk.num_records(), kStored);
    EXPECT_GT(toy.num_copies, 0) << "from memory to the tier, then back";
  }
}

TEST(ExtendTier, ADrainWaitsForWhatIsStillToBeStored) {
  ToyDisk disk;
  Engine engine(std::make_unique<ToyBackend>(60), Options(), {}, std::make_unique<ToyTier>(disk));
  Ask(engine, Prompt(3, 700), true)->Wait();
  engine.Drain(60'000'000);
  EXPECT_EQ(disk.num_records(), 22u + 4 + 5 + 3);
}

}  // namespace
}  // namespace hearth
