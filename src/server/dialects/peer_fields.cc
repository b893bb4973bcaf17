// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/peer_fields.h"

#include <algorithm>
#include <array>

#include "server/dialects/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kFields[] = {
    {"cache_prompt", kBoolean, kNoEffect, 0, 0,
     "every prefix is cached; the reply is the same bit for bit with and without"},
    {"dry_allowed_length", kInteger, kHonoured, 1, 1024, "repeats up to this long cost nothing"},
    {"dry_base", kNumber, kHonoured, 1, 10, "what each further token of a repeat multiplies"},
    {"dry_multiplier", kNumber, kHonoured, 0, 100, "holds repeats of the text back; 0: off"},
    {"dry_penalty_last_n", kInteger, kHonoured, -1, 1 << 17,
     "how many tokens DRY looks back; -1: as many as it can, 131072"},
    {"dynatemp_range", kNumber, kForeign, 0, 0, "the temperature is fixed", "0"},
    {"grammar", kString, kForeign, 0, 0, "GBNF is not read; use structured_outputs.grammar (Lark)",
     "\"\""},
    {"id_slot", kInteger, kNoEffect, 0, 0, "there are no slots: the cache is found by content"},
    {"json_schema", kAny, kHonoured, 0, 0, "as guided_json"},
    {"keep_alive", kAny, kNoEffect, 0, 0, "the model stays loaded while the server runs"},
    {"mirostat", kInteger, kForeign, 0, 0, "not implemented; use min_p or top_p", "0"},
    {"mirostat_eta", kNumber, kNoEffect, 0, 0, "of mirostat, which must be off"},
    {"mirostat_tau", kNumber, kNoEffect, 0, 0, "of mirostat, which must be off"},
    {"n_predict", kInteger, kHonoured, -1, 1 << 27, "as max_tokens; -1: as many as fit"},
    {"repeat_last_n", kInteger, kHonoured, -1, 1 << 24,
     "how many tokens the penalties look back; -1: all, as without it"},
    {"repeat_penalty", kNumber, kHonoured, 0.01, 10, "as repetition_penalty"},
    {"skip_special_tokens", kBoolean, kForeign, 0, 0, "special tokens are never text", "true"},
    {"tfs_z", kNumber, kForeign, 0, 0, "not implemented; use min_p or top_p", "1"},
    {"top_n_sigma", kNumber, kForeign, 0, 0, "not implemented; use min_p or top_p", "-1"},
    {"truncate_prompt_tokens", kInteger, kRefused, 0, 0, "prompts are never shortened"},
    {"typical_p", kNumber, kHonoured, 0, 1, "keep the most typical tokens up to this share"},
    {"use_beam_search", kBoolean, kForeign, 0, 0, "not implemented", "false"},
    {"xtc_probability", kNumber, kHonoured, 0, 1, "how often the top choices are excluded"},
    {"xtc_threshold", kNumber, kHonoured, 0, 1, "the share that makes a top choice"},
};

// One setting under a second name.
ApiStatus Agree(const Fields& fields, const char* ours, const char* theirs) {
  const Json *mine = fields.find(ours), *other = fields.find(theirs);
  if (mine == nullptr || other == nullptr || mine->number() == other->number()) return {};
  return BadField(
      theirs, "differs from \"" + std::string(ours) + "\", which is the same setting; send one");
}

ApiStatus ReadAliases(const Fields& fields, TurnRequest& out) {
  HEARTH_TRY(Agree(fields, "repetition_penalty", "repeat_penalty"));
  HEARTH_TRY(Agree(fields, "max_tokens", "n_predict"));
  fields.Set("repeat_penalty", out.sampling.repetition_penalty);
  if (const auto bound = fields.integer("n_predict")) {
    if (*bound == 0) return BadField("n_predict", "must be at least 1, or -1");
    out.max_tokens = static_cast<int>(std::max<int64_t>(0, *bound));
  }
  return {};
}

void ReadSamplers(const Fields& fields, SamplingParams& out) {
  fields.Set("typical_p", out.typical_p);
  fields.Set("xtc_probability", out.xtc_probability);
  fields.Set("xtc_threshold", out.xtc_threshold);
  fields.Set("dry_multiplier", out.dry_multiplier);
  fields.Set("dry_base", out.dry_base);
  fields.Set("dry_allowed_length", out.dry_allowed_length);
}

// How far back something looks, where -1 is `all`. 0 switches it off for other engines.
ApiStatus ReadWindow(const Fields& fields, const char* name, int all, int& out) {
  const auto window = fields.integer(name);
  if (!window) return {};
  if (*window == 0) return BadField(name, "0 switches the penalties off: leave them out instead");
  out = *window < 0 ? all : static_cast<int>(*window);
  return {};
}

bool IsVariableName(std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 64 && (name[0] < '0' || name[0] > '9') &&
         std::all_of(name.begin(), name.end(), is_word);
}

// What a template gets from the conversation and the model, and its functions.
bool IsReserved(std::string_view name) {
  constexpr std::array kNames = {
      "messages", "tools",     "documents",       "add_generation_prompt", "bos_token", "eos_token",
      "loop",     "namespace", "raise_exception", "strftime_now",          "dict",      "range"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

std::span<const Field> PeerFields() { return kFields; }

ApiStatus ReadPeerFields(const Fields& fields, TurnRequest& out) {
  ReadSamplers(fields, out.sampling);
  HEARTH_TRY(ReadWindow(fields, "repeat_last_n", 0, out.sampling.penalty_window));
  HEARTH_TRY(ReadWindow(fields, "dry_penalty_last_n", 1 << 17, out.sampling.dry_window));
  return ReadAliases(fields, out);
}

ApiStatus ReadTemplateVariables(const Json& variables, const std::string& path, TurnRequest& out) {
  constexpr size_t kMaxVariables = 16, kMaxBytes = 1024;
  for (const auto& [name, value] : *variables.object()) {
    const std::string at = path + "." + name.substr(0, 80);
    if (value.is_null()) continue;
    if (!IsVariableName(name)) return BadField(at, "not a name of a template's variable");
    if (IsReserved(name)) return BadField(at, "a request cannot set this variable");
    const std::string* text = value.string();
    if (name == "reasoning_effort") {
      if (text == nullptr) return BadField(at, "must be a string");
      HEARTH_TRY(ReadEffort(*text, at, out));
      continue;
    }
    if (text == nullptr && value.boolean() == nullptr && !value.number()) {
      return BadField(at, "must be a string, a number or a boolean");
    }
    if (text != nullptr && text->size() > kMaxBytes) {
      return BadField(at, "must have at most 1024 bytes");
    }
    if (out.conversation.template_variables.size() == kMaxVariables) {
      return BadField(path, "must have at most 16 variables");
    }
    out.conversation.template_variables.push_back({name, value});
  }
  return {};
}

}  // namespace hearth
