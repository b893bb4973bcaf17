# SPDX-License-Identifier: Apache-2.0
"""Proves that base/mutex.h makes clang refuse what its annotations forbid: each planted mistake must
fail to compile for its reason, and the same code with the lock must compile."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = ["clang++-19", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
            "-Wthread-safety", "-ferror-limit=0", f"-I{ROOT / 'src'}"]

# One method for each plant, on a line of its own, so that what clang says can be told apart.
SOURCE = """
#include "base/mutex.h"
namespace hearth {
class Account {
 public:
%s

 private:
  int Sum() const HEARTH_REQUIRES(mu_) { return money_; }
  void Pay(int sum) HEARTH_EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    money_ += sum;
    paid_.NotifyAll();
  }
  mutable Mutex mu_;
  CondVar paid_;
  int money_ HEARTH_GUARDED_BY(mu_) = 0;
};
}  // namespace hearth
"""

TAKE = "MutexLock lock(mu_); "
GUARD = "const MutexLock lock(mu_); "
IS_PAID = "[this]() HEARTH_REQUIRES(mu_) { return money_ > 0; }"
# A name, the wrong code, a part of what clang must say, and the right code.
PLANTS = [
    ("a field without the lock", "++money_;", "requires holding mutex 'mu_'",
     GUARD + "++money_;"),
    ("a function without the lock", "Sum();", "requires holding mutex 'mu_'", GUARD + "Sum();"),
    ("a field after unlocking", TAKE + "lock.Unlock(); ++money_;", "requires holding mutex 'mu_'",
     TAKE + "lock.Unlock(); lock.Lock(); ++money_;"),
    ("locking twice", GUARD + "const MutexLock again(mu_);", "is already held",
     "{ " + GUARD + "} const MutexLock again(mu_);"),
    ("a call that takes the lock itself", GUARD + "Pay(1);", "while mutex 'mu_' is held",
     "{ " + GUARD + "} Pay(1);"),
    ("waiting without the lock", f"paid_.Wait(mu_, {IS_PAID});", "requires holding mutex 'mu_'",
     GUARD + f"paid_.Wait(mu_, {IS_PAID}); ++money_;"),
    ("waiting a while without the lock", "paid_.WaitFor(mu_, std::chrono::seconds(1));",
     "requires holding mutex 'mu_'", GUARD + "paid_.WaitFor(mu_, std::chrono::seconds(1));"),
    ("a predicate that says nothing of the lock",
     GUARD + "paid_.Wait(mu_, [this] { return money_ > 0; });", "requires holding mutex 'mu_'",
     GUARD + f"paid_.WaitFor(mu_, std::chrono::seconds(1), {IS_PAID});"),
]


def complaints(bodies):
    """By the line of its method, what clang says of it."""
    methods = [f"  void Use{i}() {{ {body} }}" for i, body in enumerate(bodies)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "planted.cc"
        path.write_text(SOURCE % "\n".join(methods))
        done = subprocess.run([*COMPILER, str(path)], capture_output=True, text=True, check=False)
    first = SOURCE[:SOURCE.index("%s")].count("\n") + 1
    found = [[] for _ in bodies]
    for line in done.stderr.splitlines():
        if match := re.match(r".*planted\.cc:(\d+):\d+: error: (.*)", line):
            found[int(match.group(1)) - first].append(match.group(2))
    return done.returncode, found, done.stderr


def main():
    code, _, text = complaints([right for _, _, _, right in PLANTS])
    if code != 0:
        sys.exit(f"clang refuses what is right:\n{text}")
    code, found, text = complaints([wrong for _, wrong, _, _ in PLANTS])
    failures = int(code == 0)
    for (name, _, reason, _), said in zip(PLANTS, found):
        if any(reason in one and "-Wthread-safety" in one for one in said):
            print(f"ok: {name}")
            continue
        failures += 1
        print(f"FAILED: {name}: expected {reason!r}, clang said: {said}")
    if failures:
        print(text)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
