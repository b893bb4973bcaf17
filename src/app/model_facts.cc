// SPDX-License-Identifier: Apache-2.0
#include "app/model_facts.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "app/open_format.h"
#include "app/text_source.h"
#include "base/mix.h"
#include "model/costs.h"
#include "templates/jinja_format.h"
#include "text/tool_calls.h"

namespace hearth {
namespace {

std::string MostlyIn(const WeightFile& file) {
  std::map<std::string, uint64_t> bytes;
  std::string most;
  for (const NamedTensor& named : file.tensors()) {
    const std::string format = NameOf(named.tensor.dtype);
    bytes[format] += named.tensor.bytes.size();
    if (bytes[format] > bytes[most]) most = format;
  }
  return most;
}

int64_t ModifiedAt(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0 ? static_cast<int64_t>(about.st_mtime) : 0;
}

// Four lanes of 64 bits over whatever is added.
class Digest {
 public:
  void Add(uint64_t word) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i] = MixBits(lanes_[i] ^ (word + (i + 1) * kGoldenRatio));
    }
  }
  void Add(std::string_view text) {
    Add(uint64_t{text.size()});
    for (const char c : text) Add(uint64_t{static_cast<unsigned char>(c)});
  }
  std::string hex() const {
    std::string out;
    for (const uint64_t lane : lanes_) {
      out += Printf("%016llx", static_cast<unsigned long long>(lane));
    }
    return out;
  }

 private:
  std::array<uint64_t, 4> lanes_{1, 2, 3, 4};
};

std::string DigestOf(const WeightFile& file, const std::string& path, int64_t modified_s) {
  Digest digest;
  digest.Add(std::filesystem::path(path).filename().string());
  digest.Add(file.file_bytes());
  digest.Add(static_cast<uint64_t>(modified_s));
  for (const NamedTensor& named : file.tensors()) {
    digest.Add(named.name);
    digest.Add(NameOf(named.tensor.dtype));
    digest.Add(uint64_t{named.tensor.bytes.size()});
  }
  return digest.hex();
}

std::string LicenseOf(const WeightFile& file) {
  const GgufValue* value =
      file.metadata() == nullptr ? nullptr : file.metadata()->Find("general.license");
  const auto text = value == nullptr ? std::nullopt : value->String();
  return text ? std::string(*text) : "";
}

std::vector<std::pair<std::string, int64_t>> ShapeOf(const ModelSpec& spec) {
  std::vector<std::pair<std::string, int64_t>> shape{
      {"block_count", static_cast<int64_t>(spec.layers.size())},
      {"embedding_length", spec.d_model},
      {"feed_forward_length", spec.n_experts > 0 ? spec.d_ff_expert : spec.d_ff},
      {"attention.head_count", spec.n_heads},
      {"attention.head_count_kv", spec.n_kv_heads},
      {"attention.key_length", spec.d_head},
      {"vocab_size", spec.vocab_size}};
  if (spec.n_experts > 0) {
    shape.push_back({"expert_count", spec.n_experts});
    shape.push_back({"expert_used_count", spec.n_active_experts});
  }
  return shape;
}

}  // namespace

ModelFacts FactsOf(const Model& model, const std::string& path, const ChatFormat& format,
                   const Tokenizer& tokenizer) {
  const WeightFile& file = *model.file;
  ModelFacts facts;
  facts.family = model.spec.family;
  facts.format = file.format() == WeightFormat::kGguf ? "gguf" : "safetensors";
  facts.quantisation = MostlyIn(file);
  facts.num_parameters = CostsOf(model).parameters;
  facts.file_bytes = static_cast<int64_t>(file.file_bytes());
  facts.modified_s = ModifiedAt(path);
  facts.digest = DigestOf(file, path, facts.modified_s);
  facts.license = LicenseOf(file);
  facts.shape = ShapeOf(model.spec);
  Result<std::string> chat_template = ChatTemplateOf(TextSource::Of(file, path));
  if (chat_template.ok()) facts.chat_template = *std::move(chat_template);
  // Harmony has both. A template without a form for tools has the generic one (plain_tools.h).
  const bool is_harmony = dynamic_cast<const JinjaChatFormat*>(&format) == nullptr;
  const TextReplyStyle style = ReplyStyleOf(format, tokenizer);
  facts.can_call_tools = true;
  facts.can_think = is_harmony || style.begins_in_reasoning || style.may_reason;
  return facts;
}

}  // namespace hearth
