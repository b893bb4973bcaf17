// SPDX-License-Identifier: Apache-2.0
// Models in this process that answer conversations: opened by name or path, one at a time.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/open_backend.h"
#include "base/json.h"
#include "base/result.h"
#include "talk/answerer.h"
namespace hearth {

struct ChatOptions {
  std::string backend = "cpu", date;
  int context = 0;             // 0: what the model has, at most 16384
  std::optional<Json> schema;  // every reply is held to it
  BackendFlags hardware;
};

// What a model computed for one turn is kept for the next ones: a turn reads only what is new, and
// so does one that is tried again.
std::unique_ptr<AnswererSource> NewLocalSource(ChatOptions options);

}  // namespace hearth
