// SPDX-License-Identifier: Apache-2.0
// The connections of a thread that are between two requests: who they are, and how a drain ends
// them.
#include <utility>

#include "http/connection.h"

namespace hearth {

void IdleConnections::Enter(Member& member) {
  member.place_ = members_.size();
  members_.push_back(&member);
}

void IdleConnections::Leave(Member& member) {
  members_.back()->place_ = member.place_;
  std::swap(members_[member.place_], members_.back());
  members_.pop_back();
}

void IdleConnections::CloseAll() {
  for (Member* member : members_) member->CloseIdle();  // each leaves when its wait has ended
}

}  // namespace hearth
