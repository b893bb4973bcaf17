// SPDX-License-Identifier: Apache-2.0
// Clocks that jump and disks that are full, under files and jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <csignal>

#include "base/age_clock.h"
#include "testing/batch_rig.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using testing::Echo;
using testing::FakeApi;
using ::testing::HasSubstr;
using testing::Input;
using testing::kChat;
using testing::Text;

class BatchClockTest : public testing::BatchRig {};

// Forward, back, and there for good: a date is no time.
TEST_F(BatchClockTest, AClockThatJumpsEndsNothing) {
  Open();
  office_->Start(api_.Sender());
  const std::string id = Create(Input(10), "t", "24h");
  const std::string file =
      Text(*office_->AddFile("t", {"in.jsonl", "batch", Input(1), 3600}), "id");
  ASSERT_TRUE(Eventually([&] { return api_.waiting() == 4; }));
  EndWhatIsLeft();
  for (const int64_t jump : {3 * kDay, -3 * kDay, -12 * kYear, 12 * kYear, 12 * kYear}) {
    wall_s_ += jump;
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(milliseconds(20));  // several looks
      Pass(AgeClock::kSyncEvery_s);
    }
    EXPECT_EQ(Text(Batch(id), "status"), "in_progress") << jump;
    EXPECT_TRUE(office_->FindFile("t", file).ok()) << jump;
    EXPECT_EQ(office_->ReadFile("t", file).ok(), true) << jump;
  }
  // What comes under a wrong date lasts as long as it was told to.
  const std::string later =
      Text(*office_->AddFile("t", {"in.jsonl", "batch", Input(1), 7200}), "id");
  wall_s_ -= 12 * kYear;
  Pass(3601);
  EXPECT_TRUE(Eventually([&] { return !office_->FindFile("t", file).ok(); })) << "not late either";
  EXPECT_TRUE(office_->FindFile("t", later).ok());
  Pass(3600);
  EXPECT_TRUE(Eventually([&] { return !office_->FindFile("t", later).ok(); }));
  Pass(kDay - 7351 - 31);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(Text(Batch(id), "status"), "in_progress");
  Pass(31);
  EXPECT_TRUE(WaitFor(id, "expired"));
}

// The jump came while nobody ran.
TEST_F(BatchClockTest, AJumpBeforeTheStartEndsNothing) {
  for (const int64_t jump : {3 * kDay, -3 * kDay, 12 * kYear, -12 * kYear}) {
    const testing::TempDir folder;
    const std::string path = folder.path() + "/batches";
    Open(path);
    const std::string id = Create(Input(10), "t", "24h");
    const std::string file =
        Text(*office_->AddFile("t", {"in.jsonl", "batch", Input(1), 3600}), "id");
    office_ = nullptr;
    Pass(3000);
    wall_s_ += jump;
    Open(path);
    office_->Start(api_.Sender());
    ASSERT_TRUE(Eventually([&] { return api_.waiting() == 4; })) << jump;
    EndWhatIsLeft();
    // Longer than it takes to believe a date.
    Pass(500);
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_TRUE(office_->FindFile("t", file).ok()) << jump;
    for (int i = 0; i < 3; ++i) {
      Pass(3600);
      std::this_thread::sleep_for(milliseconds(20));
    }
    EXPECT_TRUE(Eventually([&] { return !office_->FindFile("t", file).ok(); })) << jump;
    EXPECT_EQ(Text(Batch(id), "status"), "in_progress") << jump;
    office_ = nullptr;
    api_.Take();
  }
}

// Rows that came before anybody asked for the age are no older than it.
TEST_F(BatchClockTest, ANewStoreIsNoOldOne) {
  Open();
  const std::string first = Upload("x");
  const std::string kept =
      Text(*office_->AddFile("t", {"in.jsonl", "batch", "x", 12 * 3600}), "id");
  wall_s_ += 12 * kYear;
  office_->Start(api_.Sender());
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    Pass(2 * 3600);
  }
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(office_->FindFile("t", kept).ok());
  Pass(4 * 3600);
  EXPECT_TRUE(Eventually([&] { return !office_->FindFile("t", kept).ok(); }));
  EXPECT_TRUE(office_->FindFile("t", first).ok());
}

