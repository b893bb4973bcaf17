// SPDX-License-Identifier: Apache-2.0
// The store of responses on a disk that loses power: it opens again, is whole, has every response
// up to some moment and none after it, and never lost one that was there at the last sync of its
// log. power_trial LOSSES [SEED]
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "losing_vfs.h"
#include "server/turns/response_store.h"
#include "testing/results.h"

namespace hearth {
namespace {

std::string TextOf(int64_t number) {
  return "response " + std::to_string(number) +
         std::string(static_cast<size_t>(number * 7919 % 60'000), 'x');
}

// Puts some, then dies with or without the power. What is known to be there must be.
class Trial {
 public:
  Trial(std::string path, uint64_t seed) : path_(std::move(path)), random_(seed) {}

  void Run(bool loses) {
    // Before the store in half of the cases: it tidies up what the store would find.
    if (random_() % 2 == 0) CheckWhole();
    auto opened = ResponseStore::Open(path_);
    if (!opened.ok()) std::fprintf(stderr, "%s\n", opened.status().message().c_str());
    HEARTH_CHECK(opened.ok());
    std::unique_ptr<ResponseStore> store = *std::move(opened);
    Compare(*store);
    const uint64_t count = random_() % 40;
    for (uint64_t i = 0; i < count; ++i) {
      const int64_t syncs = vfs_.num_syncs("-wal");
      const std::string id = "resp_" + std::to_string(next_);
      const std::string previous = next_ == 0 ? "" : "resp_" + std::to_string(next_ - 1);
      HEARTH_CHECK(store->Put("tenant", {id, previous, "[]", TextOf(next_)}).ok());
      // At a checkpoint, or before a log begins anew: those before this one are safe either way.
      if (vfs_.num_syncs("-wal") > syncs) safe_ = next_;
      ++next_;
    }
    vfs_.Die();
    store = nullptr;  // what it tidies up at its end does not reach the disk
    if (loses) {
      vfs_.LosePower(random_);
    } else {
      vfs_.Keep();
      safe_ = next_;  // what was put is there after a kill
    }
  }

  int64_t num_lost() const { return num_lost_; }
  int64_t num_changes_lost() const { return vfs_.num_changes_lost(); }

 private:
  // SQLite's own word that nothing is broken, on a connection of its own.
  void CheckWhole() {
    sqlite3* db = nullptr;
    HEARTH_CHECK(sqlite3_open(path_.c_str(), &db) == SQLITE_OK);
    std::string said;
    const auto hear = [](void* out, int, char** texts, char**) {
      *static_cast<std::string*>(out) += texts[0];
      return 0;
    };
    HEARTH_CHECK(sqlite3_exec(db, "PRAGMA integrity_check", hear, &said, nullptr) == SQLITE_OK);
    if (said != "ok") std::fprintf(stderr, "integrity_check: %s\n", said.c_str());
    HEARTH_CHECK(said == "ok");
    sqlite3_close(db);
  }

  // Everything up to some response, whole, and nothing after it.
  void Compare(ResponseStore& store) {
    const int64_t there = store.count();
    if (there < safe_ || there > next_) {
      std::fprintf(stderr, "%lld responses; %lld were put, %lld of them synced\n",
                   static_cast<long long>(there), static_cast<long long>(next_),
                   static_cast<long long>(safe_));
    }
    HEARTH_CHECK(there >= safe_ && there <= next_);
    for (int64_t i = std::max<int64_t>(0, there - 50); i < there; ++i) {
      auto found = store.Get("tenant", "resp_" + std::to_string(i));
      HEARTH_CHECK(found.ok() && found->has_value());
      HEARTH_CHECK((*found)->response == TextOf(i));
    }
    if (has_key_) {
      HEARTH_CHECK(store.cipher_key() == key_);
    }
    // The key is written first, and is there with the first thing that is.
    has_key_ = safe_ > 0;
    key_ = store.cipher_key();
    num_lost_ += next_ - there;
    next_ = there;
  }

  LosingVfs vfs_;
  const std::string path_;
  std::mt19937_64 random_;
  int64_t next_ = 0, safe_ = 0, num_lost_ = 0;
  bool has_key_ = false;
  CipherKey key_{};
};

int Main(int argc, char** argv) {
  const int losses = argc > 1 ? std::atoi(argv[1]) : 100;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  char folder[] = "/tmp/hearth-power-XXXXXX";
  HEARTH_CHECK(::mkdtemp(folder) != nullptr);
  // The store makes its file private before SQLite opens it; that one stays empty.
  const std::string path = std::string(folder) + "/responses";
  int64_t lost = 0, changes = 0;
  for (int done = 0; done < losses;) {
    // A new disk now and then: beginnings are when tables are made.
    Trial trial(path, seed * 1'000'003 + static_cast<uint64_t>(done));
    for (int i = 0; i < 20 && done < losses; ++i, ++done) trial.Run(i % 5 != 4);
    lost += trial.num_lost();
    changes += trial.num_changes_lost();
  }
  ::unlink(path.c_str());
  ::rmdir(folder);
  std::printf(
      "%d ends, four in five with the power: %lld writes lost or torn, %lld last responses gone, "
      "none that was synced\n",
      losses, static_cast<long long>(changes), static_cast<long long>(lost));
  HEARTH_CHECK(changes > losses);
  HEARTH_CHECK(
      testing::WriteResults("power", HEARTH_VERSION, losses,
                            {{"ends", losses}, {"writes_lost", changes}, {"unsynced_gone", lost}}));
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc, argv); }
