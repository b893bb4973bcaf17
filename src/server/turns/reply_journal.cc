// SPDX-License-Identifier: Apache-2.0
#include "server/turns/reply_journal.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <iterator>
#include <utility>

namespace hearth {

// The cached count, then the tokens, as this processor has them: no other reads them.
std::string AsBytes(const JournalRecord& record) {
  std::string out(sizeof(int32_t) + record.tokens.size() * sizeof(Token), '\0');
  const auto cached = static_cast<int32_t>(record.num_cached);
  std::memcpy(out.data(), &cached, sizeof cached);
  if (!record.tokens.empty()) {
    std::memcpy(out.data() + sizeof cached, record.tokens.data(),
                record.tokens.size() * sizeof(Token));
  }
  return out;
}

std::optional<JournalRecord> JournalRecordFrom(std::string_view bytes) {
  int32_t cached = 0;
  if (bytes.size() < sizeof cached) return std::nullopt;
  std::memcpy(&cached, bytes.data(), sizeof cached);
  bytes.remove_prefix(sizeof cached);
  if (bytes.size() % sizeof(Token) != 0) return std::nullopt;
  JournalRecord record;
  record.num_cached = cached;
  record.tokens.resize(bytes.size() / sizeof(Token));
  if (!bytes.empty()) std::memcpy(record.tokens.data(), bytes.data(), bytes.size());
  return record;
}

JournalEntry::JournalEntry(std::shared_ptr<ReplyJournal> journal, std::string client,
                           std::string name, JournalRecord record)
    : journal_(std::move(journal)),
      client_(std::move(client)),
      name_(std::move(name)),
      record_(std::move(record)),
      num_put_(record_.tokens.size()),
      put_at_(std::chrono::steady_clock::now()) {}

JournalEntry::~JournalEntry() {
  try {
    Put();
  } catch (const std::bad_alloc&) {  // computed again, should anybody ask
  }
}

void JournalEntry::Add(int index, Token token, int num_cached) {
  if (index != static_cast<int>(record_.tokens.size())) return;
  if (record_.tokens.size() >= journal_->limits().max_reply_tokens) return;
  record_.tokens.push_back(token);
  record_.num_cached = num_cached;
  // A record is written whole: a long one less often, a megabyte a second at most.
  const std::chrono::microseconds by_size(num_bytes());
  const auto wait = std::max<std::chrono::nanoseconds>(journal_->limits().put_every, by_size);
  if (std::chrono::steady_clock::now() - put_at_ >= wait) Put();
}

void JournalEntry::Put() {
  put_at_ = std::chrono::steady_clock::now();
  if (num_put_ == record_.tokens.size()) return;
  journal_->Put(client_, name_, AsBytes(record_), std::time(nullptr));
  num_put_ = record_.tokens.size();
}

void ReplyJournal::Put(const std::string& client, const std::string& name, std::string record,
                       int64_t now_s) {
  if (store_ != nullptr) store_->Put(name, record);
  const MutexLock lock(mu_);
  Insert(client, name, std::move(record), now_s);
}

void ReplyJournal::Insert(const std::string& client, const std::string& name, std::string record,
                          int64_t now_s) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) Drop(found->second);
  entries_.push_back({name, client, std::move(record), now_s});
  const auto entry = std::prev(entries_.end());
  try {
    by_name_.emplace(name, entry);
    held_[client] += entry->num_bytes();
  } catch (const std::bad_alloc&) {
    by_name_.erase(name);
    entries_.pop_back();
    throw;
  }
  num_bytes_ += entry->num_bytes();
  Evict(now_s);
}

std::optional<std::string> ReplyJournal::Find(const std::string& name, int64_t now_s) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  const Entry& entry = *found->second;
  if (now_s - entry.put_at_s > limits_.max_age_s) return std::nullopt;
  return entry.record;
}

std::optional<std::string> ReplyJournal::Get(const std::string& name, int64_t now_s) {
  {
    const MutexLock lock(mu_);
    if (auto found = Find(name, now_s)) return found;
  }
  return store_ != nullptr ? store_->Get(name) : std::nullopt;
}

std::string ReplyJournal::GetOrPut(const std::string& client, const std::string& name,
                                   const std::string& record, int64_t now_s) {
  if (auto found = Get(name, now_s)) return *std::move(found);
  {
    const MutexLock lock(mu_);
    if (auto found = Find(name, now_s)) return *std::move(found);  // somebody was faster
    Insert(client, name, record, now_s);
  }
  if (store_ != nullptr) store_->Put(name, record);
  return record;
}

std::shared_ptr<JournalEntry> ReplyJournal::Begin(const std::string& client,
                                                  const std::string& name, JournalRecord so_far) {
  return std::make_shared<JournalEntry>(shared_from_this(), client, name, std::move(so_far));
}

void ReplyJournal::Drop(Entries::iterator entry) {
  const auto held = held_.find(entry->client);
  held->second -= entry->num_bytes();
  if (held->second == 0) held_.erase(held);
  num_bytes_ -= entry->num_bytes();
  by_name_.erase(entry->name);
  entries_.erase(entry);
}

void ReplyJournal::Evict(int64_t now_s) {
  while (!entries_.empty() && now_s - entries_.front().put_at_s > limits_.max_age_s) {
    Drop(entries_.begin());
  }
  while (num_bytes_ > limits_.max_bytes || entries_.size() > limits_.max_entries) {
    const auto most =
        std::max_element(held_.begin(), held_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                     [&](const Entry& each) { return each.client == most->first; });
    Drop(oldest);
  }
}

size_t ReplyJournal::num_bytes() const {
  const MutexLock lock(mu_);
  return num_bytes_;
}

size_t ReplyJournal::num_entries() const {
  const MutexLock lock(mu_);
  return entries_.size();
}

}  // namespace hearth
