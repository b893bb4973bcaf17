// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_options.h"

#include <algorithm>
#include <utility>

#include "text/stop_strings.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr std::string_view kMachine = "set when the server is started";

constexpr Field kOptions[] = {
    {"embedding_only", kBoolean, kNoEffect, 0, 0, kMachine},
    {"f16_kv", kBoolean, kNoEffect, 0, 0, kMachine},
    {"frequency_penalty", kNumber, kHonoured, -2, 2,
     "taken off a token's logit for each time it occurred in the reply"},
    {"logits_all", kBoolean, kNoEffect, 0, 0, "use `logprobs`"},
    {"low_vram", kBoolean, kNoEffect, 0, 0, kMachine},
    {"main_gpu", kInteger, kNoEffect, 0, 0, kMachine},
    {"min_p", kNumber, kHonoured, 0, 1, "keep tokens with this share of the likeliest one's"},
    {"mirostat", kInteger, kHonoured, 0, 2, "only 0, which is none; others are refused"},
    {"mirostat_eta", kNumber, kNoEffect, 0, 0, "there is no mirostat sampling"},
    {"mirostat_tau", kNumber, kNoEffect, 0, 0, "there is no mirostat sampling"},
    {"num_batch", kInteger, kNoEffect, 0, 0, kMachine},
    {"num_ctx", kInteger, kNoEffect, 0, 0,
     "the server's `--context`; what does not fit is refused, nothing is cut"},
    {"num_gpu", kInteger, kNoEffect, 0, 0, kMachine},
    {"num_keep", kInteger, kNoEffect, 0, 0, "prompts are never cut"},
    {"num_predict", kInteger, kHonoured, -2, 1 << 27,
     "tokens of the reply, thoughts included; below 1: as many as fit"},
    {"num_thread", kInteger, kNoEffect, 0, 0, kMachine},
    {"numa", kBoolean, kNoEffect, 0, 0, kMachine},
    {"penalize_newline", kBoolean, kNoEffect, 0, 0, "line breaks are tokens like others"},
    {"presence_penalty", kNumber, kHonoured, -2, 2,
     "taken off a token's logit once it occurred in the reply"},
    {"repeat_last_n", kInteger, kHonoured, -1, 1 << 24,
     "how many of the last tokens the penalties see; -1: all, 0: no penalties; all unless given"},
    {"repeat_penalty", kNumber, kHonoured, 0.01, 10, "divides the logits of tokens that occurred"},
    {"seed", kInteger, kHonoured, 0, 0,
     "the same seed and request give the same reply, always; below 0: another one each time"},
    {"stop", kAny, kHonoured, 0, 0, "a string or up to 16 of them; never part of the reply"},
    {"temperature", kNumber, kHonoured, 0, 100, "0 is the most likely token"},
    {"tfs_z", kNumber, kHonoured, 0, 100, "only 1, which is none; others are refused"},
    {"top_k", kInteger, kHonoured, -1, 1 << 20, "keep so many of the likeliest tokens; 0, -1: all"},
    {"top_p", kNumber, kHonoured, 0, 1, "keep the likeliest tokens up to this share"},
    {"typical_p", kNumber, kHonoured, 0, 1, "keep the most typical tokens up to this share"},
    {"use_mlock", kBoolean, kNoEffect, 0, 0, kMachine},
    {"use_mmap", kBoolean, kNoEffect, 0, 0, kMachine},
    {"vocab_only", kBoolean, kNoEffect, 0, 0, kMachine},
};

std::string PathOf(std::string_view option) { return "options." + std::string(option); }

// ReadFields knows the names without what stands before them.
ApiResult<Fields> Checked(const Json& options) {
  ApiResult<Fields> fields = ReadFields(options, kOptions);
  if (fields.ok()) return fields;
  ApiError error = fields.error();
  if (error.code == "unknown_parameter") {
    return UnknownField(PathOf(error.param), NearField(error.param, kOptions));
  }
  error.message = PathOf(error.message);
  error.param = PathOf(error.param);
  return error;
}

ApiStatus ReadStops(const Fields& fields, std::vector<std::string>& out) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return {};
  const ApiError wrong = BadField("options.stop", "must be a string or an array of strings");
  if (stop->string() != nullptr) {
    out.push_back(*stop->string());
  } else if (stop->array() == nullptr) {
    return wrong;
  }
  for (const Json& each : stop->array() != nullptr ? *stop->array() : JsonArray()) {
    if (each.string() == nullptr) return wrong;
    out.push_back(*each.string());
  }
  const Status status = StopStrings::Make(out).status();
  if (!status.ok()) return BadField("options.stop", status.message());
  return {};
}

// They would change the reply: what was asked for is not silently left out.
ApiStatus RefuseOtherSamplers(const Fields& fields) {
  if (fields.integer("mirostat").value_or(0) != 0) {
    return BadField("options.mirostat", "not supported: use temperature, top_p or min_p",
                    "unsupported_value");
  }
  if (fields.number("tfs_z").value_or(1) != 1) {
    return BadField("options.tfs_z", "not supported: use top_p, min_p or typical_p",
                    "unsupported_value");
  }
  return {};
}

// Only what is given is set: the rest is the model's own default.
void ReadSampling(const Fields& fields, TurnRequest& out) {
  SamplingParams& sampling = out.sampling;
  fields.Set("temperature", sampling.temperature);
  fields.Set("top_p", sampling.top_p);
  fields.Set("min_p", sampling.min_p);
  fields.Set("typical_p", sampling.typical_p);
  fields.Set("frequency_penalty", sampling.frequency_penalty);
  fields.Set("presence_penalty", sampling.presence_penalty);
  fields.Set("repeat_penalty", sampling.repetition_penalty);
  if (const auto top_k = fields.integer("top_k")) {
    sampling.top_k = std::max(0, static_cast<int>(*top_k));
  }
  if (const auto window = fields.integer("repeat_last_n")) {
    sampling.penalty_window = std::max(0, static_cast<int>(*window));
    if (*window == 0) {
      sampling.repetition_penalty = 1;
      sampling.frequency_penalty = sampling.presence_penalty = 0;
    }
  }
  const auto seed = fields.integer("seed");
  if (seed && *seed >= 0) {
    sampling.seed = static_cast<uint64_t>(*seed);
    out.has_seed = true;
  }
}

}  // namespace

std::span<const Field> OllamaOptions() { return kOptions; }

ApiStatus ReadOllamaOptions(const Json& options, TurnRequest& out) {
  HEARTH_ASSIGN(const Fields fields, Checked(options));
  HEARTH_TRY(RefuseOtherSamplers(fields));
  HEARTH_TRY(ReadStops(fields, out.stops));
  ReadSampling(fields, out);
  out.max_tokens = std::max(0, static_cast<int>(fields.integer("num_predict").value_or(0)));
  for (const Field& field : kOptions) {
    if (field.use == kNoEffect && fields.find(field.name) != nullptr) {
      out.ignored_fields.push_back(PathOf(field.name));
    }
  }
  return {};
}

ApiStatus IgnoreOllamaOptions(const Json& options, TurnRequest& out) {
  HEARTH_ASSIGN(const Fields fields, Checked(options));
  for (const Field& field : kOptions) {
    if (fields.find(field.name) != nullptr) out.ignored_fields.push_back(PathOf(field.name));
  }
  return {};
}

}  // namespace hearth
