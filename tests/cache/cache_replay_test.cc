// SPDX-License-Identifier: Apache-2.0
// Replays conversations on a KvSpace, many at a time, and compares what is reused with what a cache
// without limits and without blocks could reuse: the longest prefix that anybody ever computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <unordered_set>

#include "cache/chat_trace.h"
#include "kv/kv_space.h"
namespace hearth {
namespace {

using testing::ChatRequest;
using testing::ChatTraceOptions;
using testing::MakeChatTrace;

constexpr int kStepTokens = 512;
constexpr size_t kRunning = 16;

struct ReplayResult {
  int64_t prompt_tokens = 0, ideal = 0, reused = 0;
  int num_requests = 0, num_preempted = 0;
  int worst_loss = 0;  // ideal minus reused, of one request
  int most_full = 0, most_window = 0;
  double share() const { return static_cast<double>(reused) / static_cast<double>(ideal); }
  double hit_rate() const { return static_cast<double>(reused) / double(prompt_tokens); }
};

class Replay {
 public:
  explicit Replay(const KvLayout& layout, const KvPolicy& policy = {}) : space_(layout, policy) {}

  ReplayResult Run(const std::vector<ChatRequest>& requests) {
    for (const ChatRequest& request : requests) waiting_.push_back(&request);
    while (!waiting_.empty() || !running_.empty()) {
      Admit();
      bool moved = false;
      for (auto& sequence : running_) moved |= Advance(*sequence);
      if (!moved) Preempt();
      std::erase_if(running_, [](const auto& s) { return s->is_done; });
      const KvCounts full = space_.counts(0);
      const KvCounts window = space_.layout().num_groups() > 1 ? space_.counts(1) : KvCounts();
      result_.most_full = std::max(result_.most_full, full.total - full.free);
      result_.most_window = std::max(result_.most_window, window.total - window.free);
    }
    EXPECT_TRUE(space_.SelfCheck({}).ok());
    return result_;
  }

 private:
  struct Sequence {
    const ChatRequest* request;
    std::vector<Token> tokens;  // prompt and reply, though the reply is not known beforehand
    std::vector<uint64_t> stamps;
    KvHolding holding;
    int num_computed = 0, end = 0;
    bool is_done = false;
  };

  // In order, but a chat's next turn waits for the one before.
  void Admit() {
    for (size_t i = 0; i < waiting_.size() && running_.size() < kRunning;) {
      const ChatRequest* request = waiting_[i];
      const bool busy = std::ranges::any_of(
          running_, [&](const auto& s) { return s->request->chat == request->chat; });
      if (busy) break;
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      Start(*request);
    }
  }

