// SPDX-License-Identifier: Apache-2.0
#include "events/event_queue.h"

#include <utility>

namespace hearth {
namespace {

BlockPlace PlaceNamed(std::string_view name) {
  if (name.empty()) return BlockPlace::kMemory;
  return name == "disk" ? BlockPlace::kDisk : BlockPlace::kShared;
}

}  // namespace

void EventQueue::Connect(const KvLayout& layout, std::function<void()> wake) {
  const MutexLock lock(mu_);
  layout_ = layout;
  wake_ = std::move(wake);
}

void EventQueue::OnStored(std::string_view place, const WatchedBlock& block) {
  pending_.events.push_back({true, PlaceNamed(place), block.group, block.key, block.parent});
  pending_.tokens.insert(pending_.tokens.end(), block.tokens.begin(), block.tokens.end());
}

void EventQueue::OnRemoved(std::string_view place, int group, const BlockKey& key) {
  pending_.events.push_back({false, PlaceNamed(place), group, key, BlockKey()});
}

void EventQueue::BeginAll() {
  pending_ = {};
  pending_.is_all = true;
  const MutexLock lock(mu_);
  has_lost_ = false;
  ++counts_.num_retold;
}

bool EventQueue::EndStep() {
  {
    const MutexLock lock(mu_);
    const size_t count = pending_.events.size();
    if (has_lost_ || (!pending_.is_all && counts_.num_queued + count > max_queued_)) {
      has_lost_ = true;
      counts_.num_dropped += count;
      pending_ = {};
      return queue_.empty();  // else the publisher wakes the engine when it is
    }
    if (count == 0 && !pending_.is_all) return false;
    counts_.num_queued += count;
    queue_.push_back(std::exchange(pending_, {}));
  }
  notify_();
  return false;
}

std::optional<BlockEvents> EventQueue::Take() {
  const MutexLock lock(mu_);
  if (queue_.empty()) return std::nullopt;
  BlockEvents taken = std::move(queue_.front());
  queue_.pop_front();
  counts_.num_queued -= taken.events.size();
  if (queue_.empty() && has_lost_ && wake_) wake_();
  return taken;
}

EventQueueCounts EventQueue::counts() const {
  const MutexLock lock(mu_);
  return counts_;
}

KvLayout EventQueue::layout() const {
  const MutexLock lock(mu_);
  return layout_;
}

}  // namespace hearth
