// SPDX-License-Identifier: Apache-2.0
// A model from the Hub, or from a URL, into Hearth's store.
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/download.h"
#include "hub/hub_api.h"
#include "hub/transport.h"
#include "store/inventory.h"
#include "store/model_store.h"
namespace hearth {

struct PullWishes {
  std::string what;                  // as ParseReference reads it
  std::string name{};                // for the store; default: the catalogue's, or after the file
  std::string sha256{};              // of a URL's file, when its publisher tells it
  bool ignores_memory = false;       // also what does not fit into this machine's memory
  bool waits_for_others = true;      // for another process that is at the same model
  uint64_t usable_memory_bytes = 0;  // 0: unknown, not checked
  DownloadPolicy policy{};
};

// Thread: the caller of PullModel.
class PullWatcher {
 public:
  virtual ~PullWatcher() = default;
  virtual void OnPlan(const Manifest& manifest) = 0;  // before the first byte
  virtual void OnProgress(uint64_t bytes_here) = 0;   // of the whole model
  virtual void OnNote(const std::string& note) = 0;
};

struct Pulled {
  std::string name, path;
  uint64_t bytes = 0;
  bool was_here = false;   // nothing was downloaded
  bool is_checked = true;  // every file against a digest; else some by their length alone
};

// After success the model is in the store, or was on this machine before. After a failure the store
// has no such model; what arrived is kept for the next attempt, and the message says what to do.
Result<Pulled> PullModel(Transport& transport, const StorePlaces& places, const HubAddress& hub,
                         const PullWishes& wishes, PullWatcher& watcher);

}  // namespace hearth