  void Start(const ChatRequest& request) {
    auto s = std::make_unique<Sequence>();
    s->request = &request;
    s->tokens = request.prompt;
    s->tokens.insert(s->tokens.end(), request.reply.begin(), request.reply.end());
    const int size = static_cast<int>(s->tokens.size());
    // The last token of a reply is sampled but never computed.
    s->end = request.num_computed_at_abort >= 0 ? request.num_computed_at_abort : size - 1;
    uint64_t h = 1;
    for (const Token token : s->tokens) {
      h = (h ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
      s->stamps.push_back(h);
    }
    const int limit = static_cast<int>(request.prompt.size()) - 1;
    int ideal = 0;
    while (ideal < limit && computed_.contains(s->stamps[ideal])) ++ideal;
    s->holding.domain.tenant = request.tenant;
    const KvMatch match = space_.Match(request.prompt, limit, s->holding);
    s->num_computed = match.tokens;
    running_.push_back(std::move(s));
    EXPECT_LE(match.tokens, ideal);
    if (preempted_.contains(&request)) return;  // finds its own work again
    ++result_.num_requests;
    result_.prompt_tokens += limit;
    result_.ideal += ideal;
    result_.reused += match.tokens;
    result_.worst_loss = std::max(result_.worst_loss, ideal - match.tokens);
  }

  // All wait for each other: the youngest is preempted and starts again later.
  void Preempt() {
    space_.Release(running_.back()->holding);
    waiting_.push_front(running_.back()->request);
    preempted_.insert(waiting_.front());
    running_.pop_back();
    ++result_.num_preempted;
  }

  // False when there was no room.
  bool Advance(Sequence& s) {
    const int prompt = static_cast<int>(s.request->prompt.size());
    const int left = std::min(s.num_computed < prompt ? prompt : s.num_computed + 1, s.end);
    const int count = std::min(kStepTokens, left - s.num_computed);
    if (count > 0) {
      if (!space_.Reserve(s.holding, s.num_computed, count)) {
        return false;
      }
      const bool was_prompt = s.num_computed < prompt;
      s.num_computed += count;
      space_.Commit(s.holding, s.tokens, s.num_computed);
      if (was_prompt && s.num_computed >= prompt) space_.KeepCheckpoint(s.holding, prompt);
      computed_.insert(s.stamps.begin() + s.num_computed - count,
                       s.stamps.begin() + s.num_computed);
    }
    if (s.num_computed < s.end) return true;
    space_.Release(s.holding);
    s.is_done = true;
    return true;
  }

  KvSpace space_;
  std::deque<const ChatRequest*> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;
  std::unordered_set<const ChatRequest*> preempted_;
  std::unordered_set<uint64_t> computed_;  // prefixes, at every token
  ReplayResult result_;
};

// gpt-oss: as many layers with a window of 128 as without.
KvLayout Layout(int full_blocks, int window_blocks) {
  KvLayout layout;
  layout.groups = {{.window = 0, .block_bytes = 393216, .num_blocks = full_blocks}};
  if (window_blocks > 0) {
    layout.groups.push_back({.window = 128, .block_bytes = 393216, .num_blocks = window_blocks});
  }
  return layout;
}

void Print(const std::string& what, const ReplayResult& r) {
  std::printf(
      "%-26s %5d requests, %7.2f M prompt tokens: hit rate %.1f %%, %.2f %% of the ideal, "
      "worst request lost %d; %d + %d blocks, %d preempted\n",
      what.c_str(), r.num_requests, static_cast<double>(r.prompt_tokens) / 1e6, 100 * r.hit_rate(),
      100 * r.share(), r.worst_loss, r.most_full, r.most_window, r.num_preempted);
}

// Window blocks for the stretch before every 512 tokens are a quarter of all; checkpoints need the
// rest.
KvLayout Sized(int full_blocks) { return Layout(full_blocks, full_blocks * 7 / 16); }

TEST(CacheReplay, ReusesNearlyAllWhileItFits) {
  for (const uint64_t seed : {1, 2}) {
    const auto trace = MakeChatTrace({.seed = seed, .num_chats = 250});
    const ReplayResult ample = Replay(Layout(200000, 200000)).Run(trace);
    Print("ample", ample);
    EXPECT_GE(ample.share(), 0.97);
    EXPECT_LE(ample.worst_loss, 512);
    const ReplayResult fits = Replay(Sized(ample.most_full)).Run(trace);
    Print("fits", fits);
    EXPECT_GE(fits.share(), 0.97);
    EXPECT_LE(fits.worst_loss, 512);
  }
}

// The pool in halves: what is lost, and that more room never means markedly fewer hits.
TEST(CacheReplay, DegradesGently) {
  const auto trace = MakeChatTrace({.seed = 3, .num_chats = 250});
  const ReplayResult ample = Replay(Layout(200000, 200000)).Run(trace);
  Print("ample", ample);
  double last = 1;
  for (const int part : {1, 2, 4, 8, 16}) {
    const ReplayResult result = Replay(Sized(ample.most_full / part)).Run(trace);
    Print("1/" + std::to_string(part) + " of all blocks", result);
    EXPECT_LE(result.share(), last + 0.005);
    last = result.share();
    EXPECT_GE(result.share(), part <= 4 ? 0.9 : 0.0);
  }
  Print("1/8, no window layers", Replay(Layout(ample.most_full / 8, 0)).Run(trace));
}

}  // namespace
}  // namespace hearth
