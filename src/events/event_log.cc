// SPDX-License-Identifier: Apache-2.0
#include "events/event_log.h"

#include <span>
#include <utility>

namespace hearth {

NumberedBatch EventLog::Number(const BlockEvents& events, double now_s) {
  NumberedBatch batch{next_number_++, std::make_shared<const std::string>(
                                          EncodeEvents(options_.wire, layout_, events, now_s))};
  kept_.push_back(batch);
  kept_bytes_ += batch.payload->size();
  while (kept_.size() > options_.max_kept || kept_bytes_ > options_.max_kept_bytes) {
    kept_bytes_ -= kept_.front().payload->size();
    kept_.pop_front();
  }
  ++counts_.num_batches;
  counts_.num_blocks = mirror_.size();
  return batch;
}

NumberedBatch EventLog::Begin(double now_s) {
  BlockEvents nothing;
  nothing.is_all = true;
  return Number(nothing, now_s);
}

NumberedBatch EventLog::Beat(double now_s) { return Number({}, now_s); }

// Those that subscribers have not heard of: the rest would be noise, or of groups that are not
// told.
BlockEvents EventLog::NewOf(const BlockEvents& events) {
  BlockEvents told;
  const auto block_tokens = static_cast<size_t>(layout_.block_tokens);
  std::span<const Token> rest = events.tokens;
  for (const BlockEvent& event : events.events) {
    std::span<const Token> tokens;
    if (event.is_stored) {
      tokens = rest.first(block_tokens);
      rest = rest.subspan(block_tokens);
    }
    if (!IsTold(options_.wire, layout_, event.group)) continue;
    if (!(event.is_stored ? mirror_.Store(event, tokens) : mirror_.Remove(event))) continue;
    ++(event.is_stored ? counts_.num_stored : counts_.num_removed);
    told.events.push_back(event);
    told.tokens.insert(told.tokens.end(), tokens.begin(), tokens.end());
  }
  return told;
}

std::optional<NumberedBatch> EventLog::Add(const BlockEvents& events, const KvLayout& layout,
                                           double now_s) {
  layout_ = layout;
  if (events.is_all) mirror_.Clear(BlockPlace::kMemory);
  const BlockEvents told = NewOf(events);
  // What is below memory was not told again, and must not be forgotten with the rest.
  if (events.is_all) return Number(mirror_.All(), now_s);
  if (told.events.empty()) return std::nullopt;
  return Number(told, now_s);
}

std::vector<NumberedBatch> EventLog::Replay(uint64_t from, double now_s) {
  ++counts_.num_replays;
  std::vector<NumberedBatch> missed;
  if (from == next_number_) return missed;
  if (from > next_number_ || kept_.empty() || from < kept_.front().number) {
    ++counts_.num_full_replays;
    missed.push_back({next_number_ - 1, std::make_shared<const std::string>(EncodeEvents(
                                            options_.wire, layout_, mirror_.All(), now_s))});
    return missed;
  }
  for (const NumberedBatch& batch : kept_) {
    if (batch.number >= from) missed.push_back(batch);
  }
  return missed;
}

}  // namespace hearth
