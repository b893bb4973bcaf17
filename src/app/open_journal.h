// SPDX-License-Identifier: Apache-2.0
// What makes streams survive: the secrets behind their events' ids, and the journal of their
// replies, in the caches that the flags name.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/open_tier.h"
#include "server/access/secrets.h"
#include "server/turns/reply_journal.h"
namespace hearth {

struct OpenedJournal {
  std::optional<Secrets> secrets;  // none: there is no root that outlives the process
  std::shared_ptr<ReplyJournal> journal;
};
// `worker_secret` is what a supervisor gives to all of its workers; empty: there is none. A store
// that cannot be used is told in a line on stderr, and replies are computed again without it.
OpenedJournal OpenJournal(const CacheFlags& flags, const std::string& worker_secret);

}  // namespace hearth
