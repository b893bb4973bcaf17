// SPDX-License-Identifier: Apache-2.0
// A tier in host memory that answers when the test says so.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "kv/tier.h"
namespace hearth::testing {

// Thread: one.
class MemoryTier : public Tier {
 public:
  std::string_view name() const override { return "memory"; }
  void Connect(TierListener* listener) override { listener_ = listener; }
  bool MayHave(const TierKey& key) const override { return records.contains(key); }
  void Store(TransferId id, const TierKey& key, uint32_t /*tenant*/,
             std::vector<std::byte> record) override {
    if (accepts) records[key] = std::move(record);
    waiting.push_back({id, accepts ? TierOutcome::kDone : TierOutcome::kFull, {}});
    ++num_stores;
    if (answers) AnswerAll();
  }
  void Fetch(TransferId id, const TierKey& key, uint32_t tenant) override {
    const auto found = records.find(key);
    const bool is_here = found != records.end();
    waiting.push_back({id, is_here ? TierOutcome::kDone : TierOutcome::kMissing,
                       is_here ? found->second : std::vector<std::byte>()});
    fetched.push_back(key);
    last_tenant = tenant;  // who fetches
    ++num_fetches;
    if (answers) AnswerAll();
  }
  void Cancel(TransferId id) override { cancelled.push_back(id); }

  void AnswerAll() {
    for (TierDone& done : std::exchange(waiting, {})) Answer(std::move(done));
  }
  void Answer(TierDone done) {
    if (listener_ != nullptr) listener_->OnTransfer(std::move(done));
  }

  std::map<TierKey, std::vector<std::byte>> records;
  std::vector<TierDone> waiting;  // not answered yet
  std::vector<TransferId> cancelled;
  std::vector<TierKey> fetched;
  bool answers = true;  // at once
  bool accepts = true;  // else it is full
  int num_stores = 0, num_fetches = 0;
  uint32_t last_tenant = 0;

 private:
  TierListener* listener_ = nullptr;
};

}  // namespace hearth::testing
