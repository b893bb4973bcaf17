// SPDX-License-Identifier: Apache-2.0
// What a pull will download: asked of the Hub or of a URL's server before the first byte.
#pragma once
#include <string>
#include <vector>

#include "hub/pull.h"
namespace hearth {

struct PlannedFile {
  std::string url{};
  Digest digest{};
  std::string identity{};
};

struct PullPlan {
  Manifest manifest{};               // not complete yet
  std::vector<PlannedFile> files{};  // as in the manifest
  std::string token{};
};

// `reference` is of the Hub or a URL; `name` may be empty.
Result<PullPlan> MakePullPlan(Transport& transport, const HubAddress& hub,
                              const ModelReference& reference, const std::string& name,
                              const PullWishes& wishes, PullWatcher& watcher);

}  // namespace hearth
