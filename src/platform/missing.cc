// SPDX-License-Identifier: Apache-2.0
#include "platform/missing.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"

namespace hearth {
namespace {

struct Notes {
  Mutex mutex;
  std::vector<std::string> all HEARTH_GUARDED_BY(mutex);
  size_t num_told HEARTH_GUARDED_BY(mutex) = 0;
};

Notes& TheNotes() {
  static Notes notes;
  return notes;
}

}  // namespace

void NoteMissing(std::string sentence) {
  Notes& notes = TheNotes();
  const MutexLock lock(notes.mutex);
  if (std::find(notes.all.begin(), notes.all.end(), sentence) == notes.all.end()) {
    notes.all.push_back(std::move(sentence));
  }
}

std::vector<std::string> TakeMissing() {
  Notes& notes = TheNotes();
  const MutexLock lock(notes.mutex);
  const auto first = notes.all.begin() + static_cast<ptrdiff_t>(notes.num_told);
  notes.num_told = notes.all.size();
  return {first, notes.all.end()};
}

}  // namespace hearth
