// SPDX-License-Identifier: Apache-2.0
#include "gpu/tuning.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "platform/file.h"

namespace hearth::cuda {
namespace {

constexpr const char* kSchema = "hearth.gpu.tuning";
constexpr int kVersion = 1;
// More rows than any step has.
constexpr int64_t kMostRows = 1 << 20;
constexpr const char* kKindNames[kNumKinds] = {"mxfp4",  "q8_0", "q4_0", "q4_1", "q5_0", "q5_1",
                                               "iq4_nl", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
                                               "iq4_xs", "f32",  "f16",  "bf16"};

// An empty object when there is no such file, or not one of ours: it is written anew then.
Json ReadRows(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Result<Json> read = ParseJson(text);
  if (!read.ok()) return JsonObject();
  const Json* schema = read->Find("schema");
  const Json* version = read->Find("version");
  const Json* cards = read->Find("cards");
  const bool is_ours = schema != nullptr && *schema == Json(kSchema) && version != nullptr &&
                       *version == Json(kVersion) && cards != nullptr && cards->object() != nullptr;
  return is_ours ? *cards : Json(JsonObject());
}

}  // namespace

const char* NameOf(WeightKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

bool HasTwoKernels(WeightKind kind) {
  return kind == WeightKind::kMxfp4 || kind == WeightKind::kQ8 || kind == WeightKind::kQ3K ||
         kind == WeightKind::kQ6K || kind == WeightKind::kIq4Xs;
}

std::string TuningKey(const DeviceFacts& facts, const std::string& driver,
                      std::span<const std::byte> image) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::byte byte : image) {
    hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211u;
  }
  return Printf("%s, %s, driver %s, kernels %016llx", facts.name.c_str(), facts.level.c_str(),
                driver.c_str(), static_cast<unsigned long long>(hash));
}

std::string TuningPath(const Environment& environment) {
  const std::string folder = PathOf(UserFolder::kCache, environment);
  return folder.empty() ? "" : folder + "/hearth/gpu-tuning.json";
}

Result<Tuning> ReadTuning(const std::string& path, const std::string& key) {
  const Json rows = ReadRows(path);
  const Json* row = rows.Find(key);
  if (row == nullptr)
    return Error(Code::kNotFound, "%s: nothing for %s", path.c_str(), key.c_str());
  Tuning tuning;
  for (size_t kind = 0; kind < kNumKinds; ++kind) {
    const Json* value = row->Find(kKindNames[kind]);
    if (value == nullptr || !HasTwoKernels(static_cast<WeightKind>(kind))) continue;
    const std::optional<int64_t> number = value->integer();
    if (!number || *number < 0 || *number > kMostRows) {
      return Error(Code::kCorrupt, "%s: %s: expected a number of rows", path.c_str(),
                   kKindNames[kind]);
    }
    tuning.few_up_to[kind] = static_cast<int>(*number);
  }
  return tuning;
}

Status WriteTuning(const std::string& path, const std::string& key, const Tuning& tuning) {
  JsonObject row;
  for (size_t kind = 0; kind < kNumKinds; ++kind) {
    if (!HasTwoKernels(static_cast<WeightKind>(kind))) continue;
    row.emplace_back(kKindNames[kind], tuning.few_up_to[kind]);
  }
  JsonObject cards;
  const Json old = ReadRows(path);
  for (const JsonMember& member : *old.object()) {
    if (member.first != key) cards.push_back(member);
  }
  cards.emplace_back(key, std::move(row));
  const std::string text = WriteJson(
      JsonObject{{"schema", kSchema}, {"version", kVersion}, {"cards", std::move(cards)}}, 2);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return Error(Code::kIo, "%s: %s", path.c_str(), error.message().c_str());
  return WriteFileAtomically(path, std::as_bytes(std::span(text)));
}

}  // namespace hearth::cuda
