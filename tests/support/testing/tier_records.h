// SPDX-License-Identifier: Apache-2.0
// Records of blocks that can be told from their number alone, and somebody who waits for a tier's
// answers.
#pragma once
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/mix.h"
#include "base/mutex.h"
#include "kv/block_record.h"
#include "kv/tier.h"
namespace hearth::testing {

inline TierKey KeyOf(uint64_t number) {
  return {{MixBits(number), MixBits(number + 1'000'003)}, static_cast<int>(number % 2)};
}

// 1 to 64 KiB unless a size is given.
inline std::vector<std::byte> RecordOf(uint64_t number, size_t num_bytes = 0) {
  if (num_bytes == 0) num_bytes = 1024 + MixBits(number * 7) % 64'512;
  const std::vector<Token> tokens(16, static_cast<Token>(number));
  std::vector<std::byte> record = MakeRecord(KeyOf(number), tokens, num_bytes);
  uint64_t word = number;
  for (std::byte& at : PayloadOf(record, num_bytes)) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    at = static_cast<std::byte>(word >> 56);
  }
  FinishRecord(record);
  return record;
}

// Thread: any.
class TierAnswers : public TierListener {
 public:
  void OnTransfer(TierDone done) override {
    const MutexLock lock(mu_);
    ++num_answers_;
    answers_[done.id] = std::move(done);
    came_.NotifyAll();
  }
  // None: it took longer than a machine however slow would.
  std::optional<TierDone> Wait(TransferId id) {
    const MutexLock lock(mu_);
    const bool is_there = came_.WaitFor(mu_, std::chrono::seconds(60), [&]() HEARTH_REQUIRES(mu_) {
      return answers_.contains(id);
    });
    if (!is_there) return std::nullopt;
    TierDone done = std::move(answers_[id]);
    answers_.erase(id);
    return done;
  }
  size_t num_answers() const {
    const MutexLock lock(mu_);
    return num_answers_;
  }

 private:
  mutable Mutex mu_;
  CondVar came_;
  std::map<TransferId, TierDone> answers_ HEARTH_GUARDED_BY(mu_);
  size_t num_answers_ HEARTH_GUARDED_BY(mu_) = 0;
};

}  // namespace hearth::testing
