// SPDX-License-Identifier: Apache-2.0
#include "app/open_sampling.h"

#include "base/json.h"
#include "model/facts.h"
#include "sampling/published_sampling.h"

namespace hearth {
namespace {

constexpr const char* kFile = "generation_config.json";
constexpr size_t kMaxBytes = size_t{1} << 20;  // seen: below 2 KB

// The same settings under the names of each layout.
struct Keys {
  const char *temperature, *top_k, *top_p, *min_p, *repetition_penalty;
};
constexpr Keys kGguf{"general.sampling.temp", "general.sampling.top_k", "general.sampling.top_p",
                     "general.sampling.min_p", "general.sampling.penalty_repeat"};
constexpr Keys kJson{"temperature", "top_k", "top_p", "min_p", "repetition_penalty"};

Status ReadNumber(const Facts& facts, const char* key, double low, double high,
                  std::optional<double>& out) {
  if (!facts.Has(key)) return Status();
  HEARTH_ASSIGN(out, facts.Real(key, low, high));
  return Status();
}

// The ranges are those of a request's own fields.
Result<SamplingDefaults> Read(const Facts& facts, const Keys& keys) {
  SamplingDefaults out;
  HEARTH_TRY(ReadNumber(facts, keys.temperature, 0, 2, out.temperature));
  HEARTH_TRY(ReadNumber(facts, keys.top_p, 0, 1, out.top_p));
  HEARTH_TRY(ReadNumber(facts, keys.min_p, 0, 1, out.min_p));
  HEARTH_TRY(ReadNumber(facts, keys.repetition_penalty, 0.01, 10, out.repetition_penalty));
  if (facts.Has(keys.top_k)) {
    HEARTH_ASSIGN(const int top_k, facts.Int(keys.top_k, -1, 1 << 20));
    out.top_k = top_k < 0 ? 0 : top_k;  // both mean all of them
  }
  return out;
}

bool IsEmpty(const SamplingDefaults& defaults) {
  return !defaults.temperature && !defaults.top_p && !defaults.min_p &&
         !defaults.repetition_penalty && !defaults.top_k;
}

std::string_view NameIn(const GgufMetadata& metadata) {
  const GgufValue* name = metadata.Find("general.name");
  return name == nullptr ? std::string_view() : name->String().value_or("");
}

Result<SamplingDefaults> ReadConfig(std::string_view text) {
  HEARTH_ASSIGN(const Json config, ParseJson(text));
  if (config.object() == nullptr) return Error(Code::kCorrupt, "expected a JSON object");
  const JsonFacts facts(config);
  HEARTH_ASSIGN(SamplingDefaults out, Read(facts, kJson));
  HEARTH_ASSIGN(const bool samples, facts.FlagOr("do_sample", true));
  if (!samples) out.temperature = 0;  // the most likely token, whatever else the file says
  return out;
}

}  // namespace

Result<SamplingDefaults> OpenSamplingDefaults(const TextSource& source) {
  SamplingDefaults out;
  if (source.metadata() != nullptr) {
    HEARTH_ASSIGN(out, Read(GgufFacts(*source.metadata(), ""), kGguf).Within(source.path()));
    if (IsEmpty(out)) return PublishedSampling(NameIn(*source.metadata()));
    out.source = "general.sampling";
  } else if (source.Has(kFile)) {
    HEARTH_ASSIGN(const std::string text, source.Text(kFile, kMaxBytes));
    HEARTH_ASSIGN(out, ReadConfig(text).Within(source.PlaceOf(kFile)));
    if (!IsEmpty(out)) out.source = kFile;
  }
  return out;
}

std::vector<std::pair<const char*, double>> NamedSettings(const SamplingDefaults& sampling) {
  std::vector<std::pair<const char*, double>> out;
  const auto add = [&out](const char* name, const auto& value) {
    if (value) out.push_back({name, static_cast<double>(*value)});
  };
  add("temperature", sampling.temperature);
  add("top_k", sampling.top_k);
  add("top_p", sampling.top_p);
  add("min_p", sampling.min_p);
  add("repetition_penalty", sampling.repetition_penalty);
  return out;
}

std::string DescribeSampling(const SamplingDefaults& sampling) {
  std::string out;
  for (const auto& [name, value] : NamedSettings(sampling)) out += Printf("%s %g ", name, value);
  return out.empty() ? out : out + "(" + sampling.source + ")";
}

}  // namespace hearth
