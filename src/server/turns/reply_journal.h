// SPDX-License-Identifier: Apache-2.0
// What was said of replies that a client may ask for again: the token ids so far, so that the rest
// follows from one prefill over prompt and tokens. Nothing of it is relied upon: without an entry a
// reply is computed again from its origin (server/access/reply_origin.h).
#pragma once
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
namespace hearth {

// Where records go that outlive the process. May lose any of them; gives none that was changed.
// Thread: any.
class JournalStore {
 public:
  virtual ~JournalStore() = default;
  // Soon, and not waited for. A later record of a name replaces an earlier one.
  virtual void Put(const std::string& name, std::string record) = 0;
  // Waits a moment at most.
  virtual std::optional<std::string> Get(const std::string& name) = 0;
};

struct JournalLimits {
  size_t max_bytes = size_t{32} << 20;  // of all entries
  size_t max_entries = 16'384;
  size_t max_reply_tokens = 65'536;  // of a longer reply only so many are kept
  int64_t max_age_s = 3600;
  std::chrono::milliseconds put_every{50};  // what a crash loses of a running reply
};

// What is known of a reply.
struct JournalRecord {
  std::vector<Token> tokens;
  int num_cached = -1;  // of its prompt, when it began
};
std::string AsBytes(const JournalRecord& record);
std::optional<JournalRecord> JournalRecordFrom(std::string_view bytes);

class ReplyJournal;

// One reply's, while somebody says it. Thread: one at a time.
class JournalEntry {
 public:
  JournalEntry(std::shared_ptr<ReplyJournal> journal, std::string client, std::string name,
               JournalRecord record);
  ~JournalEntry();  // what is left goes to the store
  JournalEntry(const JournalEntry&) = delete;
  JournalEntry& operator=(const JournalEntry&) = delete;
  // The reply's token at `index`; one that is known already changes nothing.
  void Add(int index, Token token, int num_cached);
  // What is known now, for whoever asks next.
  void Put();
  size_t num_bytes() const { return record_.tokens.size() * sizeof(Token); }

 private:
  const std::shared_ptr<ReplyJournal> journal_;
  const std::string client_, name_;
  JournalRecord record_;
  size_t num_put_ = 0;
  std::chrono::steady_clock::time_point put_at_;
};

// Beyond a bound the oldest entry of the client that holds most goes. Thread: any.
class ReplyJournal : public std::enable_shared_from_this<ReplyJournal> {
 public:
  // `store` may be null: then it forgets with the process.
  explicit ReplyJournal(const JournalLimits& limits = {},
                        std::shared_ptr<JournalStore> store = nullptr)
      : limits_(limits), store_(std::move(store)) {}

  // Names are made of what the caller must know to ask: nobody finds what is another's.
  void Put(const std::string& client, const std::string& name, std::string record, int64_t now_s);
  std::optional<std::string> Get(const std::string& name, int64_t now_s);

  // What is there under that name; if nothing is, `record` is from now on.
  std::string GetOrPut(const std::string& client, const std::string& name,
                       const std::string& record, int64_t now_s);

  // A reply that goes on from `so_far`.
  std::shared_ptr<JournalEntry> Begin(const std::string& client, const std::string& name,
                                      JournalRecord so_far);
  const JournalLimits& limits() const { return limits_; }
  size_t num_bytes() const;
  size_t num_entries() const;

 private:
  struct Entry {
    std::string name, client, record;
    int64_t put_at_s = 0;
    size_t num_bytes() const { return record.size() + name.size() + client.size() + 128; }
  };
  using Entries = std::list<Entry>;
  void Insert(const std::string& client, const std::string& name, std::string record, int64_t now_s)
      HEARTH_REQUIRES(mu_);
  std::optional<std::string> Find(const std::string& name, int64_t now_s) const
      HEARTH_REQUIRES(mu_);
  void Drop(Entries::iterator entry) HEARTH_REQUIRES(mu_);
  void Evict(int64_t now_s) HEARTH_REQUIRES(mu_);

  const JournalLimits limits_;
  const std::shared_ptr<JournalStore> store_;
  mutable Mutex mu_;
  Entries entries_ HEARTH_GUARDED_BY(mu_);  // what was put last is last
  std::map<std::string, Entries::iterator, std::less<>> by_name_ HEARTH_GUARDED_BY(mu_);
  std::map<std::string, size_t> held_ HEARTH_GUARDED_BY(mu_);  // bytes, by client
  size_t num_bytes_ HEARTH_GUARDED_BY(mu_) = 0;
};

}  // namespace hearth
