// SPDX-License-Identifier: Apache-2.0
#include "top/status.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace hearth {
namespace {

constexpr size_t kMaxNameBytes = 128, kMaxRows = 1024;

// Members of one object, whatever it is.
class Members {
 public:
  explicit Members(const Json* json) : json_(json) {}
  Members In(std::string_view name) const { return Members(Find(name)); }
  std::string Text(std::string_view name) const {
    const Json* found = Find(name);
    return found && found->string() ? found->string()->substr(0, kMaxNameBytes) : "";
  }
  double Number(std::string_view name) const {
    const Json* found = Find(name);
    const double value = found ? found->number().value_or(0) : 0;
    return std::isfinite(value) ? value : 0;
  }
  // Counts are never negative, and none comes near 2^53.
  int64_t Count(std::string_view name) const {
    return static_cast<int64_t>(std::clamp(Number(name), 0.0, 0x1p53));
  }
  template <typename Read>
  void Each(std::string_view name, Read read) const {
    const Json* found = Find(name);
    if (found == nullptr || found->array() == nullptr) return;
    const size_t count = std::min(found->array()->size(), kMaxRows);
    for (size_t i = 0; i < count; ++i) read(Members(&(*found->array())[i]));
  }

 private:
  const Json* Find(std::string_view name) const { return json_ ? json_->Find(name) : nullptr; }
  const Json* json_;
};

TopSequence ReadSequence(const Members& from) {
  TopSequence row;
  row.request_id = from.Text("request_id");
  row.key = from.Text("key");
  row.state = from.Text("state");
  row.priority = from.Text("priority");
  row.age_s = from.Number("age_ms") / 1000;
  row.tokens_per_s = from.Number("tokens_per_s");
  row.prompt = from.Count("prompt_tokens");
  row.cached = from.Count("cached_tokens");
  row.computed = from.Count("computed_tokens");
  row.generated = from.Count("generated_tokens");
  row.preempted = from.Count("preempted");
  return row;
}

void ReadLoad(const Members& from, TopStatus& out) {
  const Members requests = from.In("requests");
  out.running = requests.Count("running");
  out.max_running = requests.Count("max_running");
  out.paused = requests.Count("paused");
  out.preempted = requests.Count("preempted");
  out.preemptions = requests.Count("preemptions");
  out.waiting = requests.Count("waiting");
  out.max_waiting = requests.Count("max_waiting");
  out.waiting_tokens = requests.Count("waiting_tokens");
  out.refused = requests.Count("refused");
  const Members tokens = from.In("tokens");
  out.decode_per_s = tokens.Number("decode_per_s");
  out.prefill_per_s = tokens.Number("prefill_per_s");
  out.prompt_tokens = tokens.Count("prompt");
  out.cached_tokens = tokens.Count("cached");
  out.drafted = tokens.Count("drafted");
  out.accepted = tokens.Count("accepted");
}

void ReadSteps(const Members& from, TopStatus& out) {
  const Members steps = from.In("steps");
  out.num_steps = steps.Count("count");
  out.step_ms = steps.Number("mean_ms");
  out.step_tokens = steps.Number("mean_tokens");
  out.step_p50_ms = steps.Number("p50_ms");
  out.step_p99_ms = steps.Number("p99_ms");
  out.itl_target_ms = steps.Number("itl_target_ms");
  out.step_failures = steps.Count("failures");
  out.mask_steps = from.In("masks").Count("steps");
  out.mask_waits = from.In("masks").Count("waited_steps");
}

}  // namespace

TopStatus ReadTopStatus(const Json& json) {
  const Members from(&json);
  TopStatus out;
  out.version = from.Text("hearth");
  out.model = from.Text("model");
  out.state = from.Text("state");
  out.uptime_s = from.Number("uptime_s");
  out.snapshot_age_s = from.Number("snapshot_age_ms") / 1000;
  out.max_context = from.Count("max_context");
  out.resident_bytes = from.Count("resident_bytes");
  ReadLoad(from, out);
  ReadSteps(from, out);
  from.Each("listeners", [&](const Members& listener) {
    out.connections += listener.Count("connections");
    out.refusals += listener.Count("refusals");
  });
  from.Each("kv", [&](const Members& group) {
    out.kv.push_back({group.Text("group"), group.Count("total"),
                      group.Count("held") + group.Count("pinned"), group.Count("cached"),
                      group.Count("block_bytes")});
  });
  from.In("tier").Each("parts", [&](const Members& tier) {
    out.tiers.push_back(
        {tier.Text("name"), tier.Count("used_bytes"), tier.Count("capacity_bytes"),
         tier.Count("hits"), tier.Count("misses"), tier.Count("corrupt") + tier.Count("failed"),
         tier.In("missed_prompts").Count("late"), tier.In("missed_prompts").Count("slower")});
  });
  from.Each("turns", [&](const Members& end) {
    out.ends.push_back({end.Count("status"), end.Count("count"), end.Text("code")});
  });
  from.Each("sequences", [&](const Members& row) { out.sequences.push_back(ReadSequence(row)); });
  return out;
}

}  // namespace hearth
