// SPDX-License-Identifier: Apache-2.0
#include "server/turns/reply_journal.h"

#include <gtest/gtest.h>

#include <thread>

namespace hearth {
namespace {

class MapStore final : public JournalStore {
 public:
  void Put(const std::string& name, std::string record) override {
    records[name] = std::move(record);
  }
  std::optional<std::string> Get(const std::string& name) override {
    const auto found = records.find(name);
    return found == records.end() ? std::nullopt : std::optional(found->second);
  }
  std::map<std::string, std::string> records;
};

TEST(ReplyJournal, RecordsComeBackAndNothingElseIsOne) {
  const JournalRecord record{{1, 2, 300'000}, 17};
  const auto back = JournalRecordFrom(AsBytes(record));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->tokens, record.tokens);
  EXPECT_EQ(back->num_cached, 17);
  EXPECT_FALSE(JournalRecordFrom(""));
  EXPECT_FALSE(JournalRecordFrom("123"));
  EXPECT_FALSE(JournalRecordFrom("12345"));
}

TEST(ReplyJournal, AnEntryIsThereWhenItsWriterHasGone) {
  const auto journal = std::make_shared<ReplyJournal>();
  {
    const auto entry = journal->Begin("anna", "r", {});
    entry->Add(0, 5, 3);
    entry->Add(1, 6, 3);
    entry->Add(1, 99, 3);  // known
    entry->Add(7, 99, 3);  // there is a gap before it
    EXPECT_EQ(entry->num_bytes(), 2 * sizeof(Token));
  }
  const auto record = JournalRecordFrom(journal->Get("r", 0).value_or(""));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->tokens, (std::vector<Token>{5, 6}));
  EXPECT_EQ(record->num_cached, 3);
  EXPECT_FALSE(journal->Get("another", 0));
}

TEST(ReplyJournal, ARunningReplyIsWrittenDownInTime) {
  JournalLimits limits;
  limits.put_every = std::chrono::milliseconds(0);
  const auto store = std::make_shared<MapStore>();
  const auto journal = std::make_shared<ReplyJournal>(limits, store);
  const auto entry = journal->Begin("anna", "r", {{5}, 0});
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a record has its own pace
  entry->Add(1, 6, 0);
  ASSERT_TRUE(store->records.contains("r"));
  EXPECT_EQ(JournalRecordFrom(store->records["r"])->tokens, (std::vector<Token>{5, 6}));
}

TEST(ReplyJournal, WhatTheProcessForgotTheStoreMayHave) {
  const auto store = std::make_shared<MapStore>();
  std::make_shared<ReplyJournal>(JournalLimits(), store)->Put("anna", "n", "x", 100);
  ReplyJournal next(JournalLimits(), store);
  EXPECT_EQ(next.Get("n", 100), "x");
  EXPECT_EQ(next.GetOrPut("anna", "n", "y", 100), "x");
  EXPECT_EQ(next.GetOrPut("anna", "m", "y", 100), "y");
  EXPECT_EQ(next.GetOrPut("anna", "m", "z", 100), "y");
}

TEST(ReplyJournal, TheOldIsForgotten) {
  ReplyJournal journal;
  journal.Put("anna", "a", "x", 1000);
  EXPECT_TRUE(journal.Get("a", 1000 + 3600));
  EXPECT_FALSE(journal.Get("a", 1001 + 3600));
  journal.Put("anna", "b", "x", 10'000);
  EXPECT_EQ(journal.num_entries(), 1u);
}

TEST(ReplyJournal, WhoeverHoldsMostLosesFirst) {
  JournalLimits limits;
  limits.max_entries = 10;
  ReplyJournal journal(limits);
  journal.Put("polite", "p", "x", 1);
  for (int i = 0; i < 100; ++i) journal.Put("greedy", "g" + std::to_string(i), "x", 1);
  EXPECT_EQ(journal.num_entries(), 10u);
  EXPECT_TRUE(journal.Get("p", 1));
  EXPECT_FALSE(journal.Get("g0", 1));
  EXPECT_TRUE(journal.Get("g99", 1));
}

TEST(ReplyJournal, BytesAreBounded) {
  JournalLimits limits;
  limits.max_bytes = 10'000;
  limits.max_reply_tokens = 100;
  const auto journal = std::make_shared<ReplyJournal>(limits);
  for (int i = 0; i < 50; ++i) {
    journal->Put("anna", "r" + std::to_string(i), std::string(1000, 'x'), 1);
    EXPECT_LE(journal->num_bytes(), 10'000u);
  }
  for (int i = 0; i < 50; ++i) journal->Put("anna", "same", std::string(10, 'x'), 1);
  journal->Put("anna", "huge", std::string(20'000, 'x'), 1);
  EXPECT_EQ(journal->num_bytes(), 0u);
  const auto entry = journal->Begin("anna", "long", {});
  for (int i = 0; i < 1000; ++i) entry->Add(i, 1, 0);
  EXPECT_EQ(entry->num_bytes(), 100 * sizeof(Token));
}

}  // namespace
}  // namespace hearth