// A store of before ages were kept: their times are dates, and count once the date is sure.
TEST_F(BatchClockTest, TakesOverAStoreWhoseTimesWereDates) {
  const testing::TempDir folder;
  const std::string path = folder.path() + "/batches";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  const std::string sql = Printf(
      "CREATE TABLE files (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, purpose"
      " TEXT NOT NULL, bytes INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL,"
      " batch TEXT NOT NULL, has_errors INTEGER NOT NULL, content BLOB NOT NULL);"
      "INSERT INTO files VALUES ('file-old', 't', 'n', 'batch', 1, %lld, %lld, '', 0, 'x');"
      "INSERT INTO files VALUES ('file-new', 't', 'n', 'batch', 1, %lld, %lld, '', 0, 'x');"
      "PRAGMA user_version = 1",
      static_cast<long long>(wall_s_ - 10 * kDay), static_cast<long long>(wall_s_ - 9 * kDay),
      static_cast<long long>(wall_s_ - 100), static_cast<long long>(wall_s_ + kDay));
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
  wall_s_ += 12 * kYear;  // and the first start of this version has a wrong date
  Open(path);
  office_->Start(api_.Sender());
  std::this_thread::sleep_for(milliseconds(20));
  for (const char* id : {"file-old", "file-new"}) EXPECT_TRUE(office_->FindFile("t", id).ok());
  wall_s_ -= 12 * kYear;
  for (int i = 0; i < 20; ++i) {
    Pass(3600);
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(Eventually([&] { return !office_->FindFile("t", "file-old").ok(); }));
  EXPECT_TRUE(office_->FindFile("t", "file-new").ok());
  Pass(4 * 3600);
  EXPECT_TRUE(Eventually([&] { return !office_->FindFile("t", "file-new").ok(); }));
}

// A file system that is full, as a limit of the size of files.
TEST_F(BatchClockTest, AFullDiskLosesNothing) {
  const testing::TempDir folder;
  const std::string path = folder.path() + "/batches";
  Open(path);
  office_->Start(api_.Sender());
  const std::string id = Create(Input(4));
  ASSERT_TRUE(Eventually([&] { return api_.waiting() == 4; }));
  const std::string big(2 << 20, 'x');
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const signal_before = signal(SIGXFSZ, SIG_IGN);
  const rlimit none{1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const ApiResult<Json> upload = office_->AddFile("t", {"in.jsonl", "batch", big});
  const ApiResult<Json> batch =
      office_->AddBatch("t", {Text(Batch(id), "input_file_id"), kChat, "24h"});
  for (const FakeApi::Call& call : api_.Take()) Echo(call.request, *call.reply);
  const bool is_held = Eventually([&] { return office_->counts().is_held; });
  const std::string held_at = Counts(id);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, signal_before);
  for (const ApiResult<Json>* refused : {&upload, &batch}) {
    ASSERT_FALSE(refused->ok());
    EXPECT_EQ(refused->error().status, 507);
    EXPECT_EQ(refused->error().type, "insufficient_storage_error");
    EXPECT_EQ(refused->error().code, "disk_full");
    EXPECT_THAT(refused->error().message, HasSubstr("no room on the disk"));
  }
  EXPECT_TRUE(is_held);
  EXPECT_EQ(held_at, R"({"total":4,"completed":0,"failed":0})");
  ASSERT_TRUE(WaitFor(id, "completed")) << "it goes on by itself";
  EXPECT_TRUE(Eventually([&] { return !office_->counts().is_held; }));
  EXPECT_EQ(Ids(id, "output_file_id").size(), 4u);
  for (const auto& [body, count] : api_.asked()) EXPECT_EQ(count, 1) << body;
  EXPECT_TRUE(office_->AddFile("t", {"in.jsonl", "batch", big}).ok());
}

}  // namespace
}  // namespace hearth
