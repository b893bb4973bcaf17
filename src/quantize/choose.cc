// SPDX-License-Identifier: Apache-2.0
#include "quantize/choose.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/ascii.h"
#include "quantize/encode.h"

namespace hearth {
namespace {

struct Named {
  const char* word;
  DType dtype;
};
constexpr Named kTargets[] = {
    {"int8", DType::kQ8_0}, {"int4", DType::kQ4_K},   {"f32", DType::kF32},
    {"f16", DType::kF16},   {"bf16", DType::kBf16},   {"q8_0", DType::kQ8_0},
    {"q6_k", DType::kQ6_K}, {"q5_k", DType::kQ5_K},   {"q5_1", DType::kQ5_1},
    {"q5_0", DType::kQ5_0}, {"q4_k", DType::kQ4_K},   {"q4_1", DType::kQ4_1},
    {"q4_0", DType::kQ4_0}, {"mxfp4", DType::kMxfp4},
};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool IsHead(std::string_view name) {
  return name == "output.weight" || name == "token_embd.weight";
}

// What picks experts is small, and one wrong pick costs more than all that its bits would save.
bool IsSmallPart(const TensorShape& tensor) {
  return tensor.rank < 2 || Contains(tensor.name, "ffn_gate_inp") ||
         Contains(tensor.name, "_norm") || Contains(tensor.name, ".bias") ||
         Contains(tensor.name, "rope_") || Contains(tensor.name, "sinks") ||
         !tensor.name.ends_with(".weight");
}

// About as many bits in blocks of 32, where a row is no multiple of 256.
DType InSmallBlocks(DType dtype) {
  switch (dtype) {
    case DType::kQ4_K:
      return DType::kQ4_1;
    case DType::kQ5_K:
      return DType::kQ5_1;
    case DType::kQ6_K:
      return DType::kQ8_0;
    default:
      return dtype;
  }
}

DType OneUp(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kMxfp4:
      return DType::kQ5_1;
    case DType::kQ4_K:
      return DType::kQ5_K;
    case DType::kQ5_K:
      return DType::kQ6_K;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ6_K:
      return DType::kQ8_0;
    default:
      return dtype;
  }
}

bool Fits(int64_t cols, DType dtype) { return cols % BlockShapeOf(dtype).elems == 0; }

}  // namespace

Result<Target> ParseTarget(std::string_view word) {
  const std::string lower = LowerAscii(word);
  if (lower == "keep") return Target{"keep", DType::kF32, Profile::kAll};
  for (const Named& each : kTargets) {
    if (lower == each.word) return Target{lower, each.dtype, Profile::kAll};
  }
  std::string known = "keep";
  for (const Named& each : kTargets) known += std::string(", ") + each.word;
  return Error(Code::kInvalid, "--to %s: expected one of %s", Quoted(word).c_str(), known.c_str());
}

double BitsPerValue(DType dtype) {
  const BlockShape shape = BlockShapeOf(dtype);
  return 8.0 * shape.bytes / shape.elems;
}

Choice ChooseFormat(const TensorShape& tensor, const Target& target) {
  if (target.name == "keep") return {tensor.dtype, "kept"};
  if (IsSmallPart(tensor)) return {tensor.dtype, "small"};
  const bool is_expert = Contains(tensor.name, "_exps");
  if (target.profile == Profile::kSmall && is_expert) return {tensor.dtype, "experts stay"};
  Choice choice{target.dtype, ""};
  // Every token is looked up in one and scored by the other: what is lost there is lost everywhere.
  if (IsHead(tensor.name) && target.profile == Profile::kAll && BitsPerValue(target.dtype) < 6.5) {
    choice = {DType::kQ6_K, "vocabulary"};
  }
  if (!Fits(tensor.cols, choice.dtype)) {
    choice = {InSmallBlocks(choice.dtype), "rows are no multiple of 256"};
  }
  if (!Fits(tensor.cols, choice.dtype)) choice = {DType::kF16, "rows are no multiple of 32"};
  if (BitsPerValue(choice.dtype) >= BitsPerValue(tensor.dtype)) {
    return {tensor.dtype, "small already"};
  }
  return choice;
}

int RaiseWorst(const std::vector<TensorShape>& tensors,
               const std::vector<std::optional<double>>& errors, std::vector<Choice>& choices) {
  constexpr double kMuch = 1.3;  // times the middle one's error
  std::map<DType, std::vector<double>> by_format;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (errors[i]) by_format[choices[i].dtype].push_back(*errors[i]);
  }
  for (auto& [dtype, found] : by_format) std::sort(found.begin(), found.end());
  int raised = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!errors[i]) continue;
    const std::vector<double>& of_format = by_format.at(choices[i].dtype);
    if (!(*errors[i] > kMuch * of_format[of_format.size() / 2])) continue;
    const DType up = OneUp(choices[i].dtype);
    if (up == choices[i].dtype || !Fits(tensors[i].cols, up) ||
        BitsPerValue(up) >= BitsPerValue(tensors[i].dtype)) {
      continue;
    }
    choices[i] = {up, "loses more than others"};
    ++raised;
  }
  return raised;
}

std::optional<uint32_t> FileTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kQ5_0:
      return 8;
    case DType::kQ5_1:
      return 9;
    case DType::kQ4_K:
      return 15;
    case DType::kQ5_K:
      return 17;
    case DType::kQ6_K:
      return 18;
    case DType::kBf16:
      return 32;
    case DType::kMxfp4:
      return 38;
    default:
      return std::nullopt;
  }
}

}  // namespace hearth
