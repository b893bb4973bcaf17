// SPDX-License-Identifier: Apache-2.0
#include "events/event_wire.h"

#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "events/msgpack_writer.h"

namespace hearth {
namespace {

// What routers call the places. "GPU" is their word for the memory that a replica computes from,
// whatever it is made of: they give it the full weight.
constexpr std::array<const char*, kNumPlaces> kMediums = {"GPU", "DISK", "EXTERNAL"};

// Several events of one kind, place and group; those that were stored follow each other in a chain.
struct Run {
  const BlockEvent* first = nullptr;
  std::vector<BlockKey> keys;
  std::vector<std::span<const Token>> tokens;
};

// Only the last run of a place and a group may grow: within these the order counts, between them it
// does not.
std::vector<Run> RunsOf(const BlockEvents& events, size_t block_tokens) {
  std::vector<Run> runs;
  std::map<std::pair<BlockPlace, int>, size_t> last;
  std::span<const Token> rest = events.tokens;
  for (const BlockEvent& event : events.events) {
    const auto [at, is_first] = last.try_emplace({event.place, event.group}, runs.size());
    const bool goes_on = !is_first && runs[at->second].first->is_stored == event.is_stored &&
                         (!event.is_stored || runs[at->second].keys.back() == event.parent);
    if (!goes_on) {
      at->second = runs.size();
      runs.push_back({&event, {}, {}});
    }
    Run& run = runs[at->second];
    run.keys.push_back(event.key);
    if (!event.is_stored) continue;
    run.tokens.push_back(rest.first(block_tokens));
    rest = rest.subspan(block_tokens);
  }
  return runs;
}

class Encoder {
 public:
  Encoder(const WireOptions& options, const KvLayout& layout)
      : options_(options), layout_(layout) {}

  std::string Encode(const BlockEvents& events, double now_s) {
    const bool is_map = options_.form == EventForm::kVllmMaps;
    const std::vector<Run> runs = RunsOf(events, static_cast<size_t>(layout_.block_tokens));
    is_map ? out_.Map(3) : out_.Array(3);
    if (is_map) out_.Text("ts");
    out_.Double(now_s);
    if (is_map) out_.Text("events");
    out_.Array(runs.size() + events.is_all);
    if (events.is_all) Begin("AllBlocksCleared", 0);
    for (const Run& run : runs) run.first->is_stored ? Stored(run) : Removed(run);
    if (is_map) out_.Text("data_parallel_rank");
    out_.Unsigned(0);
    return out_.Take();
  }

 private:
  bool has_groups() const { return options_.form != EventForm::kSglang; }

  // An event with so many fields beside its class name.
  void Begin(const char* type, size_t num_fields) {
    if (options_.form == EventForm::kVllmMaps) {
      out_.Map(num_fields + 1);
      out_.Text("type");
    } else {
      out_.Array(num_fields + 1);
    }
    out_.Text(type);
  }
  void Field(const char* name) {
    if (options_.form == EventForm::kVllmMaps) out_.Text(name);
  }
  void Hash(const BlockKey& key) {
    const uint64_t hash = WireHash(options_, key);
    if (options_.form == EventForm::kSglang) return out_.Signed(static_cast<int64_t>(hash));
    out_.Unsigned(hash);
  }
  void Hashes(const Run& run) {
    Field("block_hashes");
    out_.Array(run.keys.size());
    for (const BlockKey& key : run.keys) Hash(key);
  }
  void Medium(const Run& run) {
    Field("medium");
    out_.Text(kMediums[static_cast<size_t>(run.first->place)]);
  }
  void Group(const Run& run) {
    Field("group_idx");
    out_.Unsigned(static_cast<uint64_t>(run.first->group));
  }

  void Stored(const Run& run) {
    Begin("BlockStored", has_groups() ? 11 : 6);
    Hashes(run);
    Field("parent_block_hash");
    run.first->parent == BlockKey() ? out_.Nil() : Hash(run.first->parent);
    Field("token_ids");
    out_.Array(run.tokens.size() * static_cast<size_t>(layout_.block_tokens));
    for (const auto block : run.tokens) {
      for (const Token token : block) out_.Signed(token);
    }
    Field("block_size");
    out_.Unsigned(static_cast<uint64_t>(layout_.block_tokens));
    Field("lora_id");
    out_.Nil();
    Medium(run);
    if (!has_groups()) return;
    Field("lora_name");
    out_.Nil();
    Field("extra_keys");
    out_.Nil();
    Group(run);
    const int window = layout_.group(run.first->group).window;
    Field("kv_cache_spec_kind");
    out_.Text(window == 0 ? "full_attention" : "sliding_window");
    Field("kv_cache_spec_sliding_window");
    window == 0 ? out_.Nil() : out_.Unsigned(static_cast<uint64_t>(window));
  }

  void Removed(const Run& run) {
    Begin("BlockRemoved", has_groups() ? 3 : 2);
    Hashes(run);
    Medium(run);
    if (has_groups()) Group(run);
  }

  const WireOptions& options_;
  const KvLayout& layout_;
  MsgpackWriter out_;
};

}  // namespace

bool IsTold(const WireOptions& options, const KvLayout& layout, int group) {
  if (layout.group(group).window == 0) return true;
  return options.tells_windows && options.form != EventForm::kSglang;
}

uint64_t WireHash(const WireOptions& options, const BlockKey& key) {
  return MixBits(key.lo ^ MixBits(key.hi ^ options.hash_seed));
}

std::string EncodeEvents(const WireOptions& options, const KvLayout& layout,
                         const BlockEvents& events, double now_s) {
  return Encoder(options, layout).Encode(events, now_s);
}

}  // namespace hearth
