// SPDX-License-Identifier: Apache-2.0
// Whom a load is put on: an engine in this process, or a server behind a URL (load_url.h).
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"
#include "load/stats.h"
namespace hearth {

// Seconds since the load began. Thread: any.
class LoadClock {
 public:
  double now_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  std::chrono::steady_clock::time_point At(double s) const {
    return start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                        std::chrono::duration<double>(s));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Rings when something happened to some stream; one driver waits for it. Thread: any.
class LoadBell {
 public:
  void Ring();
  // Returns after a ring since the last return, or at `until`.
  void Wait(std::chrono::steady_clock::time_point until);

 private:
  Mutex mutex_;
  CondVar rung_;
  bool is_rung_ HEARTH_GUARDED_BY(mutex_) = false;
};

// How a request ended. Below 0: the target does not know.
struct LoadEnd {
  int num_cached = 0, num_preempted = 0;
  int num_prompt = -1, num_generated = -1;
  std::string problem;  // empty: it said all it was asked for
};

// One request under way. Thread: the target writes, the driver reads.
class LoadStream {
 public:
  LoadStream(const LoadClock& clock, LoadBell& bell, int num_prompt);
  void Hear(Token token, std::string_view text = {});
  void End(LoadEnd end);

  size_t num_heard() const;
  bool has_ended() const;
  LoadReply reply() const;  // as far as it is

 private:
  const LoadClock& clock_;
  LoadBell& bell_;
  mutable Mutex mutex_;
  LoadReply reply_ HEARTH_GUARDED_BY(mutex_);
  bool has_ended_ HEARTH_GUARDED_BY(mutex_) = false;
};

// A part of a prompt, for targets that are spoken to in words.
struct LoadTurn {
  enum class Kind : uint8_t { kPreamble, kQuestion, kAnswer };
  Kind kind = Kind::kQuestion;
  std::vector<Token> tokens;
  std::string text;  // of an answer, when the target said it in words
};

struct LoadRequest {
  std::vector<Token> prompt;
  std::vector<LoadTurn> turns;   // the same, in its parts
  std::vector<int> checkpoints;  // where a preamble that others share ends
  int max_tokens = 0;
  uint32_t tenant = 0;
  uint64_t seed = 0;
};

// Thread: the driver's.
class LoadTarget {
 public:
  virtual ~LoadTarget() = default;
  // Returns at once; what becomes of it is told to `stream`, which is kept until then. An error is
  // a refusal.
  virtual Status Send(LoadRequest request, std::shared_ptr<LoadStream> stream) = 0;
  virtual void Cancel(const LoadStream& stream) = 0;
  virtual int vocab_size() const = 0;
  // Tokens of its prompt that are computed so far, when the target can say; else -1.
  virtual int num_computed(const LoadStream&) const { return -1; }
};

class Engine;
// The engine must outlive it.
std::unique_ptr<LoadTarget> MakeEngineTarget(Engine& engine, int vocab_size);

}  // namespace hearth
