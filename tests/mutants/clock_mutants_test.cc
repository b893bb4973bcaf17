// SPDX-License-Identifier: Apache-2.0
// Every seeded bug in how ages are told from dates must be noticed: clocks jump, processes and
// machines start again, and what is kept ends neither early nor late.
#include <gtest/gtest.h>

#include <string>

#include "base/age_clock.h"
#include "testing/batch_rig.h"
#include "testing/mutants.h"
#include "testing/temp_dir.h"
namespace hearth {
namespace {

using testing::MutantFate;

// What each number breaks; the places are marked HEARTH_MUTANT(number) in patches/clock.
constexpr int kFirst = 300;
constexpr const char* kBugs[] = {
    "an age is a date",
    "another process of the same machine's start goes by the date",
    "any date is believed at once",
    "replicas do not take each other's age",
    "time that the machine was off is forgotten when the process ends",
    "a batch ends by the date",
    "a file's end is a date",
    "files are deleted by the date",
    "the age is not written down",
    "time that the machine was off is added again and again",
};

constexpr int64_t kDay = 24 * 3600, kYear = 365 * kDay, kToday = 1'800'000'000;

struct Machine {
  ClockReading now{kToday, 1000, "first"};
  AgeRecord kept = AgeRecord::Begin(now);
  int64_t Run(AgeClock& clock, int64_t seconds) {
    for (int64_t i = 0; i <= seconds; i += 10) {
      kept = clock.Sync(now, kept);
      if (i == seconds) break;
      now.wall_s += 10;
      now.boot_s += 10;
    }
    return clock.Age(now);
  }
  void Restart(int64_t off_s) {
    now.wall_s += off_s;
    now.boot_s = 20;
    now.boot += "+";
  }
};

std::string Wrong(const char* what, int64_t got, int64_t wanted) {
  if (got == wanted) return "";
  return std::string(what) + ": " + std::to_string(got) + ", not " + std::to_string(wanted);
}

std::string CheckJumps(int64_t jump) {
  Machine machine;
  AgeClock one, next;
  machine.Run(one, 7200);
  machine.now.wall_s += jump;
  std::string wrong = Wrong("a jump", machine.Run(one, 7200), kToday + 14'400);
  // While nobody runs.
  machine.now.boot_s += 500;
  machine.now.wall_s += 500 - jump;
  if (wrong.empty()) wrong = Wrong("a start", machine.Run(next, 0), kToday + 14'900);
  if (wrong.empty()) wrong = Wrong("later", machine.Run(next, 7200), kToday + 22'100);
  return wrong;
}

std::string CheckOff() {
  Machine machine;
  AgeClock before, brief, after;
  machine.Run(before, 7200);
  machine.Restart(2 * kDay);
  machine.now.wall_s += 12 * kYear;
  std::string wrong = Wrong("a wrong date at the start", machine.Run(brief, 1000), kToday + 8200);
  machine.now.wall_s -= 12 * kYear;
  const int64_t aged = machine.Run(after, 3 * 3600);
  if (wrong.empty()) wrong = Wrong("after the machine was off", aged, kToday + 19'000 + 2 * kDay);
  // Later jumps are none of it.
  machine.now.wall_s += 12 * kYear;
  if (wrong.empty()) wrong = Wrong("a later jump", machine.Run(after, 7200), aged + 7200);
  return wrong;
}

std::string CheckSharing() {
  Machine machine;
  ClockReading other{kToday, 77, "other"};
  AgeClock a, b;
  machine.Run(a, 100);
  const AgeRecord old = machine.kept;
  machine.Run(a, 1000);
  other.wall_s = machine.now.wall_s;
  (void)b.Sync(other, old);
  (void)b.Sync(other, machine.kept);
  return Wrong("a replica that was behind", b.Age(other), a.Age(machine.now));
}

// The fixture without a test around it.
struct Rig : testing::BatchRig {
  void TestBody() override {}
  bool HasFile(const std::string& id) { return office_->FindFile("t", id).ok(); }
  std::string Keep(int64_t seconds) {
    return testing::Text(*office_->AddFile("t", {"in.jsonl", "batch", "x", seconds}), "id");
  }
  // Several looks of the runner, each at another time.
  void Look() {
    for (int i = 0; i < 3; ++i) {
      Pass(10);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  }
};

std::string CheckOffice(int64_t jump) {
  const testing::TempDir folder;
  Rig rig;
  const auto open = [&] {
    rig.Open(folder.path() + "/batches");
    rig.office_->Start(rig.api_.Sender());
  };
  open();
  const std::string batch = rig.Create(testing::Input(2), "t", "24h"), file = rig.Keep(kDay);
  if (!rig.Eventually([&] { return rig.api_.waiting() == 2; })) return "no lines began";
  rig.EndWhatIsLeft();
  rig.wall_s_ += jump;
  const std::string under = rig.Keep(3600);
  rig.Look();
  if (!rig.HasFile(file)) return "a file ended by a jump";
  if (!rig.HasFile(under)) return "a file that came after a jump ended";
  if (testing::Text(rig.Batch(batch), "status") != "in_progress") return "a batch ended by a jump";
  rig.office_ = nullptr;
  rig.api_.Take();
  open();
  if (!rig.Eventually([&] { return rig.api_.waiting() == 2; })) return "no lines began again";
  rig.EndWhatIsLeft();
  for (int i = 0; i < 3; ++i) {  // longer than it takes to believe a date
    rig.Pass(3600);
    rig.Look();
  }
  if (!rig.HasFile(file)) return "a file ended by a jump between two processes";
  if (testing::Text(rig.Batch(batch), "status") != "in_progress") return "a batch did";
  if (!rig.Eventually([&] { return !rig.HasFile(under); })) return "a file stayed for too long";
  rig.wall_s_ -= jump;
  rig.EndWhatIsLeft();
  rig.Pass(kDay);
  if (!rig.WaitFor(batch, "expired")) return "a batch never ended";
  return rig.Eventually([&] { return !rig.HasFile(file); }) ? "" : "a file never ended";
}

std::string AllChecks() {
  for (const int64_t jump : {3 * kDay, -3 * kDay, 12 * kYear, -12 * kYear}) {
    if (std::string wrong = CheckJumps(jump); !wrong.empty()) return wrong;
  }
  if (std::string wrong = CheckOff(); !wrong.empty()) return wrong;
  if (std::string wrong = CheckSharing(); !wrong.empty()) return wrong;
  for (const int64_t jump : {12 * kYear, -12 * kYear}) {
    if (std::string wrong = CheckOffice(jump); !wrong.empty()) return wrong;
  }
  return "";
}

TEST(ClockMutants, NoneIsFoundWhereNoneIs) {
  EXPECT_EQ(AllChecks(), "");
  EXPECT_EQ(testing::RunMutant(0, AllChecks), MutantFate::kUnnoticed);
}

TEST(ClockMutants, EachIsNoticed) {
  for (int i = 0; i < static_cast<int>(std::size(kBugs)); ++i) {
    EXPECT_EQ(testing::RunMutant(kFirst + i, AllChecks), MutantFate::kReported)
        << "mutant " << kFirst + i << ": " << kBugs[i];
  }
}

}  // namespace
}  // namespace hearth
