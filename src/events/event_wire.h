// SPDX-License-Identifier: Apache-2.0
// Events as bytes, in the forms that vLLM and SGLang publish and routers read.
#pragma once
#include <cstdint>
#include <string>

#include "events/block_event.h"
#include "kv/layout.h"
namespace hearth {

enum class EventForm : uint8_t {
  kVllm,      // arrays with a class name in front: what vLLM wrote for long and routers expect
  kVllmMaps,  // maps with a "type": what vLLM writes lately
  kSglang,    // arrays, signed hashes, no groups: only the group that sees everything is told
};

struct WireOptions {
  EventForm form = EventForm::kVllm;
  bool tells_windows = true;  // blocks of groups with a window too, where the form has groups
  uint64_t hash_seed = 0;     // hashes on the wire are not the keys: those stay a secret
};

// Whether blocks of the group are told at all.
bool IsTold(const WireOptions& options, const KvLayout& layout, int group);

// The MessagePack of a batch. Runs of one chain become one event. `events.is_all`: whoever reads
// it forgets everything first.
std::string EncodeEvents(const WireOptions& options, const KvLayout& layout,
                         const BlockEvents& events, double now_s);

// The 64 bits by which a key is known to subscribers.
uint64_t WireHash(const WireOptions& options, const BlockKey& key);

}  // namespace hearth
